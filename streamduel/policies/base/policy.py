"""What every policy can do: propose duels, be told their outcomes, name its champion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.duels import Arms, Counts, Duels, Outcomes, lone, read_duels
from streamduel.policies.base.generator import Generator
from streamduel.policies.base.parameter import Parameter, check_parameters, integer, signature
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.counts import MAX_DUELS, WinCounts

_FEW: Final = 24
"""Up to as many duels, one by one is quicker than array operations; the result is the same."""


class Policy(ABC):
    """A dueling bandit as a state machine: it never asks for an outcome, it is told.

    All that a policy will ever do follows from its state: the counts of the duels it has seen, its
    own generator, and what the algorithm itself keeps. The state goes through JSON text and
    back without losing a bit, and holds nothing that grows with the number of duels.

    A policy of the family declares `name`, `summary`, `paper` and its parameters, chooses a pair
    (`_choose`) and says how many candidates are left (`candidates`). What it keeps besides the
    counts it sets up in `_begin`, and saves and restores by `_own_state` and `_restore`. Every
    random decision is drawn from `self._generator`.

    Learning is counting, and nothing else: outcomes may come late, in any order and by the million
    (with a `WindowedPolicy` that forgets, their order matters).
    Whatever an algorithm concludes from its counts, to eliminate an arm or to begin a new round, it
    concludes when it is asked for the next pair. Fed one duel at a time this is the published
    algorithm; fed in bulk, the same algorithm with fewer occasions to look.

    A policy with a parameter `horizon` plans for that many duels and then proposes its champion
    alone, for ever.

    Args:
        n_arms: K, at least 2. Arms are the integers from 0 to K - 1.
        seed: of the policy's generator, an integer from 0. Equal seeds and equal duels give equal
            proposals on every machine.
        **parameters: those that the class declares.

    Raises:
        PolicyError: an argument is not allowed or not known.

    Attributes:
        name: in configurations and states.
        summary: what it is, one line.
        paper: where it was published.
        declared: its parameters by name.
        adaptive: whether what it proposes depends on what it has seen.
        seeks: the winner it looks for: "condorcet", an arm that beats all others, or "copeland",
            one that beats the most, which there always is.
        n_arms: K.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    declared: ClassVar[dict[str, Parameter[Any]]] = {}
    adaptive: ClassVar[bool] = True
    seeks: ClassVar[Literal["condorcet", "copeland"]] = "condorcet"

    n_arms: int
    _parameters: dict[str, Any]
    _counts: WinCounts
    _generator: Generator
    _standing: Integers
    _champion: int
    _champion_turn: int = -1

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = {name: item for name, item in vars(cls).items() if isinstance(item, Parameter)}
        cls.declared = {**cls.declared, **own}
        cls.__signature__ = signature(cls.declared)  # type: ignore[attr-defined]

    def __init__(self, n_arms: int, *, seed: int = 0, **parameters: object) -> None:
        self.n_arms = integer("n_arms", n_arms, least=2)
        self._parameters = self.check_parameters(parameters, self.n_arms)
        self._generator = Generator(seed)
        self._counts = self._counts_of(None)
        # Arms that beat equally many others stand in an order drawn once: the champion is then as
        # random as by a fresh draw, asking for it changes nothing, and it does not flicker.
        self._standing = np.array(self._generator.permutation(self.n_arms), dtype=np.int64)
        self._begin()

    @classmethod
    def check_parameters(cls, given: Mapping[str, object], n_arms: int = 2) -> dict[str, Any]:
        """Every parameter with its value, defaults included, without making a policy.

        Args:
            given: values by name, as a configuration has them.
            n_arms: K, for limits that depend on it.

        Raises:
            PolicyError: a name is unknown, a required one is missing, or a value is not allowed.
        """
        values = check_parameters(cls.name, cls.declared, given)
        if values.get("horizon", n_arms) < n_arms:
            raise PolicyError(
                f"policy.horizon must be at least the number of arms, {n_arms}"
                f" (found {values['horizon']})."
            )
        return values

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name, defaults included, without what is off; a new dictionary."""
        return dict(self._parameters)

    @property
    def wins(self) -> Floats:
        """(K, K), read-only and live: [i, j] is how often i beat j, a tie being half a win."""
        return self._counts.wins

    @property
    def duels(self) -> int:
        """How many duels were observed, those of an arm with itself included."""
        return self._counts.duels

    @property
    def stage(self) -> str:
        """The algorithm at work: its own name, unless it is a policy that goes over to another."""
        return self.name

    @classmethod
    def traits(cls) -> list[str]:
        """What it needs and what it looks for, in words."""
        seeks = {"condorcet": "beats every other one", "copeland": "beats the most"}[cls.seeks]
        plans = "needs a horizon" if "horizon" in cls.declared else "needs no horizon"
        batched = cls.remaining is not Policy.remaining
        decides = "decides once per batch" if batched else "decides after every duel"
        return [f"looks for the arm that {seeks}", plans, decides]

    # What a service asks and tells.

    def propose(self, n: int = 1) -> Integers:
        """The next n duels, none of whose outcomes will be seen before the last is proposed.

        Pairs proposed earlier in the same call count as in flight, so that n duels under delayed
        feedback spread as the algorithm's own bounds say. Nothing of that lasts beyond the call:
        proposing draws from the generator, and leaves alone what the policy has learned.

        Args:
            n: how many, at least 1.

        Returns:
            (n, 2) arms. A pair may repeat, and may be an arm with itself.

        Raises:
            PolicyError: n is no integer from 1.
        """
        if type(n) is not int or n < 1:
            n = integer("the number of duels to propose", n, least=1)
        return self._propose(n)

    def foresee(self, most: int) -> tuple[Integers, Integers]:
        """The next duels, as far as no outcome can change them: what a simulation goes by.

        To have them all fought and then observe their outcomes is to propose and observe one by
        one, to the last draw of the generator, but it takes fewer steps: thousands of duels of a
        champion with itself, or a whole batch, at once.

        Args:
            most: as many duels at most, at least 1.

        Returns:
            (m, 2) arms, and (m,) how many duels each entry stands for, more than one only for an
            arm with itself. Their sum is from 1 to `most`.

        Raises:
            PolicyError: `most` is no integer from 1.
        """
        if type(most) is not int or most < 1:
            most = integer("the number of duels to foresee", most, least=1)
        return self._foresee(self._counts.duels + 1, most)

    def remaining(self) -> Integers | None:
        """(K, K), symmetric: how many duels of each pair a batched policy's open batch still lacks.

        None for a policy without batches. Asking changes nothing.
        """
        return None

    @property
    def finished(self) -> bool:
        """Whether exploration has ended for good: the horizon is past, or one arm is left."""
        planned: int | None = self._parameters.get("horizon")
        return self._winner() is not None or (planned is not None and self.duels >= planned)

    def observe(
        self, first: Arms, second: Arms, first_wins: Outcomes, count: Counts = None
    ) -> None:
        """Learn the outcomes of m duels: of any pairs, in any order, after any delay.

        They need not have been proposed. A duel of an arm with itself advances time and teaches
        nothing, whatever its outcome. A refused call changes nothing.

        Args:
            first: (m,) arms. For one duel, here and below, a plain number will do.
            second: (m,) arms.
            first_wins: (m,) of 1, 0, or 0.5 for a tie.
            count: (m,) integers from 1: how many identical duels each entry stands for, perhaps
                millions; one each when left out.

        Raises:
            PolicyError: an arm, an outcome, a count or the length of an array is not allowed.
        """
        one = first if type(first) is int else lone(first)
        other = second if type(second) is int else lone(second)
        outcome = first_wins if type(first_wins) is float else lone(first_wins)
        times = 1 if count is None else lone(count)
        # One duel at a time is the hot path. It takes what is surely right; everything else, what
        # is wrong included, goes the general way.
        if (
            type(one) is int
            and type(other) is int
            and type(times) is int
            and (type(outcome) is float or type(outcome) is int)
            and 0 <= one < self.n_arms
            and 0 <= other < self.n_arms
            and outcome in {0, 0.5, 1}
            and 1 <= times <= MAX_DUELS - self.duels
        ):
            self._observe_one(one, other, outcome, times)
            return
        duels = read_duels(first, second, first_wins, count, n_arms=self.n_arms, seen=self.duels)
        self._observe_many(duels)

    def learn(self, duels: Duels) -> None:
        """What `observe` does after its checks, for a caller who made the arrays itself.

        Args:
            duels: of arms from 0 to K - 1, and no more of them than may be counted.
        """
        self._observe_many(duels)

    def champion(self) -> int:
        """The arm to serve if exploration ended now: the one that beats the most arms.

        To beat an arm is to have won more than half of the duels against it. Among equals the
        answer follows an order that was drawn once from the seed. A policy that has eliminated all
        arms but one names that one. Asking changes nothing.
        """
        winner = self._winner()
        return self._leader() if winner is None else winner

    def _leader(self) -> int:
        """The arm that beats the most arms in the counts."""
        if self._champion_turn != self._counts.turns:
            self._champion = int((self._counts.beats * self.n_arms + self._standing).argmax())
            self._champion_turn = self._counts.turns
        return self._champion

    @abstractmethod
    def candidates(self) -> int:
        """How many arms have not been ruled out yet. Asking changes nothing."""

    # What it is made of, and making it again.

    def state_dict(self) -> dict[str, Any]:
        """The whole state, generator included, as JSON can hold it; shares nothing with it."""
        return {
            "policy": self.name,
            "n_arms": self.n_arms,
            "parameters": self.parameters,
            "counts": self._counts.state_dict(),
            "generator": self._generator.state_dict(),
            "standing": self._standing.tolist(),
            "own": self._own_state(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The policy whose `state_dict()` this was; the two propose equally from here on.

        Args:
            state: a policy's state, perhaps after a way through JSON text.

        Raises:
            PolicyError: it is not a state of this policy.
        """
        try:
            if state["policy"] != cls.name:
                raise PolicyError(
                    f"a state of policy '{state['policy']}' does not fit '{cls.name}'."
                )
            policy = cls.__new__(cls)
            policy.n_arms = integer("n_arms", state["n_arms"], least=2)
            policy._parameters = cls.check_parameters(state["parameters"], policy.n_arms)
            policy._counts = policy._counts_of(state["counts"])
            policy._generator = Generator.from_state(state["generator"])
            policy._standing = np.array(state["standing"], dtype=np.int64)
            arms = list(range(policy.n_arms))
            if len(policy.wins) != policy.n_arms or sorted(policy._standing.tolist()) != arms:
                raise PolicyError(
                    f"a state of policy '{cls.name}' has parts for other numbers of arms."
                )
            policy._begin()
            if not isinstance(state["own"], Mapping):
                raise PolicyError(f"a state of policy '{cls.name}' must be a mapping in 'own'.")
            policy._restore(state["own"])
        except PolicyError:
            raise
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise PolicyError(f"a state of policy '{cls.name}' is damaged ({error!r}).") from error
        return policy

    def clone(self) -> Self:
        """A policy of its own in the same state."""
        return type(self).from_state(self.state_dict())

    def __reduce__(self) -> tuple[Any, ...]:
        # So that copying and pickling are the round trip that the tests know to be exact.
        return type(self).from_state, (self.state_dict(),)

    def __repr__(self) -> str:
        parameters = "".join(f", {name}={value!r}" for name, value in self._parameters.items())
        return f"{type(self).__name__}(n_arms={self.n_arms}{parameters})"

    # What an algorithm fills in.

    def _counts_of(self, state: Mapping[str, Any] | None) -> WinCounts:
        """What the algorithm goes by: counts of no duels yet, or those that a state holds."""
        return WinCounts(self.n_arms) if state is None else WinCounts.from_state(state)

    def _begin(self) -> None:  # noqa: B027 - the counts may be all it keeps
        """Set up what the algorithm keeps besides the counts; they may already hold duels."""

    @abstractmethod
    def _choose(self, t: int) -> tuple[int, int]:
        """The pair for the duel of step t, counting from 1; not asked beyond the horizon."""

    def _winner(self) -> int | None:
        """The only arm left, if the algorithm has eliminated all the others for good."""
        return None

    def _times_alone(self, arm: int, t: int, most: int) -> int:  # noqa: ARG002
        """How many times in a row, from step t on, this arm would be chosen against itself.

        At least 1 and at most `most`; the draws between, if any, must be none from the generator.
        """
        return most if self._winner() is not None else 1

    def _mark_in_flight(  # noqa: B027 - a policy without bounds has no use for it
        self, first: int, second: int, in_flight: int
    ) -> None:
        """Take note of how many duels of a pair this call has proposed; 0 ends it."""

    def _foresee(self, t: int, most: int) -> tuple[Integers, Integers]:
        """One duel, or a run of duels of an arm with itself; to be overridden for whole batches."""
        first, second = self._pair(t)
        times = 1
        if first == second and most > 1:
            over = t > self._parameters.get("horizon", t)
            times = most if over else self._times_alone(first, t, most)
        return np.array([[first, second]], dtype=np.int64), np.array([times], dtype=np.int64)

    def _pair(self, t: int) -> tuple[int, int]:
        """The algorithm's choice, or the champion alone after the horizon."""
        if t > self._parameters.get("horizon", t):
            champion = self.champion()
            return champion, champion
        return self._choose(t)

    def _propose(self, n: int) -> Integers:
        """Choose n pairs one after the other, each knowing those before it to be in flight."""
        t = self._counts.duels + 1
        if n == 1:
            return np.array([self._pair(t)], dtype=np.int64)
        pairs = np.empty((n, 2), dtype=np.int64)
        in_flight: dict[tuple[int, int], int] = {}
        try:
            for row in range(n):
                first, second = self._pair(t + row)
                pairs[row, 0] = first
                pairs[row, 1] = second
                pair = (first, second) if first < second else (second, first)
                in_flight[pair] = in_flight.get(pair, 0) + 1
                self._mark_in_flight(first, second, in_flight[pair])
        finally:
            for first, second in in_flight:
                self._mark_in_flight(first, second, 0)
        return pairs

    def _observe_one(self, first: int, second: int, first_wins: float, count: int) -> None:
        """Learn one outcome, of `count` identical duels; checked by the caller."""
        self._counts.add_one(first, second, first_wins, count)
        self._take_up(first, second)

    def _observe_many(self, duels: Duels) -> None:
        """Learn many outcomes; the same as one entry after the other."""
        if len(duels.first) > _FEW:
            self._counts.add(duels.first, duels.second, duels.first_wins, duels.count)
            self._take_up_many(duels.first, duels.second)
            return
        count = np.ones(len(duels.first), dtype=np.int64) if duels.count is None else duels.count
        entries = (duels.first, duels.second, duels.first_wins, count)
        for entry in zip(*(array.tolist() for array in entries), strict=True):
            self._observe_one(*entry)

    def _take_up(self, first: int, second: int) -> None:  # noqa: B027 - the counts may be all
        """Bring up to date what is kept besides the counts, of a pair whose counts have changed."""

    def _take_up_many(self, first: Integers, second: Integers) -> None:  # noqa: B027 - as above
        """The same for many pairs, which may repeat and hold an arm twice."""

    def _own_state(self) -> dict[str, Any]:
        """What the state holds besides counts and generator, as JSON can hold it."""
        return {}

    def _restore(self, own: Mapping[str, Any]) -> None:  # noqa: B027 - as `_begin`
        """Take up what `_own_state` gave; `_begin` has been called."""

"""The public methods of every policy: propose duels, observe their outcomes, name the champion."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Annotated, Any, Final, Self, TypeVar

import numpy as np
from msgspec import Meta

from streamduel.errors import ParameterError, PolicyError
from streamduel.policies.base.algorithm import Algorithm
from streamduel.policies.base.duels import Arms, Counts, Duels, Outcomes, check_duels, scalar
from streamduel.policies.base.generator import Generator
from streamduel.policies.base.parameter import Parameter, check_parameters, integer, signature
from streamduel.policies.base.state import Arm, State, convert, restore, save
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.counts import MAX_DUELS, WinCounts

AnyPolicy = TypeVar("AnyPolicy", bound="Policy")

_FEW: Final = 24
"""Up to this many duels, one by one is faster than array operations; the result is the same."""


class _PolicyState(State):
    """What `Policy.state_dict` returns."""

    policy: str
    n_arms: Annotated[int, Meta(ge=2)]
    parameters: dict[str, Any]
    counts: dict[str, Any]
    generator: dict[str, Any]
    priority: list[Arm]
    own: dict[str, Any]


class Policy(Algorithm):
    """A dueling bandit: a state machine driven by its caller, which reports outcomes of duels.

    Everything that a policy will do follows from its state: the counts of the duels it has
    observed, its own generator, and what its algorithm keeps. The state goes through JSON text and
    back without losing a bit, and does not grow with the number of duels.

    Observing is counting: outcomes may come late, in any order and by the million (with a
    `WindowedPolicy` that forgets, their order matters). An algorithm draws its conclusions from the
    counts, such as to eliminate an arm or to begin a round, when it is asked for the next pair.
    Given one duel at a time this is the published algorithm; given many in one call, it is the same
    algorithm with fewer points at which it draws conclusions.

    A policy with a parameter `horizon` plans for that many duels; afterwards it proposes its
    champion against itself.

    `Algorithm` has the hooks that the author of a policy fills in.

    Args:
        n_arms: K, at least 2. Arms are the integers from 0 to K - 1.
        seed: of the policy's generator, an integer from 0. Equal seeds and equal duels give equal
            proposals on every machine.
        **parameters: those that the class declares. Each declaration has a symbol, a meaning, the
            default and what is allowed, and `help` of the class shows the meaning; the docstring
            of a policy names only parameters of which there is more to say.

    Raises:
        PolicyError: an argument is unknown or not allowed.
    """

    _parameters: dict[str, Any]
    _horizon: float  # T, or infinity
    _champion: int
    _champion_turn: int = -1

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = {name: item for name, item in vars(cls).items() if isinstance(item, Parameter)}
        cls.declared = {**cls.declared, **own}
        cls.__signature__ = signature(cls.declared)  # type: ignore[attr-defined]

    def __init__(self, n_arms: int, *, seed: int = 0, **parameters: object) -> None:
        n_arms = integer("n_arms", n_arms, minimum=2)
        self._set_parameters(n_arms, parameters)
        self._generator = Generator(seed)
        self._counts = self._make_counts(None)
        self._priority = np.array(self._generator.permutation(n_arms), dtype=np.int64)
        self._start()

    def _set_parameters(self, n_arms: int, parameters: Mapping[str, object]) -> None:
        self.n_arms = n_arms
        self._parameters = self.check_parameters(parameters, n_arms)
        self._horizon = self._parameters.get("horizon", inf)

    def _start(self) -> None:
        """Set up what the algorithm keeps; the counts, the generator and the priority are there."""
        self._tracked = []
        self._begin()

    @classmethod
    def check_parameters(cls, given: Mapping[str, object], n_arms: int = 2) -> dict[str, Any]:
        """Every parameter with its value, defaults included, without making a policy.

        Args:
            given: values by name, as in a configuration.
            n_arms: K, for limits that depend on it.

        Raises:
            PolicyError: a name is unknown, a required one is missing, or a value is not allowed.
        """
        values = check_parameters(cls.name, cls.declared, given)
        if values.get("horizon", n_arms) < n_arms:
            raise ParameterError(
                "horizon",
                f"must be at least the number of arms, {n_arms} (found {values['horizon']}).",
            )
        return values

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name, defaults included, without those that are off; a new dict."""
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
        """The algorithm at work: the policy's name, unless it switches between algorithms."""
        return self.name

    @property
    def steered(self) -> bool:
        """Whether a prior steers its choices: there is one, and the duels do not contradict it."""
        return False

    @classmethod
    def traits(cls) -> list[str]:
        """What it looks for, what it needs and when it decides, in words."""
        seeks = {"condorcet": "beats every other one", "copeland": "beats the most"}[cls.seeks]
        plans = "needs a horizon" if "horizon" in cls.declared else "needs no horizon"
        batched = cls.remaining is not Policy.remaining
        decides = "decides once per batch" if batched else "decides after every duel"
        return [f"looks for the arm that {seeks}", plans, decides]

    # Proposals

    def propose(self, n: int = 1) -> Integers:
        """The next n duels, if none of their outcomes is seen before the last is proposed.

        Pairs proposed earlier in the same call count as in flight, so that n duels under delayed
        feedback spread as the algorithm's own bounds say. This ends with the call: proposing draws
        from the generator, and does not change what the policy has learned.

        Args:
            n: how many, at least 1.

        Returns:
            (n, 2) arms. A pair may repeat, and may be an arm with itself.

        Raises:
            PolicyError: n is not an integer from 1.
        """
        if type(n) is not int or n < 1:
            n = integer("the number of duels to propose", n, minimum=1)
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

    def propose_ahead(self, limit: int) -> tuple[Integers, Integers]:
        """The next duels, as far as no outcome can change them; simulations use it.

        To observe the outcomes of all of them is the same as to propose and observe one by one, to
        the last draw of the generator, but takes fewer steps: thousands of duels of a champion with
        itself, or a whole batch, in one.

        Args:
            limit: the largest number of duels, at least 1.

        Returns:
            (m, 2) arms, and (m,) the number of duels of each entry, above 1 only for an arm with
            itself. Their sum is from 1 to `limit`.

        Raises:
            PolicyError: `limit` is not an integer from 1.
        """
        if type(limit) is not int or limit < 1:
            limit = integer("the largest number of duels to propose", limit, minimum=1)
        limit = min(limit, MAX_DUELS)  # more cannot be observed
        t = self._counts.duels + 1
        if t > self._horizon:
            return np.array([self._pair(t)], dtype=np.int64), np.array([limit], dtype=np.int64)
        return self._choose_ahead(t, int(min(limit, self._horizon - t + 1)))

    def remaining(self) -> Integers | None:
        """(K, K), symmetric: how many duels of each pair the open batch of a batched policy lacks.

        None for a policy without batches. Asking changes nothing.
        """
        return None

    @property
    def finished(self) -> bool:
        """Whether exploration has ended: after the horizon, or with one arm left."""
        return self._winner() is not None or self.duels >= self._horizon

    def _pair(self, t: int) -> tuple[int, int]:
        """The algorithm's choice, or the champion against itself after the horizon."""
        if t > self._horizon:
            champion = self.champion()
            return champion, champion
        return self._choose(t)

    # Outcomes

    def observe(
        self, first: Arms, second: Arms, first_wins: Outcomes, count: Counts = None
    ) -> None:
        """Learn the outcomes of m duels: of any pairs, in any order, after any delay.

        They need not have been proposed. A duel of an arm with itself advances time and has no
        other effect, whatever its outcome. A refused call changes nothing.

        Args:
            first: (m,) arms. For one duel, here and below, a plain number will do.
            second: (m,) arms.
            first_wins: (m,) of 1, 0, or 0.5 for a tie.
            count: (m,) integers from 1: how many identical duels each entry counts for, up to
                millions; one each when left out.

        Raises:
            PolicyError: an arm, an outcome, a count or the length of an array is not allowed.
        """
        one = first if type(first) is int else scalar(first)
        other = second if type(second) is int else scalar(second)
        outcome = first_wins if type(first_wins) is float else scalar(first_wins)
        times = 1 if count is None else scalar(count)
        # One duel at a time is the hot path: only valid arguments take it, all others the general
        # way below.
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
        self.learn(
            check_duels(first, second, first_wins, count, n_arms=self.n_arms, seen=self.duels)
        )

    def learn(self, duels: Duels) -> None:
        """`observe` without its checks, for a caller that made the arrays itself.

        Args:
            duels: of arms from 0 to K - 1, and no more of them than may be counted.
        """
        if len(duels.first) > _FEW:
            self._counts.add(duels.first, duels.second, duels.first_wins, duels.count)
            self._learned_many(duels)
            return
        count = np.ones(len(duels.first), dtype=np.int64) if duels.count is None else duels.count
        entries = (duels.first, duels.second, duels.first_wins, count)
        for entry in zip(*(array.tolist() for array in entries), strict=True):
            self._observe_one(*entry)

    def _observe_one(self, first: int, second: int, first_wins: float, count: int) -> None:
        self._counts.add_one(first, second, first_wins, count)
        self._learned(first, second, first_wins, count)

    def champion(self) -> int:
        """The arm to serve if exploration ended now: the one that beats the most arms.

        To beat an arm is to have won more than half of the duels against it. Ties are decided by an
        order drawn once from the seed. A policy that has eliminated all arms but one names that
        one. Asking changes nothing.
        """
        winner = self._winner()
        return self._leader() if winner is None else winner

    def _leader(self) -> int:
        """The arm that beats the most arms in the counts."""
        if self._champion_turn != self._counts.turns:
            self._champion = int(self._rank().argmax())
            self._champion_turn = self._counts.turns
        return self._champion

    # State

    def state_dict(self) -> dict[str, Any]:
        """The whole state, generator included, as JSON can hold it; a copy."""
        return {
            "policy": self.name,
            "n_arms": self.n_arms,
            "parameters": self.parameters,
            "counts": self._counts.state_dict(),
            "generator": self._generator.state_dict(),
            "priority": self._priority.tolist(),
            "own": self.save(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The policy that returned this state; both propose equally from here on.

        Args:
            state: what `state_dict` returned, possibly after a round trip through JSON text.

        Raises:
            PolicyError: it is not a state of this policy.
        """
        try:
            saved = convert(state, _PolicyState, f"a state of policy '{cls.name}'")
            if saved.policy != cls.name:
                raise PolicyError(f"a state of policy '{saved.policy}' does not fit '{cls.name}'.")
            policy = cls.__new__(cls)
            policy._set_parameters(saved.n_arms, saved.parameters)
            policy._counts = policy._make_counts(saved.counts)
            policy._generator = Generator.from_state(saved.generator)
            policy._priority = np.array(saved.priority, dtype=np.int64)
            arms = list(range(saved.n_arms))
            if len(policy.wins) != saved.n_arms or sorted(saved.priority) != arms:
                raise PolicyError(
                    f"a state of policy '{cls.name}' has parts for other numbers of arms."
                )
            policy._start()
            policy.restore(saved.own)
        except PolicyError:
            raise
        except (LookupError, OverflowError, TypeError, ValueError) as error:
            raise PolicyError(f"a state of policy '{cls.name}' is damaged ({error!r}).") from error
        return policy

    def save(self) -> dict[str, Any]:
        """The part of the state that the algorithm keeps besides the counts."""
        return save(self, self.state_type)

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Set what `save` returned, in a policy that has just been made with the same counts.

        Raises:
            PolicyError: it does not fit the counts, or is not a state of this policy.
        """
        restore(self, self.state_type, saved, self.n_arms, f"a state of policy '{self.name}'")
        self._restored()

    def _make_counts(self, state: Mapping[str, Any] | None) -> WinCounts:
        """Counts of no duels yet, or those of a state."""
        return WinCounts(self.n_arms) if state is None else WinCounts.from_state(state)

    def _on_same_counts(self, kind: type[AnyPolicy]) -> AnyPolicy:
        """A policy of another kind, with defaults, that shares counts, generator and priority."""
        other = kind.__new__(kind)
        other._set_parameters(self.n_arms, {})
        other._counts, other._generator = self._counts, self._generator
        other._priority = self._priority
        other._start()
        return other

    def clone(self) -> Self:
        """An independent policy in the same state."""
        return type(self).from_state(self.state_dict())

    def __reduce__(self) -> tuple[Any, ...]:
        # Copying and pickling take the round trip that is tested to be exact.
        return type(self).from_state, (self.state_dict(),)

    def __repr__(self) -> str:
        parameters = "".join(f", {name}={value!r}" for name, value in self._parameters.items())
        return f"{type(self).__name__}(n_arms={self.n_arms}{parameters})"

"""The hooks of a policy: what the author of an algorithm writes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from streamduel.policies.base.duels import Duels
from streamduel.policies.base.generator import Generator
from streamduel.policies.base.parameter import Parameter
from streamduel.policies.base.reasons import by_counts
from streamduel.policies.base.state import State
from streamduel.preference.arrays import Integers
from streamduel.preference.counts import FromCounts, WinCounts, distinct_pairs

AnyFromCounts = TypeVar("AnyFromCounts", bound=FromCounts)


class Algorithm(ABC):
    """The hooks of a dueling-bandit algorithm; the public methods of `Policy` call them.

    An author derives from `Policy`, declares the class attributes below and the parameters (`Real`,
    `Whole`, `Flag`, `Choice`, `Horizon`), and writes `_choose` and `candidates`. An algorithm that
    keeps more than the counts of wins sets it up in `_begin`. `_track` keeps values derived from
    the counts, such as confidence bounds, up to date. What does not follow from the counts, such as
    eliminated arms, is a field of `state_type`. All other hooks have defaults.

    `observe` only counts. An algorithm draws its conclusions (an arm is out, a round is complete)
    when it is asked for the next pair; therefore outcomes may come late, in any order and in bulk.
    Every random decision is drawn from `self._generator`.

    Attributes:
        name: the name in configurations and states.
        summary: what it is, one line.
        paper: where it was published.
        declared: its parameters by name.
        adaptive: whether its proposals depend on outcomes. False: not expected to converge.
        seeks: the winner it looks for: "condorcet", an arm that beats all others, or "copeland",
            an arm that beats the most others, which always exists.
        settles_for_copeland: whether a policy that seeks a Condorcet winner looks for a Copeland
            winner once no arm can be one. False: it then explores without end.
        final: whether exploration, once `finished`, has ended permanently. False: `finished`
            follows from the counts, and further duels may take it back.
        state_type: what it keeps that does not follow from the counts.
        n_arms: K.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str]
    declared: ClassVar[dict[str, Parameter[Any]]] = {}
    adaptive: ClassVar[bool] = True
    seeks: ClassVar[Literal["condorcet", "copeland"]] = "condorcet"
    settles_for_copeland: ClassVar[bool] = False
    final: ClassVar[bool] = True
    state_type: ClassVar[type[State]] = State

    n_arms: int
    _counts: WinCounts
    _generator: Generator
    # (K,), drawn once from the seed: ties go to the arm with the larger priority. The champion is
    # as random as with a draw for each tie, but asking for it changes nothing.
    _priority: Integers
    _tracked: list[FromCounts]

    @abstractmethod
    def _choose(self, t: int) -> tuple[int, int]:
        """The pair for the duel of step t, counting from 1; not called after the horizon."""

    @abstractmethod
    def candidates(self) -> int:
        """How many arms have not been ruled out. Asking changes nothing."""

    def explain(self, first: int, second: int, arms: Sequence[str]) -> str:
        """Why two different arms are compared now, in a sentence with the numbers that decide.

        For people only; asking changes nothing. By default it states the counts.

        Args:
            first: an arm.
            second: another arm.
            arms: the names of all arms.
        """
        wins, candidates = self._counts.wins, self.candidates()
        return by_counts(self.summary, wins, candidates, (first, second), arms)

    def _begin(self) -> None:  # noqa: B027 - the counts may be all it keeps
        """Set up what the algorithm keeps besides the counts, which may already hold duels."""

    def _track(self, derived: AnyFromCounts) -> AnyFromCounts:
        """Keep what follows from the counts up to date; for `_begin`."""
        self._tracked.append(derived)
        return derived

    def _restored(self) -> None:  # noqa: B027 - the fields may be independent of all else
        """Check the fields of a restored state against each other; set up what follows from them.

        Raises:
            PolicyError: they do not fit together, or do not fit the counts.
        """

    def _learned(self, first: int, second: int, first_wins: float, count: int) -> None:  # noqa: ARG002
        """Update what is kept, after `count` identical duels of a pair have been counted."""
        for derived in self._tracked:
            derived.refresh(first, second)

    def _learned_many(self, duels: Duels) -> None:
        """As `_learned`, after many duels; pairs may repeat, and may be an arm with itself."""
        pairs = distinct_pairs(duels.first, duels.second, self.n_arms)
        for derived in self._tracked:
            derived.refresh_many(*pairs)

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        """Note how many duels of a pair the current call has proposed; 0 when the call ends."""
        for derived in self._tracked:
            derived.mark_in_flight(first, second, in_flight)

    def _winner(self) -> int | None:
        """The only arm left, if the algorithm has eliminated all others permanently."""
        return None

    def _choose_ahead(self, t: int, limit: int) -> tuple[Integers, Integers]:
        """Array (m, 2) of pairs from step t on, and how often each is played, (m,).

        No outcome can change them; a simulation takes them in one step. The default is one duel, or
        `_duels_alone`.
        """
        first, second = self._choose(t)
        times = self._duels_alone(first, t, limit) if first == second and limit > 1 else 1
        return np.array([[first, second]], dtype=np.int64), np.array([times], dtype=np.int64)

    def _duels_alone(self, arm: int, t: int, limit: int) -> int:  # noqa: ARG002
        """How many times in a row, from step t on, `_choose` gives this arm against itself.

        From 1 to `limit`; the choices after the first must draw nothing from the generator.
        """
        return limit if self._winner() is not None else 1

    def _rank(self) -> Integers:
        """(K,) different numbers: larger for an arm that beats more others, then by priority."""
        rank: Integers = self._counts.beats * self.n_arms + self._priority
        return rank

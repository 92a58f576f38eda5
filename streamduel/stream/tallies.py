"""Counts of an experiment: records by outcome, clicks out of order, duels by arm and segment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np
from msgspec import structs

from streamduel.config.experiment import ExperimentSettings
from streamduel.policies import Duels
from streamduel.preference.arrays import Integers
from streamduel.records import Duels as CountedDuels
from streamduel.records import Segment
from streamduel.stream.coding import OUTCOMES, TIE
from streamduel.stream.segments import Segments

Count = Annotated[int, msgspec.Meta(ge=0)]

TieRow: TypeAlias = tuple[int, int, Annotated[int, msgspec.Meta(ge=1, le=2**63 - 1)]]
"""Two arms, the lower first, and the number of their ties."""


class Outcomes(msgspec.Struct):
    """The number of an experiment's records by outcome.

    Attributes:
        accepted: applied; of two-part impressions, the impression and every joined click.
        duplicate: repeats an id of the dedupe window.
        dead_letter: refused.
        late: clicks on an impression whose join window is closed.
        unjoined: clicks whose impression did not arrive.
        capped: exceed the cap of their client; of two-part impressions, the impression.
    """

    accepted: Count = 0
    duplicate: Count = 0
    dead_letter: Count = 0
    late: Count = 0
    unjoined: Count = 0
    capped: Count = 0

    @property
    def total(self) -> int:
        """The number of all records."""
        return sum(structs.astuple(self))

    def state(self, *, capped: bool) -> dict[str, int]:
        """What the hard state contains.

        Args:
            capped: whether the experiment has a cap. Without one, the state is that of releases
                which had no caps, and hashes equal.
        """
        state = structs.asdict(self)
        if not capped:
            del state["capped"]
        return state


class OutOfOrder(msgspec.Struct):
    """Clicks that are lost because the click log is not in the order of time; they decide nothing.

    A record is behind if its own time is before stream time by more than the join window: in the
    order of time, it would have come earlier.

    Attributes:
        clicks: all of them.
        late: clicks behind that did not find their impression open.
        expired: pending clicks whose impression did not arrive in time.
        impressions: impressions behind; an expired click may have waited for one of them.
    """

    clicks: Count = 0
    late: Count = 0
    expired: Count = 0
    impressions: Count = 0

    @property
    def lost(self) -> int:
        """How many clicks the order has lost, approximately.

        A click behind that waits for its impression is counted twice if it expires.

        >>> OutOfOrder(clicks=9, late=2, expired=3).lost, OutOfOrder(9, 2, 3, impressions=1).lost
        (2, 5)
        >>> OutOfOrder(clicks=3, late=3, expired=3, impressions=1).lost
        3
        """
        return min(self.clicks, self.late + (self.expired if self.impressions else 0))

    def state(self) -> dict[str, Any]:
        """What the hard state contains: nothing before the first count."""
        counts = structs.asdict(self)
        return {"disorder": counts} if any(counts.values()) else {}


class ArmCounts(msgspec.Struct):
    """The number of duels of each arm since the experiment began or was reset.

    A policy's own counts decrease when it forgets old duels, or when an arm retires and the duels
    against it are removed. These counts do not.

    Attributes:
        alone: (K,), how often each arm was served alone.
        fought: (K,), duels against other arms.
    """

    alone: list[Count]
    fought: list[Count]

    @classmethod
    def of(cls, n_arms: int) -> ArmCounts:
        """No duels yet."""
        return cls([0] * n_arms, [0] * n_arms)

    def count(self, first: int, second: int, times: int = 1) -> None:
        """Count duels of one pair."""
        if first == second:
            self.alone[first] += times
        else:
            self.fought[first] += times
            self.fought[second] += times

    def count_many(self, firsts: Integers, seconds: Integers) -> None:
        """Count one duel of each of these pairs."""
        alone = firsts[firsts == seconds]
        self.fought = _add(self.fought, np.concatenate((firsts, seconds)), 1)
        if len(alone):
            self.alone = _add(self.alone, alone, 1)
            self.fought = _add(self.fought, alone, -2)

    def add_arm(self) -> None:
        """Append an arm."""
        self.alone.append(0)
        self.fought.append(0)

    def retire_arm(self, arm: int) -> None:
        """Remove an arm; the others keep their counts."""
        del self.alone[arm]
        del self.fought[arm]


class PairTies:
    """How many duels of each pair were ties.

    The wins of a policy contain a tie as half a win each way, which does not show the number of
    ties. State of releases before this count holds none: earlier ties are unknown.

    Args:
        n_arms: K.
        rows: a former `state()`.

    Attributes:
        matrix: (K, K), symmetric.

    >>> ties = PairTies(3)
    >>> ties.count(2, 0, times=4)
    >>> ties.state()
    [[0, 2, 4]]
    """

    __slots__ = ("matrix",)

    def __init__(self, n_arms: int, rows: Iterable[TieRow] = ()) -> None:
        self.matrix: Integers = np.zeros((n_arms, n_arms), dtype=np.int64)
        for first, second, times in rows:
            self.count(first, second, times)

    def count(self, first: int, second: int, times: int = 1) -> None:
        """Count ties of one pair of different arms."""
        self.matrix[first, second] += times
        self.matrix[second, first] += times

    def count_many(self, firsts: Integers, seconds: Integers) -> None:
        """Count one tie of each of these pairs of different arms."""
        np.add.at(self.matrix, (firsts, seconds), 1)
        np.add.at(self.matrix, (seconds, firsts), 1)

    def add_arm(self) -> None:
        """Append an arm."""
        self.matrix = np.pad(self.matrix, (0, 1))

    def retire_arm(self, arm: int) -> None:
        """Remove an arm and its ties."""
        self.matrix = np.delete(np.delete(self.matrix, arm, axis=0), arm, axis=1)

    def state(self) -> list[list[int]]:
        """The pairs with ties, in ascending order, each as [arm, arm, ties]."""
        first, second = np.nonzero(np.triu(self.matrix))
        rows: list[list[int]] = np.stack((first, second, self.matrix[first, second]), 1).tolist()
        return rows


class DuelCounts:
    """The duels of an experiment by arm, pair and segment, for people; no decision uses them.

    Args:
        settings: of the experiment.
        n_arms: K.
        state: a former `state()`; None for no duels.

    Attributes:
        by_arm: the number of duels by arm.
        pair_ties: the number of duels that were ties, by pair.
        segments: the duels by segment.
        ties: impressions and duels won by neither side, dropped ones included.
    """

    __slots__ = ("by_arm", "pair_ties", "segments", "ties")

    def __init__(
        self, settings: ExperimentSettings, n_arms: int, state: Mapping[str, Any] | None
    ) -> None:
        saved = state or {}
        self.by_arm = ArmCounts.of(n_arms)
        if state is not None:
            self.by_arm = msgspec.convert(state["by_arm"], ArmCounts)
        self.pair_ties = PairTies(n_arms, saved.get("pair_ties", ()))
        self.segments = Segments(settings.segments, n_arms, **saved.get("segments", {}))
        self.ties: int = saved.get("ties", 0)

    def learned(self, first: int, second: int, code: int) -> None:
        """Count one duel that the policy has learned.

        Args:
            first: its first arm.
            second: its second arm.
            code: its code, see `Coder`.
        """
        self.by_arm.count(first, second)
        if code % OUTCOMES == TIE and first != second:
            self.ties += 1
            self.pair_ties.count(first, second)

    def learned_many(self, duels: Duels) -> None:
        """Count duels that the policy has learned, as `learned` for each."""
        self.by_arm.count_many(duels.first, duels.second)
        ties = np.flatnonzero(duels.first_wins == 0.5)
        if len(ties):
            firsts, seconds = duels.first[ties], duels.second[ties]
            apart = firsts != seconds
            self.ties += int(np.count_nonzero(apart))
            self.pair_ties.count_many(firsts[apart], seconds[apart])

    def learned_counts(self, first: int, second: int, first_wins: float, times: int) -> None:
        """Count equal duels of a `duels` record that the policy has learned."""
        self.by_arm.count(first, second, times)
        if first_wins == 0.5:
            self.pair_ties.count(first, second, times)

    def accepted_counts(self, event: CountedDuels, first: int, second: int, ties: int) -> None:
        """Count a `duels` record by segment, and its ties.

        Args:
            event: the record.
            first: the index of its arm `a`.
            second: the index of its arm `b`.
            ties: those that count; the record's, or none where ties are dropped.
        """
        self.ties += event.ties
        numbers = self.segments_of(event.segment)
        self.segments.count(numbers, first, second, event.wins_a, event.wins_b, ties)

    def segments_of(self, segment: Segment | None) -> tuple[int, ...]:
        """The segments that a record belongs to."""
        return self.segments.numbers(segment)

    def in_segments(self, numbers: tuple[int, ...], code: int) -> None:
        """Count one duel in some segments."""
        pair, outcome = divmod(code, OUTCOMES)
        first, second = divmod(pair, len(self.by_arm.alone))
        losses, wins, ties = (int(outcome == each) for each in range(OUTCOMES))
        self.segments.count(numbers, first, second, wins, losses, ties)

    def add_arm(self) -> None:
        """Append an arm."""
        for each in (self.by_arm, self.pair_ties, self.segments):
            each.add_arm()

    def retire_arm(self, arm: int) -> None:
        """Remove an arm and its duels; the other arms keep their counts against each other."""
        for each in (self.by_arm, self.pair_ties, self.segments):
            each.retire_arm(arm)

    def reset(self, settings: ExperimentSettings) -> None:
        """Forget all duels, but not the number of `ties`."""
        n_arms = len(self.by_arm.alone)
        self.by_arm, self.pair_ties = ArmCounts.of(n_arms), PairTies(n_arms)
        self.segments = Segments(settings.segments, n_arms, self.segments.since)

    def state(self) -> dict[str, Any]:
        """What the hard state contains."""
        return {
            "by_arm": msgspec.to_builtins(self.by_arm),
            "ties": self.ties,
            "pair_ties": self.pair_ties.state(),
            **({"segments": self.segments.state()} if self.segments else {}),
        }


def _add(counts: list[int], arms: Integers, times: int) -> list[int]:
    added = np.bincount(arms, minlength=len(counts)).tolist()
    return [count + times * each for count, each in zip(counts, added, strict=True)]

"""What the counts of an experiment say, in the numbers that people are shown.

Every table, page, metric and report takes its numbers from here, so that all show the same.

* **confidence** that the champion is the winner, and **progress** towards enough of it;
* for each arm the **evidence** that it does not beat all others, and whether it is **out**;
* for each pair the duels, and a **confidence sequence** of the win rate: intervals of all pairs of
  the experiment that hold together, at all times, with the probability `level`.

All are valid at any time, after every duel (`streamduel.preference.evidence`, `elimination`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor
from typing import Final, NamedTuple

import msgspec
import numpy as np

from streamduel.preference.arrays import Floats
from streamduel.preference.elimination import against_of
from streamduel.preference.evidence import (
    Winner,
    comparisons,
    confidence,
    confidence_at,
    intervals_of,
    nats,
    nats_of_all,
    unbeaten,
)
from streamduel.preference.logarithm import ln

LEVEL: Final = 0.95
"""The confidence at which a champion is called the winner, and that of intervals: the convention of
statistics."""

INTERVALS: Final = (
    "The intervals hold for all pairs at once, which takes more evidence than the champion needs:"
    " it can be sure while its intervals include 50 %."
)
"""Beside every table of intervals: else a sure champion looks undecided."""


def percent(share: float) -> str:
    """A share in per cent with one digit.

    >>> percent(0.5476)
    '54.8 %'
    """
    return f"{100 * share:.1f} %"


def at_least(share: float) -> str:
    """A lower bound of a confidence: rounded down, and never 100 %.

    >>> at_least(0.954), at_least(0.99996), at_least(1.0)
    ('95.4 %', '99.9 %', '99.9 %')
    """
    tenths = floor(round(1000 * share, 6))  # 0.954 is a little less than 954 thousandths
    return f"{min(tenths, 999) / 10:.1f} %"


def ends_within_margin(confidence: float, unbeaten: float, status: str) -> bool:
    """Whether people are told that no arm beats the champion by more than the margin.

    It is the answer if the champion does not surely beat all others.

    Args:
        confidence: of the verdict.
        unbeaten: of the verdict.
        status: of the experiment, which may end with less confidence.
    """
    return confidence < LEVEL and (unbeaten >= LEVEL or (status == "finished" and unbeaten > 0))


class PairResult(msgspec.Struct, frozen=True):
    """The duels of a pair.

    Attributes:
        a: an arm.
        b: another arm.
        duels: wins_a + wins_b + ties.
        wins_a: duels that a won.
        wins_b: duels that b won.
        ties: duels that neither won.
        win_rate: the share of duels that a won, a tie being half a win; None without a duel.
        interval: the lower and the upper end of the confidence sequence of the win rate.
    """

    a: str
    b: str
    duels: int
    wins_a: int
    wins_b: int
    ties: int
    win_rate: float | None
    interval: tuple[float, float]


def some_include_half(arm: str, pairs: Iterable[PairResult]) -> bool:
    """Whether the interval of a pair of this arm includes 50 %."""
    ends = (pair.interval for pair in pairs if arm in {pair.a, pair.b})
    return any(low <= 0.5 <= high for low, high in ends)


class Interval(NamedTuple):
    """A win rate, None without a duel, and its confidence sequence."""

    rate: float | None
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Verdict:
    """What is known of the winner; numbers that cost much are computed when asked for.

    Attributes:
        wins: (K, K): [i, j] is how often i has beaten j, a tie being half a win each way.
        ties: (K, K), symmetric: the ties of each pair that `wins` contains as halves.
        champion: the arm that the policy names.
        seeks: the winner that the policy seeks.
        level: the confidence that is enough.
        confidence: a lower bound of the probability that the champion is the winner.
        progress: how much of the evidence for `level` there is, from 0 to 1: the mean over all
            comparisons that are needed, of which each needs the same. It rises before confidence
            does, and is 1 when confidence reaches `level`.
        margin: a difference in preference that does not matter.

    >>> wins = np.array([[0.0, 560.0, 600.0], [440.0, 0.0, 500.0], [400.0, 500.0, 0.0]])
    >>> verdict = Verdict.of(wins, np.zeros((3, 3)), champion=0, seeks="condorcet")
    >>> round(verdict.confidence, 3), verdict.progress, verdict.decided
    (0.992, 1.0, True)
    >>> verdict.evidence.round(2).tolist(), round(verdict.required, 2), verdict.out.tolist()
    ([0.0, 4.55, 16.95], 3.0, [False, True, True])
    >>> pair = next(verdict.pairs(["ltr", "bm25", "random"]))
    >>> pair.a, pair.b, pair.wins_a, pair.wins_b, pair.win_rate
    ('ltr', 'bm25', 560, 440, 0.56)
    >>> [round(end, 3) for end in pair.interval]
    [0.505, 0.615]
    """

    wins: Floats
    ties: Floats
    champion: int
    seeks: Winner
    level: float
    confidence: float
    progress: float
    margin: float = 0.0

    @classmethod
    def of(
        cls,
        wins: Floats,
        ties: Floats,
        champion: int,
        seeks: Winner,
        level: float = LEVEL,
        margin: float = 0.0,
    ) -> Verdict:
        """The verdict on counts.

        Args:
            wins: (K, K): [i, j] is how often i has beaten j, a tie being half a win each way.
            ties: (K, K), symmetric: how many duels of each pair were ties. Ties that were not
                counted may be missing; a pair's half wins then show that there was one.
            champion: an arm.
            seeks: which winner.
            level: the confidence that is enough, from 0 to below 1.
            margin: a difference in preference that does not matter, from 0 to below 1/2.
        """
        needed = nats(level, len(wins), seeks)
        of_rivals = np.delete(comparisons(wins, champion, seeks), champion, axis=0)
        return cls(
            wins=wins,
            ties=ties,
            champion=champion,
            seeks=seeks,
            level=level,
            confidence=confidence_at(float(of_rivals.min()), len(wins), seeks),
            progress=float(np.minimum(of_rivals / needed, 1.0).mean()),
            margin=margin,
        )

    @property
    def decided(self) -> bool:
        """Whether there is any evidence for the champion, or no arm beats it by the margin.

        If not, it is only the arm that the policy would serve.
        """
        return self.progress > 0 or self.unbeaten >= self.level

    @property
    def required(self) -> float:
        """The evidence that puts an arm out, in nats: ln(1/δ), δ = 1 - `level`."""
        return -ln(1 - self.level)

    @cached_property
    def evidence(self) -> Floats:
        """(K,): the evidence against "this arm beats all others", in nats; 0 if there is none."""
        return self.evidence_of(range(len(self.wins)))

    def evidence_of(self, arms: Sequence[int]) -> Floats:
        """`evidence` of some arms, (k,)."""
        return np.maximum(against_of(self.wins, arms), 0.0)

    @property
    def out(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """(K,): whether each arm surely does not beat all others."""
        return np.asarray(self.evidence >= self.required)

    @property
    def no_winner(self) -> bool:
        """Whether surely no arm beats all others."""
        return bool(self.out.all())

    @cached_property
    def unsurpassed(self) -> float:
        """A lower bound of the probability that no arm beats more others than the champion."""
        return confidence(self.wins, self.champion, "copeland")

    @cached_property
    def unbeaten(self) -> float:
        """A lower bound of the probability that no arm beats the champion by more than `margin`.

        0 without a margin: confidence says more then.
        """
        return unbeaten(self.wins, self.champion, self.margin) if self.margin else 0.0

    def against(self, arm: int, rival: int) -> Interval:
        """The win rate of an arm against another, in the same numbers as `pairs`."""
        cells = ([arm], [rival])
        won, lost = self.wins[cells], self.wins.T[cells]
        low, high = intervals_of(won, lost, self._joint)
        duels = float(won[0] + lost[0])
        return Interval(float(won[0]) / duels if duels else None, float(low[0]), float(high[0]))

    @property
    def _joint(self) -> float:
        """The evidence against a preference outside of its interval: all pairs hold together."""
        return nats_of_all(len(self.wins), 1 - self.level)

    def bounds(self, among: Sequence[int]) -> tuple[Floats, Floats]:
        """The lower and the upper ends of the intervals of k arms, (k, k) each."""
        wins = self.wins[np.ix_(among, among)]
        return intervals_of(wins, wins.T, self._joint)

    def pairs(
        self, arms: Sequence[str], among: Sequence[int] | None = None
    ) -> Iterator[PairResult]:
        """Each pair of arms, in their order.

        Args:
            arms: K names.
            among: only the pairs of these arms, in this order; all if left out.
        """
        order = np.arange(len(arms)) if among is None else np.asarray(among, dtype=np.int64)
        for place, a in enumerate(order[:-1].tolist()):
            rivals = order[place + 1 :]
            won, lost, ties = self.wins[a, rivals], self.wins[rivals, a], self.ties[a, rivals]
            low, high = intervals_of(won, lost, self._joint)
            # Of an odd number of ties that were not counted, a half is left on each side.
            wins, losses = (np.floor(np.maximum(side - ties / 2, 0)) for side in (won, lost))
            columns = (won, won + lost, wins, losses, low, high)
            rows = zip(rivals.tolist(), *(each.tolist() for each in columns), strict=True)
            for b, credit, duels, wins_a, wins_b, lower, upper in rows:
                yield PairResult(
                    a=arms[a],
                    b=arms[b],
                    duels=int(duels),
                    wins_a=int(wins_a),
                    wins_b=int(wins_b),
                    ties=int(duels - wins_a - wins_b),
                    win_rate=credit / duels if duels else None,
                    interval=(lower, upper),
                )

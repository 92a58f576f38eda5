"""Evidence that an arm is not the Condorcet winner, and that an arm beats another, from counts."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt
from typing import Final, NamedTuple

import numpy as np

from streamduel.preference.array_logarithm import ln_each
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.counts import FromCounts
from streamduel.preference.evidence import RHO, wealth, wealth_each, wealth_of_pairs
from streamduel.preference.logarithm import ln

CASH: Final = 0.3
"""The share of a pair's wager that is not bet: a losing rival costs at most ln(1/0.3) nats."""

LN2: Final = ln(2)

UNITS: Final = 1 << 40
"""Units per nat: sums of integers do not depend on the order of the terms."""


ROUNDING: Final = 1e-3
"""Nats; far more than `wealth` is off, which approximates Φ."""

EXACT: Final = (-inf, -inf, -inf)
"""Lines below all values."""


class Marks(NamedTuple):
    """Some arms, and how long they stay the same.

    Attributes:
        marks: (K,).
        number: how many they are.
        turn: when this was computed.
        line: the evidence that they reach.
        until: the evidence that all of them reach.
    """

    marks: Booleans
    number: int
    turn: int = -1
    line: float = inf
    until: float = inf


def marks_of(marks: Booleans) -> Marks:
    """These arms."""
    return Marks(marks, int(np.count_nonzero(marks)))


NO_MARKS: Final = Marks(np.zeros(0, dtype=np.bool_), 0)


FEW: Final = 10
"""Up to this many pairs are faster one by one than as arrays."""


class Elimination(FromCounts):
    """For each arm, a wager against "it beats all others"; for each pair, one for either arm.

    An arm w has a bettor who puts a part of his wealth on each rival j. M_jw is the wealth, from 1,
    of a bet on j against w (`streamduel.preference.evidence.wealth`). The bettor keeps the share c
    of each pair as cash:

        E_w = ½ Π_j (c + (1 - c) M_jw)  +  ½ max_j M_jw / (K - 1).

    If w beats all others, no bet on a rival gains in expectation, whichever pairs duel: each factor
    is a nonnegative supermartingale that begins at 1, and changes only with its own pair. So are
    their product and the mean of all M_jw, which is no smaller than max_j M_jw / (K - 1): E_w is at
    most a supermartingale, and by Ville's inequality ever reaches 1/δ with a probability of at most
    δ. Therefore: the Condorcet winner, if there is one, is ever eliminated with a probability of at
    most δ. There is no union over arms or pairs. The product gains when several rivals are better
    than w, the maximum when one of many is.

    All sums are of integers: they are functions of the counts, not of the order of the duels.

    Most duels decide nothing, so with `lines` the effect of duels is computed only when it may
    matter (`growth`): the lost duels of an arm may add some nats before its evidence can reach a
    line.

    Args:
        wins: (K, K), live: [i, j] is how often i has beaten j, a tie being half a win each way. The
            caller that adds to them calls `refresh`.
        margin: a difference in preference that does not matter, from 0 to below 1/2.
        lines: what `against` and, twice, `safe` is compared with; by default everything is computed
            immediately.
        rising: whether the caller raises `lines` (`set_lines`).

    Attributes:
        against: (K,), live: a lower bound of ln E_w where it is above 0, in nats; below 0 as long
            as w wins. With `lines`, it may be out of date where both it and the true value are
            below the line; the same holds for `beats` and `safe`. After `settle` all is exact.
        beats: (K, K), live: [i, j] is ln M_ij, the evidence that i beats j.
        safe: (K, K), live: [i, j] is the evidence that j beats i by less than `margin`.
        turns: grows when a value has crossed its line; if the lines rise, also when one above it
            has changed.

    >>> wins = np.zeros((3, 3))
    >>> elimination = Elimination(wins)
    >>> wins[0, 1] = 40
    >>> elimination.refresh(0, 1)
    >>> elimination.against.round(3).tolist(), elimination.beats[0].round(3).tolist()
    ([-1.386, 10.349, -0.693], [0.0, 11.399, 0.0])

    Source: I. Waudby-Smith and A. Ramdas, "Estimating means of bounded random variables by
    betting", JRSS B 86(1), 2024 (wagers); J. Ville, "Étude critique de la notion de collectif",
    1939 (the inequality); the wager on one arm against all others is our own: docs/research.
    """

    def __init__(
        self,
        wins: Floats,
        margin: float = 0.0,
        lines: tuple[float, float, float] = EXACT,
        *,
        rising: bool = False,
    ) -> None:
        self._wins = wins
        self.margin = margin
        self.share = ln(len(wins) - 1)
        self.turns = 0
        self._rising = rising
        self.set_lines(*lines)
        self._count_all()
        self._seen = wins.copy()  # at the last `refresh`
        self._stale: Booleans = np.zeros(wins.shape, dtype=np.bool_)  # pairs that are not exact
        self._room: list[float] = [self._room_of(arm) for arm in range(len(wins))]

    def set_lines(self, out: float, sure: float, most: float) -> None:
        """Set `lines`; none may be lower than before."""
        self._out, self._sure, self._most = out, sure, most

    def _count_all(self) -> None:
        bets = wealth_each(self._wins, self._wins.T)
        self.beats: Floats = ln_each(bets)
        # [w, j]: ln(c + (1 - c) M_jw), in units; 0 for an arm and itself, as with unseen pairs.
        self.terms: Integers = (ln_each(CASH + (1 - CASH) * bets.T) * UNITS).astype(np.int64)
        self.safe: Floats = self.beats
        if self.margin:
            gift = (self._wins + self._wins.T) * self.margin
            self.safe = ln_each(wealth_each(self._wins + gift, self._wins.T - gift))
        self._sum()

    def _sum(self) -> None:
        """Compute what depends on the pairs of each arm."""
        self.units: list[int] = self.terms.sum(axis=1).tolist()
        self.most: list[float] = self.beats.max(axis=0).tolist()  # max_j ln M_jw
        largest = np.array(self.most) - self.share
        self.against: Floats = np.maximum(np.array(self.units) / UNITS, largest) - LN2
        self.turns += 1
        self._out_marks = NO_MARKS
        self._sure_marks = [NO_MARKS] * len(self.most)

    def out(self, line: float) -> Marks:
        """The arms against which there is this evidence, at least that of `lines`."""
        marks = self._out_marks
        if marks.turn != self.turns or not marks.line <= line <= marks.until:
            marks = self._out_marks = self._reach(self.against, line)
        return marks

    def surely_beaten(self, arm: int, line: float) -> Marks:
        """The arms that an arm beats with this evidence, at least that of `lines`."""
        marks = self._sure_marks[arm]
        if marks.turn != self.turns or not marks.line <= line <= marks.until:
            marks = self._sure_marks[arm] = self._reach(self.safe[arm], line)
        return marks

    def _reach(self, values: Floats, line: float) -> Marks:
        """The arms whose values reach a line."""
        marks: Booleans = values >= line
        number = int(np.count_nonzero(marks))
        until = values[marks].min().item() if number else inf
        return Marks(marks, number, self.turns, line, until)

    def _room_of(self, arm: int) -> float:
        """By how many nats the evidence against an arm may grow before it can reach a line."""
        lowest = min(self._sure, self._most)
        return min(self._out - self.against.item(arm), lowest - self.most[arm]) - ROUNDING

    def refresh_many(self, first: Integers, second: Integers) -> None:
        """Update what depends on the counts of many pairs, if that may matter."""
        if len(first) <= FEW:
            super().refresh_many(first, second)
        elif self.margin or self._out == -inf:
            self._count_many(first, second)
        else:
            self._refresh_many(first, second)

    def _refresh_many(self, first: Integers, second: Integers) -> None:
        pairs = np.concatenate((first, second)), np.concatenate((second, first))
        wins, losses = self._wins[pairs], self._wins[pairs[::-1]]
        growths = growth_each(wins, losses, wins - self._seen[pairs])
        self._seen[pairs] = wins
        self._stale[pairs] = True
        room = self._room - np.bincount(pairs[1], growths, len(self._room))
        self._room = room.tolist()
        late = (room < 0).nonzero()[0]
        if np.count_nonzero(self._stale[late]) > FEW:
            self.settle()  # of all: the next time is then as far off as it can be
        else:
            for arm in late.tolist():
                self._settle(arm)

    def _count_many(self, first: Integers, second: Integers) -> None:
        """Compute what depends on the counts of some pairs."""
        pairs, others = (first, second), (second, first)
        wins, losses = self._wins[pairs], self._wins[others]
        ahead, behind = wealth_of_pairs(np.maximum(wins, losses), np.minimum(wins, losses))
        leads = wins >= losses
        bets = np.array((np.where(leads, ahead, behind), np.where(leads, behind, ahead)))
        logs = ln_each(np.array((bets, CASH + (1 - CASH) * bets)))
        terms = (logs[1] * UNITS).astype(np.int64)
        self.beats[pairs], self.beats[others] = logs[0]
        self.terms[others], self.terms[pairs] = terms
        if self.margin:
            gift = (wins + losses) * self.margin
            self.safe[pairs] = ln_each(wealth_each(wins + gift, losses - gift))
            self.safe[others] = ln_each(wealth_each(losses + gift, wins - gift))
        self._sum()

    def refresh(self, first: int, second: int) -> None:
        """Update what depends on the counts of one pair, if that may matter."""
        if first == second:
            return
        if self.margin or self._out == -inf:
            self._count(first, second)
            return
        wins, seen, room = self._wins, self._seen, self._room
        won, lost = wins.item(first, second), wins.item(second, first)
        first_lost, second_lost = lost - seen.item(second, first), won - seen.item(first, second)
        seen[first, second], seen[second, first] = won, lost
        if first_lost:
            room[first] -= growth(lost, won, first_lost)
        if second_lost:
            room[second] -= growth(won, lost, second_lost)
        self._stale[first, second] = self._stale[second, first] = True
        if room[first] < 0:
            self._settle(first)
        if room[second] < 0:
            self._settle(second)

    def settle(self) -> None:
        """Compute all that is out of date."""
        self._count_many(*np.triu(self._stale).nonzero())
        self._stale.fill(False)
        self._room = [self._room_of(arm) for arm in range(len(self._room))]

    def _settle(self, arm: int) -> None:
        """Compute what is out of date about an arm."""
        for rival in self._stale[arm].nonzero()[0].tolist():
            self._count(arm, rival)
        self._stale[arm] = self._stale[:, arm] = False
        self._room[arm] = self._room_of(arm)

    def _count(self, first: int, second: int) -> None:
        """Compute what depends on the counts of one pair."""
        first_wins, second_wins = self._wins.item(first, second), self._wins.item(second, first)
        if first_wins < second_wins:
            first, second, first_wins, second_wins = second, first, second_wins, first_wins
        ahead, behind = wealth(first_wins, second_wins)
        self._set(first, second, ahead)
        self._set(second, first, behind)
        if self.margin:
            gift = (first_wins + second_wins) * self.margin
            self.safe[first, second] = ln(wager(first_wins + gift, second_wins - gift))
            self.safe[second, first] = ln(wager(second_wins + gift, first_wins - gift))
            self.turns += 1

    def _set(self, arm: int, rival: int, on_arm: float) -> None:
        """Set M_ij of an arm i and a rival j, and the evidence against the rival."""
        column = self.beats[:, rival]
        before, now = column.item(arm), ln(on_arm)
        column[arm] = now
        most = self.most[rival]
        if now >= most:
            self.most[rival] = now
        elif before == most:
            self.most[rival] = column.max().item()
        term = int(ln(CASH + (1 - CASH) * on_arm) * UNITS)
        self.units[rival] += term - self.terms.item(rival, arm)
        self.terms[rival, arm] = term
        most = self.most[rival] - self.share
        known = self.against.item(rival)
        self.against[rival] = found = max(self.units[rival] / UNITS, most) - LN2
        if (
            self._crosses(known, found, self._out)
            or self._crosses(before, now, self._sure)
            or self._crosses(before, now, self._most)
        ):
            self.turns += 1

    def _crosses(self, before: float, now: float, line: float) -> bool:
        return (before < line) != (now < line) or (self._rising and now >= line)


def growth(wins: float, losses: float, won: float) -> float:
    """By how many nats ln M may have grown with the last won duels; a bound.

    M = E exp(λ S - λ² v / 2) is a mean over λ > 0, so each outcome has a distribution of λ
    proportional to the integrand: the positive half of a normal distribution with the mean
    S / (v + ρ) and the variance 1 / (v + ρ). With k won duels S grows by k / 2, and v by k / 4.
    By Jensen's inequality, ln M grows by at most k (a / 2 - a² / 8), a being the mean of λ after
    the duels: by no more than k a / 2, and than k / 2. A mean of the positive half is no more
    than max(mean, 0) + 0.8 standard deviations. A duel that is not won adds nothing.

    Args:
        wins: now.
        losses: now.
        won: how many of the wins are new, 1/2 for a tie.

    >>> round(growth(60, 40, 1), 3), round(ln(wealth(60, 40)[0]) - ln(wealth(59, 40)[0]), 3)
    (0.221, 0.141)
    """
    width = (wins + losses) / 4 + RHO
    return won * min(max(wins - losses, 0.0) / (4 * width) + 0.4 / sqrt(width), 0.5)


def growth_each(wins: Floats, losses: Floats, won: Floats) -> Floats:
    """`growth` of every element."""
    width = (wins + losses) / 4 + RHO
    slopes = np.maximum(wins - losses, 0.0) / (4 * width) + 0.4 / np.sqrt(width)
    growths: Floats = won * np.minimum(slopes, 0.5)
    return growths


def against_of(wins: Floats, arms: Sequence[int]) -> Floats:
    """`Elimination.against` of some arms, in the same bits; O(K) for each of them.

    Args:
        wins: (K, K), as for `Elimination`.
        arms: (k,).

    Returns:
        (k,), in nats.
    """
    bets = wealth_each(wins[:, arms], wins[arms].T)  # [j, w]: M_jw
    units = (ln_each(CASH + (1 - CASH) * bets) * UNITS).astype(np.int64).sum(axis=0)
    most = ln_each(bets).max(axis=0) - ln(len(wins) - 1)
    found: Floats = np.maximum(units / UNITS, most) - LN2
    return found


def wager(wins: float, losses: float) -> float:
    """`wealth` of the arm with these wins, whether they are more or fewer."""
    return wealth(wins, losses)[0] if wins >= losses else wealth(losses, wins)[1]


def condorcet_winner_possible(wins: Floats, delta: float) -> bool:
    """Whether some arm may beat all others; False once each is surely beaten by another one.

    If there is a Condorcet winner, the probability that this is ever False is at most δ.

    Args:
        wins: (K, K), as for `Elimination`.
        delta: δ, between 0 and 1.

    >>> cycle = np.array([[0.0, 90.0, 10.0], [10.0, 0.0, 90.0], [90.0, 10.0, 0.0]])
    >>> condorcet_winner_possible(cycle, delta=0.05), condorcet_winner_possible(cycle / 10, 0.05)
    (False, True)
    """
    return bool((against_of(wins, range(len(wins))) < -ln(delta)).any())

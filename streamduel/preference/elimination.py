"""Evidence that an arm is not the Condorcet winner, and that an arm beats another, from counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from streamduel.preference.array_logarithm import ln_each
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.counts import FromCounts
from streamduel.preference.evidence import wealth, wealth_each
from streamduel.preference.logarithm import ln

CASH: Final = 0.3
"""The share of a pair's wager that is not bet: a rival that loses costs at most ln(1/0.3) nats."""

LN2: Final = ln(2)

UNITS: Final = 1 << 40
"""Units per nat: sums of integers do not depend on the order of the terms."""


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
    δ. Therefore: the Condorcet winner, if there is one, is ever put out with a probability of at
    most δ. There is no union over arms or pairs. The product gains when several rivals are better
    than w, the maximum when one of many is.

    All sums are of integers: they are functions of the counts, not of the order of the duels.

    Args:
        wins: (K, K), live: [i, j] is how often i has beaten j, a tie being half a win each way. The
            caller that adds to them calls `refresh`.
        margin: a difference in preference that does not matter, from 0 to below 1/2.

    Attributes:
        against: (K,), live: a lower bound of ln E_w where it is above 0, in nats; below 0 as long
            as w wins.
        beats: (K, K), live: [i, j] is ln M_ij, the evidence that i beats j.
        safe: (K, K), live: [i, j] is the evidence that j beats i by less than `margin`.

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

    def __init__(self, wins: Floats, margin: float = 0.0) -> None:
        self._wins = wins
        self.margin = margin
        self.share = ln(len(wins) - 1)
        self._count_all()

    def _count_all(self) -> None:
        bets = wealth_each(self._wins, self._wins.T)
        self.beats: Floats = ln_each(bets)
        # [w, j]: ln(c + (1 - c) M_jw), in units; 0 for an arm and itself, as with unseen pairs.
        self.terms: Integers = (ln_each(CASH + (1 - CASH) * bets.T) * UNITS).astype(np.int64)
        self.units: list[int] = self.terms.sum(axis=1).tolist()
        self.most: list[float] = self.beats.max(axis=0).tolist()  # max_j ln M_jw
        self.safe: Floats = self.beats
        if self.margin:
            gift = (self._wins + self._wins.T) * self.margin
            self.safe = ln_each(wealth_each(self._wins + gift, self._wins.T - gift))
        largest = np.array(self.most) - self.share
        self.against: Floats = np.maximum(np.array(self.units) / UNITS, largest) - LN2

    def refresh_many(self, first: Integers, second: Integers) -> None:
        """Update what depends on the counts of many pairs; from so many on, of all at once."""
        if len(first) < len(self._wins):
            super().refresh_many(first, second)
        else:
            self._count_all()

    def refresh(self, first: int, second: int) -> None:
        """Update what depends on the counts of one pair."""
        if first == second:
            return
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
        self.against[rival] = max(self.units[rival] / UNITS, most) - LN2


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
    return bool((Elimination(wins).against < -ln(delta)).any())

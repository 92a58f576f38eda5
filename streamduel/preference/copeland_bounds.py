"""Bounds of Copeland scores: how many arms each arm may beat, and how many it surely beats."""

from __future__ import annotations

from math import inf

import numpy as np

from streamduel.preference.arrays import Booleans, Integers
from streamduel.preference.bounds import PairBounds
from streamduel.preference.counts import WinCounts


class CopelandBounds(PairBounds):
    """Which pairs are decided: u_ij, l_ij = w_ij / n_ij ± sqrt(scale / n_ij) on one side of 1/2.

    `scale` (α ln t) grows with every duel, so all K² bounds change at each step, but few cross 1/2.
    A pair is decided while the scale is below its *margin*, n_ij (1/2 - w_ij / n_ij)², which only a
    duel of the pair changes. So a step has two parts: the pair of the duel gets a new margin
    (`refresh`), and the pairs whose margin the scale has just reached become undecided again
    (`advance`). Both cost O(K), because the smallest margin of each row is kept.

    l_ij = 1 - u_ji, so "j's upper bound over i is below 1/2" and "i's lower bound over j is above
    1/2" are the same statement: i surely beats j. Bounds of exactly 1/2 need no rule: α is a
    rational number, so α ln t is irrational from t = 2 on, and a margin is rational.

    The conventions are those of `PairBounds`, and l = 1 - u, so an unseen pair is undecided.

    Attributes:
        beats: (K, K), [i, j]: i surely beats j, l_ij > 1/2. Here and below: as of the last
            `advance`, live, read-only.
        undecided: (K, K), [i, j]: 1/2 is within l_ij and u_ij; false on the diagonal.
        wins: (K,): the lower Copeland scores, how many arms each arm surely beats.
        losses: (K,): how many arms surely beat it; K - 1 less this is the upper Copeland score.
        turns: grows whenever any of these changes, which is rare.
        next_turn: the smallest scale at which the next decided pair becomes undecided.

    >>> counts = WinCounts(3)
    >>> bounds = CopelandBounds(counts)
    >>> counts.add_one(0, 1, first_wins=1, count=8)
    >>> bounds.refresh(0, 1)
    >>> bounds.advance(scale=1.5)
    >>> bounds.wins.tolist(), bounds.losses.tolist(), bounds.next_turn
    ([1, 0, 0], [0, 1, 0], 2.0)
    >>> bounds.advance(scale=2.0)
    >>> bounds.undecided[0].tolist()
    [False, True, True]

    Source: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS 2015,
    Algorithm 1, lines 6 and 7.
    """

    def __init__(self, counts: WinCounts) -> None:
        super().__init__(counts)
        n_arms = len(counts.wins)
        self._flying: dict[tuple[int, int], int] = {}  # duels in flight, the lower arm first
        # [i, j] with i < j: the margin of a pair that is decided, else infinity.
        self._margins = np.full((n_arms, n_arms), inf)
        self._smallest = np.full(n_arms, inf)
        self.next_turn = inf
        # No undecided pair has a larger margin: the scale may go back as far as this.
        self._passed = 0.0
        self._scale = 0.0
        self._stale = True
        self.beats: Booleans = np.zeros((n_arms, n_arms), dtype=np.bool_)
        self.undecided: Booleans = ~np.eye(n_arms, dtype=np.bool_)
        self.wins: Integers = np.zeros(n_arms, dtype=np.int64)
        self.losses: Integers = np.zeros(n_arms, dtype=np.int64)
        self.turns = 0

    def mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        """Update the margin of one pair, with this many of its duels in flight."""
        if first == second:
            return
        if in_flight or self._flying:
            pair = (first, second) if first < second else (second, first)
            if in_flight:
                self._flying[pair] = in_flight
            else:
                self._flying.pop(pair, None)
        if not self._stale:
            self._set(first, second, in_flight)

    def _set(self, first: int, second: int, in_flight: int) -> None:
        """Set the means and the trials of one pair, and update its margin."""
        first_mean, second_mean, trials = self._estimate(first, second, in_flight)
        self._means[second, first] = first_mean
        self._means[first, second] = second_mean
        self._trials[second, first] = self._trials[first, second] = trials
        gap = 0.5 - min(first_mean, second_mean)
        if gap < 0:  # an unseen pair
            return
        if first_mean < second_mean:
            self._judge(second, first, trials * (gap * gap))
        else:
            self._judge(first, second, trials * (gap * gap))

    def refresh_many(self, first: Integers, second: Integers) -> None:  # noqa: ARG002
        """Have everything updated by the next `advance`."""
        if len(first):
            self._stale = True

    def advance(self, scale: float) -> None:
        """Update everything for this scale.

        Args:
            scale: the numerator in the bonus, larger than 0 once a duel has been seen.
        """
        if self._stale or scale < self._passed:
            self._rebuild(scale)
            return
        self._scale = scale
        if scale < self.next_turn:
            return
        for _ in self._columns:
            self._release()
            if scale < self.next_turn:
                return
        self._rebuild(scale)  # one pair after the other is no longer faster

    def _judge(self, leader: int, other: int, margin: float) -> None:
        """Set a pair's new margin."""
        decided = margin > self._scale
        if self.beats.item(other, leader):
            self._turn(other, leader, decided=False)
        if self.beats.item(leader, other) != decided:
            self._turn(leader, other, decided=decided)
        if not decided:
            self._passed = max(self._passed, margin)
            margin = inf
        low, high = (leader, other) if leader < other else (other, leader)
        self._keep_margin(low, high, margin)

    def _release(self) -> None:
        """Make the pair with the smallest margin undecided."""
        low = int(self._smallest.argmin())
        high = int(self._margins[low].argmin())
        self._passed = self.next_turn
        if self.beats.item(low, high):
            self._turn(low, high, decided=False)
        else:
            self._turn(high, low, decided=False)
        self._keep_margin(low, high, inf)

    def _turn(self, winner: int, loser: int, *, decided: bool) -> None:
        """Note that one arm surely beats another, or no longer does."""
        self.beats[winner, loser] = decided
        self.undecided[winner, loser] = self.undecided[loser, winner] = not decided
        change = 1 if decided else -1
        self.wins[winner] += change
        self.losses[loser] += change
        self.turns += 1

    def _keep_margin(self, low: int, high: int, margin: float) -> None:
        """Set the margin of a pair; update the smallest of its row and of all."""
        before = self._margins.item(low, high)
        if margin == before:
            return
        self._margins[low, high] = margin
        if margin <= self._smallest.item(low):
            self._smallest[low] = margin
        elif before == self._smallest.item(low):  # another may be smallest
            row = self._margins[low]
            self._smallest[low] = row[row.argmin()]
        else:
            return
        self.next_turn = self._smallest.item(int(self._smallest.argmin()))

    def _rebuild(self, scale: float) -> None:
        """Update everything, whole matrices at a time."""
        played = self._wins + self._wins.T
        seen = played > 0
        # For an unseen pair the mean is its whole bound of 2, and on the diagonal 1/2; their
        # infinitely many trials add no bonus.
        self._means.fill(2.0)
        np.fill_diagonal(self._means, 0.5)
        self._trials.fill(inf)
        np.divide(self._wins, played, out=self._means.T, where=seen)
        np.copyto(self._trials, played, where=seen)
        gaps = np.maximum(0.5 - self._means.T, 0.0)
        margins = played * (gaps * gaps)  # in the row of the arm that is behind
        lost = margins > scale
        np.copyto(self.beats, lost.T)
        margins += margins.T
        decided = lost | lost.T
        np.logical_not(decided, out=self.undecided)
        np.fill_diagonal(self.undecided, val=False)
        self._passed = float(margins.max(where=self.undecided, initial=0.0))
        self._margins.fill(inf)
        np.copyto(self._margins, margins, where=np.triu(decided))
        self._margins.min(axis=1, out=self._smallest)
        self.next_turn = float(self._smallest.min())
        np.add.reduce(self.beats, axis=1, dtype=np.int64, out=self.wins)
        np.add.reduce(self.beats, axis=0, dtype=np.int64, out=self.losses)
        self.turns += 1
        self._scale = scale
        self._stale = False
        for (first, second), in_flight in self._flying.items():
            self._set(first, second, in_flight)

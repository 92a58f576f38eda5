"""Upper confidence bounds of every arm against every other, updated duel by duel."""

from __future__ import annotations

import numpy as np

from streamduel.preference.arrays import Floats, Integers, places_of_largest
from streamduel.preference.counts import FromCounts, WinCounts


class PairBounds(FromCounts):
    """u_ij = w_ij / n_ij + sqrt(scale / n_ij) of all pairs, the mean and n_ij being kept.

    Conventions: x/0 := 1, so the bound of an unseen pair is 1 + 1 = 2; u_ii = 1/2.

    A duel *in flight* has been proposed, and its outcome not been seen. It counts in n_ij under the
    root and does not change the mean (1 for an unseen pair), as if it confirmed the mean.

    All operations are IEEE +, -, *, /, sqrt and comparisons, element by element, which have one
    correct result; equal counts give equal decisions on every machine.

    Args:
        counts: the wins that the bounds are about. The caller that adds to them calls `refresh`.
    """

    def __init__(self, counts: WinCounts) -> None:
        n_arms = len(counts.wins)
        self._wins = counts.wins
        # [c, j]: the mean of j against c. For an unseen pair it is the whole bound of 2, and on the
        # diagonal 1/2; their infinitely many trials add no bonus.
        self._means = np.full((n_arms, n_arms), 2.0)
        np.fill_diagonal(self._means, 0.5)
        self._trials = np.full((n_arms, n_arms), np.inf)
        self._columns = list(zip(self._trials, self._means, strict=True))
        self._row = np.empty(n_arms)

    def refresh(self, first: int, second: int) -> None:
        """Update the bounds of one pair, with no duel of it in flight."""
        self.mark_in_flight(first, second, 0)

    def _estimate(self, first: int, second: int, in_flight: int) -> tuple[float, float, float]:
        """The means of both arms of a pair, and its trials, some of its duels being in flight."""
        first_wins, second_wins = self._wins.item(first, second), self._wins.item(second, first)
        played = first_wins + second_wins
        if played:
            return first_wins / played, second_wins / played, played + in_flight
        return (1.0, 1.0, in_flight) if in_flight else (2.0, 2.0, np.inf)

    def against(self, arm: int, scale: float) -> Floats:
        """u_jc of every arm j against one arm c; 1/2 for c itself.

        Args:
            arm: c.
            scale: the numerator in the bonus.

        Returns:
            (K,), which the caller may write to; the next call overwrites it.
        """
        trials, means = self._columns[arm]
        bounds = self._row
        np.divide(scale, trials, bounds)
        np.sqrt(bounds, bounds)
        np.add(bounds, means, bounds)
        return bounds


class UpperBounds(PairBounds):
    """u_ij = w_ij / n_ij + sqrt(scale / n_ij), without ever computing all K² of them.

    `scale` (RUCB's α ln t) grows with every duel, so each bound changes at each step. Two questions
    are asked of the bounds, and each has a part that only a duel of the pair itself changes:

    * "Is u_cj at least 1/2 for every j?" That holds once `scale` has reached the *hurdle* of c, the
      largest of n_cj max(0, 1/2 - w_cj / n_cj)² over j. One comparison per arm.
    * "Which j has the largest u_jc?" The means and numbers of duels against c are one row each, and
      one row of bounds is computed.

    >>> counts = WinCounts(3)
    >>> bounds = UpperBounds(counts)
    >>> counts.add_one(0, 1, first_wins=1, count=4)
    >>> bounds.refresh(0, 1)
    >>> bounds.against(0, scale=0.25).tolist()
    [0.5, 0.25, 2.0]
    >>> bounds.possible_winners(scale=0.25).tolist()
    [0, 2]

    Source: Zoghi, Whiteson, Munos and de Rijke, "Relative Upper Confidence Bound for the K-Armed
    Dueling Bandit Problem", ICML 2014, Algorithm 1, lines 3 to 6.
    """

    def __init__(self, counts: WinCounts) -> None:
        super().__init__(counts)
        n_arms = len(counts.wins)
        # [c, j]: the smallest scale at which u_cj reaches 1/2; the hurdle of c is its maximum.
        self._required = np.zeros((n_arms, n_arms))
        self._hurdles = np.zeros(n_arms)
        self.refresh_many(*np.triu_indices(n_arms, k=1))

    def mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        """Update the bounds of one pair, with this many of its duels in flight."""
        if first == second:
            return
        first_mean, second_mean, trials = self._estimate(first, second, in_flight)
        self._set(first, second, first_mean, trials)
        self._set(second, first, second_mean, trials)

    def _set(self, arm: int, rival: int, mean: float, trials: float) -> None:
        """Set the arm's mean against a rival, and update the arm's hurdle."""
        self._means[rival, arm] = mean
        self._trials[rival, arm] = trials
        gap = 0.5 - mean
        required = trials * (gap * gap) if gap > 0 else 0.0
        before = self._required.item(arm, rival)
        if required == before:
            return
        self._required[arm, rival] = required
        hurdle = self._hurdles.item(arm)
        if required >= hurdle:
            self._hurdles[arm] = required
        elif before == hurdle:  # the maximum has shrunk; another one may be the maximum now
            row = self._required[arm]
            self._hurdles[arm] = row[row.argmax()]

    def refresh_many(self, first: Integers, second: Integers) -> None:
        """Update the bounds of many pairs, with none of their duels in flight."""
        if 2 * len(first) >= len(self._hurdles):  # faster than picking the pairs
            self._refresh_all()
            return
        arms, rivals = np.concatenate((first, second)), np.concatenate((second, first))
        played = self._wins[arms, rivals] + self._wins[rivals, arms]
        seen = played > 0  # never on the diagonal; an unseen pair has not changed
        arms, rivals, played = arms[seen], rivals[seen], played[seen]
        means = self._wins[arms, rivals] / played
        gaps = np.maximum(0.5 - means, 0.0)
        self._means[rivals, arms] = means
        self._trials[rivals, arms] = played
        self._required[arms, rivals] = played * (gaps * gaps)
        touched = np.unique(arms)
        self._hurdles[touched] = self._required[touched].max(axis=1)

    def _refresh_all(self) -> None:
        """Update all bounds, whole matrices at a time."""
        played = self._wins + self._wins.T
        seen = played > 0  # unseen pairs and the diagonal keep their bounds
        np.divide(self._wins, played, out=self._means.T, where=seen)
        np.copyto(self._trials, played, where=seen)
        gaps = 0.5 - self._means.T
        np.maximum(gaps, 0.0, out=gaps)
        np.multiply(played, gaps * gaps, out=self._required)
        np.maximum.reduce(self._required, axis=1, out=self._hurdles)

    def possible_winners(self, scale: float) -> Integers:
        """The arms c with u_cj ≥ 1/2 for all j: no duel so far rules them out.

        Args:
            scale: the numerator in the bonus.

        Returns:
            Their indices, ascending; possibly none.
        """
        return (self._hurdles <= scale).nonzero()[0]

    def challengers(self, arm: int, scale: float) -> list[int]:
        """The arms j with the largest u_jc; c itself only if no other arm has it.

        Args:
            arm: c.
            scale: the numerator in the bonus.
        """
        largest = places_of_largest(self.against(arm, scale))
        return largest if len(largest) == 1 else [rival for rival in largest if rival != arm]

    def rules_out_all_but(self, arm: int, scale: float) -> bool:
        """Whether one arm c is the only possible winner, and its 1/2 the only largest bound in it.

        If it does not hold for a scale, it holds for no larger one: rounding is monotonic, too.

        Args:
            arm: c.
            scale: the numerator in the bonus.
        """
        possible = self._hurdles <= scale
        if not possible[arm] or np.count_nonzero(possible) > 1:
            return False
        bounds = self.against(arm, scale)
        bounds[arm] = -1.0
        return bool(bounds[bounds.argmax()] < 0.5)

    def challenge(self, arm: int) -> float:
        """Approximately the scale at which the first u_jc of another arm j reaches 1/2.

        It is computed with other roundings than the bound.

        Args:
            arm: c.
        """
        required = self._required[:, arm].copy()
        required[arm] = np.inf
        return required.item(required.argmin())

"""Normal approximations of the posterior of preferences and of Copeland scores, for cheap draws."""

from __future__ import annotations

from bisect import bisect_left
from math import sqrt
from typing import Final

import numpy as np

from streamduel.policies.base.generator import Generator
from streamduel.policies.base.prior import Belief
from streamduel.policies.base.state import Wins
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.counts import FromCounts, WinCounts
from streamduel.preference.normal import QUANTILES, quantiles

PER_WORD: Final = 4
"""Draws from one random word, 16 bits each."""


class NormalPosterior(FromCounts):
    """What a Thompson draw of K arms needs, so that it costs O(K) and no Beta draw.

    After w wins and l losses the preference of a pair is about normal, with the mean
    (w + 1) / (n + 2) and the variance m (1 - m) / (n + 3) of its Beta distribution. Whether arm i
    beats arm j is about a coin with P_ij = Φ((w - l) / sqrt(n + 2)); so how many arms i beats is
    about normal with the mean Σ_j P_ij and the variance Σ_j P_ij (1 - P_ij). A draw of it
    stands for a draw of all θ_ij.

    A duel changes one pair, in constant time. The sums are of integers: they do not depend on
    the order of the duels. With a prior, the leads in which it is believed (`Belief`) count as
    wins; when that changes, all pairs are computed again.

    Args:
        counts: the wins. The caller that adds to them calls `refresh`.
        prior: (K, K) pseudo-wins, or None.

    Attributes:
        belief: the belief in the prior; None without one.
        score: (K,), live: the mean of how many arms each arm beats.
        score_deviation: (K,), live: its standard deviation.
        mean: (K, K), live: [j, i] is the mean of θ_ij, so a row has the rivals of j.
        deviation: (K, K), live: its standard deviation; 0 for an arm and itself.
    """

    def __init__(self, counts: WinCounts, prior: Wins | None = None) -> None:
        self._wins = counts.wins
        self._quantiles = quantiles().tolist()
        self.belief = None if prior is None else Belief(prior, counts.wins)
        self._count_all()

    def _count_all(self) -> None:
        """Compute everything from the counts."""
        belief, n_arms = self.belief, len(self._wins)
        wins = self._wins if belief is None else self._wins + belief.leads
        pairs = np.triu_indices(n_arms, k=1)
        won, n = wins[pairs], (wins + wins.T)[pairs]
        mean = (won + 1) / (n + 2)
        deviation = np.sqrt(mean * (1 - mean) / (n + 3))
        self.mean: Floats = np.full((n_arms, n_arms), 0.5)
        self.deviation: Floats = np.zeros((n_arms, n_arms))
        self.mean.T[pairs], self.mean[pairs] = mean, 1 - mean
        self.deviation[pairs] = self.deviation.T[pairs] = deviation
        self.beaten: Integers = np.zeros((n_arms, n_arms), dtype=np.int64)
        # Φ in 65536ths, of the pairs i < j; the others have the complement.
        self.beaten[pairs] = quantiles().searchsorted((won - wins.T[pairs]) / np.sqrt(n + 2))
        chances = self.beaten.copy()
        chances.T[pairs] = QUANTILES - self.beaten[pairs]
        self.sums: list[int] = chances.sum(axis=1).tolist()
        self.spreads: list[int] = (chances * (QUANTILES - chances)).sum(axis=1).tolist()
        self.score: Floats = np.array(self.sums) / QUANTILES
        self.score_deviation: Floats = np.sqrt(np.array(self.spreads)) / QUANTILES

    def refresh_many(self, first: Integers, second: Integers) -> None:
        """Update what depends on the counts of many pairs; from so many on, of all at once."""
        if len(first) < len(self._wins):
            super().refresh_many(first, second)
            return
        if self.belief is not None:
            self.belief.refresh_all()
        self._count_all()

    def refresh(self, first: int, second: int) -> None:
        """Update what depends on the counts of one pair."""
        if first == second:
            return
        if first > second:  # so that P_ij + P_ji is 1 to the last unit
            first, second = second, first
        won, lost = self._wins.item(first, second), self._wins.item(second, first)
        if self.belief is not None:
            leads = self.belief.leads
            self.belief.refresh(first, second)
            if self.belief.leads is not leads:
                self._count_all()
                return
            won, lost = won + leads.item(first, second), lost + leads.item(second, first)
        n = won + lost
        mean = (won + 1) / (n + 2)
        deviation = sqrt(mean * (1 - mean) / (n + 3))
        self.mean[second, first], self.mean[first, second] = mean, 1 - mean
        self.deviation[first, second] = self.deviation[second, first] = deviation
        now = bisect_left(self._quantiles, (won - lost) / sqrt(n + 2))  # Φ, in 65536ths
        before = self.beaten.item(first, second)
        if now != before:
            self.beaten[first, second] = now
            self._add(first, now - before, now, before)
            self._add(second, before - now, now, before)

    def _add(self, arm: int, gain: int, now: int, before: int) -> None:
        """The chance of an arm in one pair has changed from or to `before`."""
        self.sums[arm] += gain
        self.spreads[arm] += now * (QUANTILES - now) - before * (QUANTILES - before)
        self.score[arm] = self.sums[arm] / QUANTILES
        self.score_deviation[arm] = sqrt(self.spreads[arm]) / QUANTILES


def normal_draws(generator: Generator, n: int) -> Floats:
    """Independent draws from the standard normal distribution.

    Draws from the generator: ⌈n / 4⌉ words; 16 bits of a word, the lowest first, are a draw.

    Args:
        generator: the source.
        n: how many.
    """
    words = generator.words((n + PER_WORD - 1) // PER_WORD)
    return quantiles().take(words.astype("<u8", copy=False).view("<u2")[:n])

"""Normal approximations of the posterior of preferences and of Copeland scores, for cheap draws."""

from __future__ import annotations

from bisect import bisect_left
from math import sqrt
from typing import Final

import numpy as np

from streamduel.policies.base.generator import Generator
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
    the order of the duels.

    Args:
        counts: the wins. The caller that adds to them calls `refresh`.

    Attributes:
        score: (K,), live: the mean of how many arms each arm beats.
        score_deviation: (K,), live: its standard deviation.
        mean: (K, K), live: [j, i] is the mean of θ_ij, so a row has the rivals of j.
        deviation: (K, K), live: its standard deviation; 0 for an arm and itself.
    """

    def __init__(self, counts: WinCounts) -> None:
        n_arms = len(counts.wins)
        self._wins = counts.wins
        self._quantiles = quantiles().tolist()
        half = QUANTILES // 2
        self.beaten: Integers = np.full((n_arms, n_arms), half, dtype=np.int64)
        self.sums = [half * (n_arms - 1)] * n_arms
        self.spreads = [half * half * (n_arms - 1)] * n_arms
        self.score: Floats = np.full(n_arms, (n_arms - 1) / 2)
        self.score_deviation: Floats = np.full(n_arms, sqrt(n_arms - 1) / 2)
        self.mean: Floats = np.full((n_arms, n_arms), 0.5)
        self.deviation: Floats = np.full((n_arms, n_arms), sqrt(1 / 12))
        self.deviation.reshape(-1)[:: n_arms + 1] = 0.0
        self.refresh_many(*np.triu(counts.plays).nonzero())

    def refresh(self, first: int, second: int) -> None:
        """Update what depends on the counts of one pair."""
        if first == second:
            return
        if first > second:  # so that P_ij + P_ji is 1 to the last unit
            first, second = second, first
        won, lost = self._wins.item(first, second), self._wins.item(second, first)
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

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
from streamduel.preference.normal import QUANTILES, quantile_list, quantiles

PER_WORD: Final = 4
"""Draws from one random word, 16 bits each."""

FEW: Final = 10
"""Up to this many pairs are faster one by one than as arrays."""

LENT: Final = 256
"""Words that are turned into draws together."""


class NormalPosterior(FromCounts):
    """The values for a Thompson draw of K arms in O(K), without any Beta draw.

    After w wins and l losses the preference of a pair is approximately normal, with the mean
    (w + 1) / (n + 2) and the variance m (1 - m) / (n + 3) of its Beta distribution. Whether arm i
    beats arm j is approximately a coin with P_ij = Φ((w - l) / sqrt(n + 2)); so how many arms i
    beats is approximately normal, with the mean Σ_j P_ij and the variance Σ_j P_ij (1 - P_ij). One
    draw of this number replaces a draw of all θ_ij.

    A duel changes one pair, in constant time. The sums are of integers: they do not depend on
    the order of the duels. With a prior that is believed, its leads (`Belief`) count as wins; when
    that changes, all pairs are computed again.

    Args:
        counts: the wins. The caller that adds to them calls `refresh`.
        prior: (K, K) pseudo-wins, or None.
        prior_from: (K, K) the wins before the prior was stated, or None.

    Attributes:
        belief: the belief in the prior; None without one.
        score: (K,), live: the mean of how many arms each arm beats.
        score_deviation: (K,), live: its standard deviation.
        mean: (K, K), live: [j, i] is the mean of θ_ij, so a row has the rivals of j.
        deviation: (K, K), live: its standard deviation; 0 for an arm and itself.
    """

    def __init__(
        self, counts: WinCounts, prior: Wins | None = None, prior_from: Wins | None = None
    ) -> None:
        self._wins = counts.wins
        self._quantiles = quantile_list()
        self.belief = None if prior is None else Belief(prior, counts.wins, prior_from)
        self._count_all()

    def _count_all(self) -> None:
        """Compute everything from the counts."""
        shape = self._wins.shape
        self.mean: Floats = np.full(shape, 0.5)
        self.deviation: Floats = np.zeros(shape)
        self.beaten: Integers = np.zeros(shape, dtype=np.int64)  # P_ij in 65536ths
        self._count(*np.triu_indices(len(self._wins), k=1))

    def _count(self, first: Integers, second: Integers) -> None:
        """Compute what depends on the counts of some pairs, in each the lower arm first."""
        pairs, others = (first, second), (second, first)
        won, lost = self._wins[pairs], self._wins[others]
        if self.belief is not None:
            won, lost = won + self.belief.leads[pairs], lost + self.belief.leads[others]
        n = won + lost
        mean = (won + 1) / (n + 2)
        self.mean[others], self.mean[pairs] = mean, 1 - mean
        self.deviation[pairs] = self.deviation[others] = np.sqrt(mean * (1 - mean) / (n + 3))
        beaten = quantiles().searchsorted((won - lost) / np.sqrt(n + 2))
        self.beaten[pairs], self.beaten[others] = beaten, QUANTILES - beaten
        sums = self.beaten.sum(axis=1)
        spreads = (self.beaten * (QUANTILES - self.beaten)).sum(axis=1)
        self.sums: list[int] = sums.tolist()
        self.spreads: list[int] = spreads.tolist()
        self.score: Floats = sums / QUANTILES
        self.score_deviation: Floats = np.sqrt(spreads) / QUANTILES

    def refresh_many(self, first: Integers, second: Integers) -> None:
        """Update what depends on the counts of many pairs."""
        if len(first) <= FEW:
            super().refresh_many(first, second)
            return
        if self.belief is not None:
            held = self.belief.holds
            self.belief.refresh_all()
            if self.belief.holds != held:
                self._count_all()
                return
        self._count(first, second)

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
        if now == before:
            return
        self.beaten[first, second], self.beaten[second, first] = now, QUANTILES - now
        sums, spreads, gain = self.sums, self.spreads, now - before
        spread = gain * (QUANTILES - now - before)  # of now (Q - now), Q being 65536
        sums[first] += gain
        sums[second] -= gain
        spreads[first] += spread
        spreads[second] += spread
        self.score[first], self.score[second] = sums[first] / QUANTILES, sums[second] / QUANTILES
        self.score_deviation[first] = sqrt(spreads[first]) / QUANTILES
        self.score_deviation[second] = sqrt(spreads[second]) / QUANTILES


class NormalDraws:
    """Independent draws from the standard normal distribution, n at a time.

    Draws from the generator: ⌈n / 4⌉ words each time; 16 bits of a word, the lowest first, are a
    draw.

    Args:
        n: how many.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._words = (n + PER_WORD - 1) // PER_WORD
        self._times = max(1, LENT // self._words)
        self._lent: object = None
        self._rows: list[Floats] = []

    def take(self, generator: Generator) -> Floats:
        """(n,) draws from this generator."""
        if not self._rows or generator.lent is not self._lent:
            words = self._lent = generator.lend(self._times * self._words)
            draws = quantiles().take(words.astype("<u8", copy=False).view("<u2"))
            self._rows = list(draws.reshape(self._times, -1)[::-1, : self._n])
        generator.ahead -= self._words
        return self._rows.pop()

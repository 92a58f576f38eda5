"""Draws from the Beta posterior of preferences, with the same bits on every machine."""

from __future__ import annotations

from functools import cache
from math import comb, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from streamduel.policies.base.generator import Generator
from streamduel.preference.array_logarithm import ln_each
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.counts import FromCounts, WinCounts
from streamduel.preference.logarithm import ln

Words = npt.NDArray[np.uint64]

FEW_DUELS: Final = 63
"""Up to this many duels of a pair, one word decides which arm is better, exactly."""

POINTS: Final = 4
"""Points per sample and round; one if there are many samples. The draws depend on both numbers."""

MANY_SAMPLES: Final = 128

_FEW_SAMPLES: Final = 16
"""Up to this many, one by one is faster than array operations; the result is the same."""

EXACT_DUELS: Final = 1e8
"""Up to this many duels of a pair, the rounding error of its log density is far below 1e-6."""

SHIFT: Final = 11
STEP: Final = 2.0**-53


class BetaPosterior(FromCounts):
    """θ_ij ~ Beta(w_ij + 1, w_ji + 1), the posterior of the preference of i over j.

    With p = w_ij wins, q = w_ji losses and n = p + q, the density of θ_ij is proportional to
    f(x) = x^p (1 - x)^q, which has its mode at m = p / n. It is sampled by the ratio of uniforms:
    if the point (u, v) is uniform on {0 < u ≤ sqrt(f(m + v / u) / f(m))}, then m + v / u has the
    wanted density. That region is in a box: u is at most 1, and v between the extremes of
    (x - m) sqrt(f(x) / f(m)), which are at x = (p + 1 ± sqrt(1 + 2 p q / n)) / (n + 2). Points are
    drawn in the box until one falls into the region, as 73 % do if p and q are equal and large, and
    no less than 50 % ever do.

    The box changes only with a duel of the pair, and is stored. A point then takes three logarithms
    and +, -, *, / and comparisons, which have one correct result. Up to 10**12 duels of a pair,
    rounding changes the density by less than a thousandth.

    Often only θ_ij > 1/2 matters. Its probability is that of at most p heads among n + 1 fair
    coins; up to n = 63 this is an integer over 2**64, and one word decides exactly.

    Args:
        counts: the wins that the posterior is of. The caller that adds to them calls `refresh`.

    Attributes:
        few: (K, K), read-only and live: for i < j, whether one word decides θ_ij > 1/2.
        many: (K, K), read-only and live, symmetric: whether it does not, for i ≠ j.

    >>> counts = WinCounts(3)
    >>> posterior = BetaPosterior(counts)
    >>> counts.add_one(0, 1, first_wins=1, count=30)
    >>> posterior.refresh(0, 1)
    >>> first, second = np.array([0, 1, 0]), np.array([1, 0, 2])
    >>> posterior.sample(first, second, Generator(seed=7)).round(3).tolist()
    [0.996, 0.014, 0.794]

    Source: A. J. Kinderman and J. F. Monahan, "Computer generation of random variables using the
    ratio of uniform deviates", ACM TOMS 3(3), 1977.
    """

    def __init__(self, counts: WinCounts) -> None:
        n_arms = len(counts.wins)
        self._wins = counts.wins
        # [i, j], of θ_ij; for unseen pairs those of the uniform distribution.
        self._mode = np.full((n_arms, n_arms), 0.5)
        self._peak = np.zeros((n_arms, n_arms))  # ln f(m)
        self._lower = np.full((n_arms, n_arms), -0.5)  # v in the box; its width
        self._width = np.ones((n_arms, n_arms))
        # The number of words for which i < j is better; 0 if it is not an integer.
        self._below = np.triu(np.full((n_arms, n_arms), 1 << 63, dtype=np.uint64), k=1)
        self.few: Booleans = self._below > 0
        self.many: Booleans = np.zeros((n_arms, n_arms), dtype=np.bool_)
        self.refresh_many(*np.triu(counts.plays, k=1).nonzero())

    def refresh(self, first: int, second: int) -> None:
        """Update the posterior of one pair."""
        if first == second:
            return
        if first > second:
            first, second = second, first
        p, q = self._wins.item(first, second), self._wins.item(second, first)
        n = p + q
        few = n <= FEW_DUELS and p.is_integer()
        if few:
            self._below[first, second] = better_words(int(p), int(n))
        if few != self.few.item(first, second):
            self.few[first, second] = few
            self.many[first, second] = self.many[second, first] = not few
        m, rest, peak, lower, upper = sampling_box(p, q)
        self._mode[first, second], self._mode[second, first] = m, rest
        self._peak[first, second] = self._peak[second, first] = peak
        self._lower[first, second], self._lower[second, first] = lower, -upper
        self._width[first, second] = self._width[second, first] = upper - lower

    def better(self, first: Integers, second: Integers, generator: Generator) -> Booleans:
        """One draw of "θ_ij > 1/2" for each of k pairs i < j with `few`.

        Draws from the generator: a word for each.

        Args:
            first: (k,) arms i.
            second: (k,) arms j.
            generator: the source of the draws.
        """
        below: Booleans = generator.words(len(first)) < self._below[first, second]
        return below

    def sample(self, first: Integers, second: Integers, generator: Generator) -> Floats:
        """One draw of θ_ij for each of k pairs of different arms.

        Draws from the generator: k blocks of eight words, each for four points, u before v. The
        first point of its block in the region gives the sample. The samples without such a point
        are drawn again, in order, until there is none. For more than 128 samples, a block has two
        words, for one point. A word w means (⌊w / 2**11⌋ + 1/2) / 2**53.

        Args:
            first: (k,) arms i.
            second: (k,) arms j.
            generator: the source of the draws.

        Returns:
            (k,) numbers strictly between 0 and 1.
        """
        samples = np.empty(len(first))
        missing = np.arange(len(first))
        while len(missing):
            points = POINTS if len(missing) <= MANY_SAMPLES else 1
            words = generator.words(2 * points * len(missing))
            one_by_one = len(missing) <= _FEW_SAMPLES
            draw = self._one_by_one if one_by_one else self._at_once
            samples[missing] = draw(first[missing], second[missing], words)
            missing = missing[samples[missing] < 0]
        return samples

    def _one_by_one(self, first: Integers, second: Integers, words: Words) -> Floats:
        """The samples of some pairs, negative where no point of the block is in the region."""
        samples = np.full(len(first), -1.0)
        numbers = words.tolist()
        for place, (i, j) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            p, q = self._wins.item(i, j), self._wins.item(j, i)
            m, peak = self._mode.item(i, j), self._peak.item(i, j)
            lower, width = self._lower.item(i, j), self._width.item(i, j)
            for at in range(2 * POINTS * place, 2 * POINTS * (place + 1), 2):
                u = ((numbers[at] >> SHIFT) + 0.5) * STEP
                v = lower + width * (((numbers[at + 1] >> SHIFT) + 0.5) * STEP)
                x = m + v / u
                if 0 < x < 1 and in_region(u, x, p, q, m, peak):
                    samples[place] = x
                    break
        return samples

    def _at_once(self, first: Integers, second: Integers, words: Words) -> Floats:
        """The same for many pairs."""
        points = ((words >> np.uint64(SHIFT)).astype(np.float64) + 0.5) * STEP
        points = points.reshape(len(first), -1, 2)
        n_arms = len(self._wins)
        pairs, mirrored = first * n_arms + second, second * n_arms + first
        p, q = self._wins.take(pairs), self._wins.take(mirrored)
        u, v = points[:, :, 0], points[:, :, 1] * self._width.take(pairs)[:, None]
        x = v + self._lower.take(pairs)[:, None]
        x /= u
        x += self._mode.take(pairs)[:, None]
        logs = np.empty((3, *x.shape))
        logs[0], logs[1] = u, x
        np.subtract(1, x, logs[2])
        inside = (x > 0) & (x < 1)
        if not inside.all():
            logs[1:, ~inside] = 1.0
        logs = ln_each(logs)
        logs[1] *= p[:, None]
        logs[2] *= q[:, None]
        logs[1] += logs[2]
        logs[1] -= self._peak.take(pairs)[:, None]
        logs[0] *= 2
        inside &= logs[0] <= logs[1]
        best = np.arange(len(pairs)), inside.argmax(axis=1)
        return np.where(inside[best], x[best], -1.0)


def in_region(u: float, x: float, p: float, q: float, m: float, peak: float) -> bool:
    """Whether u ≤ sqrt(f(x) / f(m)), that is -2 ln u ≥ n d(m, x); often without a logarithm.

    With s = 1 - u: 2 s + s² + 2/3 s³ ≤ -2 ln u ≤ 1/u - u. With V the smaller one of m (1 - m) and
    x (1 - x): 2 n (x - m)² ≤ n d(m, x) ≤ n (x - m)² / (2 V). Differences below 1e-6 are left to the
    logarithms, whose rounding error is smaller; so the answer is always theirs.
    """
    n = p + q
    if n < EXACT_DUELS:
        s, square = 1 - u, n * (x - m) * (x - m)
        smaller = min(m * (1 - m), x * (1 - x))
        if square <= 2 * smaller * (s * (2 + s * (1 + s * (2 / 3))) - 1e-6):
            return True
        if 2 * square * u >= 1 - u * u + 1e-6 * u:
            return False
    return 2 * ln(u) <= p * ln(x) + q * ln(1 - x) - peak


@cache
def better_words(p: int, n: int) -> int:
    """For how many of 2**64 words θ > 1/2, after p wins in n duels: heads of n + 1 coins."""
    return sum(comb(n + 1, heads) for heads in range(p + 1)) << (FEW_DUELS - n)


def sampling_box(p: float, q: float) -> tuple[float, float, float, float, float]:
    """The mode m, 1 - m, ln f(m), and the smallest and the largest v in the box.

    Args:
        p: wins.
        q: losses; at least one of both is not 0.
    """
    n = p + q
    m, rest, root = p / n, q / n, sqrt(1 + 2 * p * q / n)
    low, high = (p + 1 - root) / (n + 2), (p + 1 + root) / (n + 2)
    peak = log_density(p, q, m, rest)
    # sqrt(f(m) / f(x)) at both ends, from below
    at_low = exp_from_below((peak - log_density(p, q, low, (q + 1 + root) / (n + 2))) / 2)
    at_high = exp_from_below((peak - log_density(p, q, high, (q + 1 - root) / (n + 2))) / 2)
    return m, rest, peak, (low - m) / at_low, (high - m) / at_high


def log_density(p: float, q: float, x: float, rest: float) -> float:
    """The logarithm of f(x), p ln x + q ln(1 - x), 0 ln 0 being 0."""
    return (p * ln(x) if p else 0.0) + (q * ln(rest) if q else 0.0)


def exp_from_below(x: float) -> float:
    """exp(x) from below, by less than 1e-4 of it, for x from 0 to 1."""
    return 1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6)))))


def beats(
    posterior: BetaPosterior, first: Integers, second: Integers, generator: Generator
) -> Booleans:
    """One draw of "θ_ij > 1/2" for each of k pairs of different arms.

    Draws from the generator: a word for each pair with `few`; then θ_ij of the others.

    Args:
        posterior: of the preferences θ_ij.
        first: (k,) arms i.
        second: (k,) arms j; no pair twice, since θ_ji = 1 - θ_ij is not independent.
        generator: the source of the draws.
    """
    many = posterior.many[first, second]
    if many.all():
        sampled: Booleans = posterior.sample(first, second, generator) > 0.5
        return sampled
    won = np.empty(len(first), dtype=np.bool_)
    few = ~many
    i, j = first[few], second[few]
    ascending = i < j
    won[few] = posterior.better(np.minimum(i, j), np.maximum(i, j), generator) == ascending
    if many.any():
        won[many] = posterior.sample(first[many], second[many], generator) > 0.5
    return won

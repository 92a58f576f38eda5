"""Draws from Beta distributions: `streamduel.policies.base.beta`, compiled."""

from __future__ import annotations

from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from streamduel.policies.base import beta
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.simulation.compiled.arena import Arena
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.compiled.logarithm import ln
from streamduel.simulation.compiled.words import Words

# As numbers of their own, since numba knows no other module's names.
_FEW_DUELS: Final = beta._FEW_DUELS
_POINTS: Final = beta._POINTS
_MANY_SAMPLES: Final = beta._MANY_SAMPLES
_EXACT_DUELS: Final = beta._EXACT_DUELS
_STEP: Final = beta._STEP
_SHIFT: Final = np.uint64(beta._SHIFT)

_BETTER: Final = np.array(
    [[beta._better(min(p, n), n) for n in range(_FEW_DUELS + 1)] for p in range(_FEW_DUELS + 1)],
    dtype=np.uint64,
)
"""[p, n]: for so many words, the arm with p wins in n duels is better."""


class Posterior(NamedTuple):
    """What `BetaPosterior` keeps, by the same names, and room for samples.

    Attributes:
        first: (K²,), arms i of the pairs to be sampled; `second`, arms j.
        chances: (K²,), their θ_ij.
        missing: (K²,), places of those that are still to be found.
    """

    mode: Floats
    peak: Floats
    least: Floats
    width: Floats
    below: Words
    few: Booleans
    many: Booleans
    first: Integers
    second: Integers
    chances: Floats
    missing: Integers


def posterior(wins: Floats) -> Posterior:
    """The posterior of these counts.

    Args:
        wins: (K, K), perhaps of nothing yet.
    """
    n_arms = len(wins)
    below = np.triu(np.full((n_arms, n_arms), 1 << 63, dtype=np.uint64), k=1)
    kept = Posterior(
        mode=np.full((n_arms, n_arms), 0.5),
        peak=np.zeros((n_arms, n_arms)),
        least=np.full((n_arms, n_arms), -0.5),
        width=np.ones((n_arms, n_arms)),
        below=below,
        few=below > 0,
        many=np.zeros((n_arms, n_arms), dtype=np.bool_),
        first=np.zeros(n_arms * n_arms, dtype=np.int64),
        second=np.zeros(n_arms * n_arms, dtype=np.int64),
        chances=np.zeros(n_arms * n_arms),
        missing=np.zeros(n_arms * n_arms, dtype=np.int64),
    )
    for first, second in np.argwhere(np.triu(wins + wins.T) > 0):
        refresh(kept, wins, first, second)
    return kept


@compiled
def refresh(posterior: Posterior, wins: Floats, one: int, other: int) -> None:
    """Take up the counts of one pair as they are now."""
    first, second = min(one, other), max(one, other)
    p, q = wins[first, second], wins[second, first]
    n = p + q
    few = n <= _FEW_DUELS and p == int(p)
    if few:
        posterior.below[first, second] = _BETTER[int(p), int(n)]
    posterior.few[first, second] = few
    posterior.many[first, second] = not few
    posterior.many[second, first] = not few
    m, rest, root = p / n, q / n, sqrt(1 + 2 * p * q / n)
    low, high = (p + 1 - root) / (n + 2), (p + 1 + root) / (n + 2)
    peak = log_density(p, q, m, rest)
    at_low = exp((peak - log_density(p, q, low, (q + 1 + root) / (n + 2))) / 2)
    at_high = exp((peak - log_density(p, q, high, (q + 1 - root) / (n + 2))) / 2)
    least, largest = (low - m) / at_low, (high - m) / at_high
    posterior.mode[first, second], posterior.mode[second, first] = m, rest
    posterior.least[first, second], posterior.least[second, first] = least, -largest
    posterior.peak[first, second] = peak
    posterior.peak[second, first] = peak
    posterior.width[first, second] = largest - least
    posterior.width[second, first] = largest - least


@compiled
def log_density(p: float, q: float, x: float, rest: float) -> float:
    """The logarithm of f(x), 0 ln 0 being 0."""
    won = p * ln(x) if p > 0 else 0.0
    lost = q * ln(rest) if q > 0 else 0.0
    return won + lost


@compiled
def exp(x: float) -> float:
    """The exponential of x from 0 to 1, nearly, from below."""
    return 1 + x * (1 + x / 2 * (1 + x / 3 * (1 + x / 4 * (1 + x / 5 * (1 + x / 6)))))


@compiled
def better(arena: Arena, posterior: Posterior, number: int) -> None:
    """For so many pairs of which `few` is true: 1 or 0 in `chances`, "θ_ij > 1/2" or not."""
    taken = arena.drawn[0]
    arena.drawn[0] += number
    if arena.drawn[0] > len(arena.draws):  # and so will be taken back
        return
    for place in range(number):
        below = posterior.below[posterior.first[place], posterior.second[place]]
        posterior.chances[place] = 1.0 if arena.draws[taken + place] < below else 0.0


@kernel
def sample(arena: Arena, posterior: Posterior, wins: Floats, number: int) -> None:
    """For so many pairs: θ_ij in `chances`.

    If there are not enough words, `arena.drawn` says so, and the chances mean nothing.
    """
    missing, taken = posterior.missing, arena.drawn
    for place in range(number):
        missing[place] = place
    while number > 0:
        points = _POINTS if number <= _MANY_SAMPLES else 1
        block = taken[0]
        taken[0] += 2 * points * number
        if taken[0] > len(arena.draws):
            return
        left = 0
        for turn in range(number):
            place = missing[turn]
            start = block + 2 * points * turn
            chance = draw(arena.draws[start : start + 2 * points], posterior, wins, place)
            posterior.chances[place] = chance
            if chance < 0:
                missing[left] = place
                left += 1
        number = left


@compiled
def draw(block: Words, posterior: Posterior, wins: Floats, place: int) -> float:
    """The chance by the first point of the block that is in the region, or -1."""
    i, j = posterior.first[place], posterior.second[place]
    p, q, m, peak = wins[i, j], wins[j, i], posterior.mode[i, j], posterior.peak[i, j]
    for point in range(len(block) // 2):
        u = uniform(block[2 * point])
        v = posterior.least[i, j] + posterior.width[i, j] * uniform(block[2 * point + 1])
        x = m + v / u
        if 0 < x < 1 and in_region(u, x, p, q, m, peak):
            return float(x)
    return -1.0


@compiled
def uniform(word: np.uint64) -> float:
    """The number between 0 and 1 that a word stands for."""
    return (np.int64(word >> _SHIFT) + 0.5) * _STEP


@compiled
def in_region(u: float, x: float, p: float, q: float, m: float, peak: float) -> bool:
    """Whether u ≤ sqrt(f(x) / f(m)); see there."""
    n = p + q
    if n < _EXACT_DUELS:
        s, square = 1 - u, n * (x - m) * (x - m)
        smaller = min(m * (1 - m), x * (1 - x))
        if square <= 2 * smaller * (s * (2 + s * (1 + s * (2 / 3))) - 1e-6):
            return True
        if 2 * square * u >= 1 - u * u + 1e-6 * u:
            return False
    return 2 * ln(u) <= p * ln(x) + q * ln(1 - x) - peak

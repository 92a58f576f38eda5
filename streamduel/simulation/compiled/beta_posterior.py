"""Draws from Beta distributions, compiled: the steps of `streamduel.policies.base.beta`."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from streamduel.policies.base.beta import (
    FEW_DUELS,
    MANY_SAMPLES,
    POINTS,
    SHIFT,
    STEP,
    better_words,
)
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.simulation.compiled.arithmetic import in_region, sampling_box
from streamduel.simulation.compiled.jit import compiled, kernel
from streamduel.simulation.compiled.random_words import Words
from streamduel.simulation.compiled.state import State

_SHIFT: Final = np.uint64(SHIFT)
_BETTER: Final = np.array(
    [[better_words(min(p, n), n) for n in range(FEW_DUELS + 1)] for p in range(FEW_DUELS + 1)],
    dtype=np.uint64,
)
"""[p, n]: the number of words for which θ > 1/2 after p wins in n duels."""


class Posterior(NamedTuple):
    """The attributes of `BetaPosterior`, by the same names, and buffers for samples.

    Attributes:
        first: (K²,) arms i of the pairs to sample.
        second: (K²,) arms j.
        chances: (K²,) their θ_ij.
        missing: (K²,) indices of the pairs whose sample is still missing.
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
    """The posterior of given counts.

    Args:
        wins: (K, K) wins.
    """
    n_arms = len(wins)
    below = np.triu(np.full((n_arms, n_arms), 1 << 63, dtype=np.uint64), k=1)
    result = Posterior(
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
        refresh(result, wins, first, second)
    return result


@compiled
def refresh(posterior: Posterior, wins: Floats, one: int, other: int) -> None:
    """Update the posterior of one pair from its counts."""
    first, second = min(one, other), max(one, other)
    p, q = wins[first, second], wins[second, first]
    few = p + q <= FEW_DUELS and p == int(p)
    if few:
        posterior.below[first, second] = _BETTER[int(p), int(p + q)]
    posterior.few[first, second] = few
    posterior.many[first, second] = not few
    posterior.many[second, first] = not few
    m, rest, peak, least, largest = sampling_box(p, q)
    posterior.mode[first, second], posterior.mode[second, first] = m, rest
    posterior.least[first, second], posterior.least[second, first] = least, -largest
    posterior.peak[first, second] = peak
    posterior.peak[second, first] = peak
    posterior.width[first, second] = largest - least
    posterior.width[second, first] = largest - least


@kernel
def sample(state: State, posterior: Posterior, wins: Floats, number: int) -> None:
    """Sample θ_ij of pairs into `chances`.

    If there are not enough words, `state.taken` exceeds their number, and the chances are void.
    """
    missing, taken = posterior.missing, state.taken
    for place in range(number):
        missing[place] = place
    while number > 0:
        points = POINTS if number <= MANY_SAMPLES else 1
        block = taken[0]
        taken[0] += 2 * points * number
        if taken[0] > len(state.words):
            return
        left = 0
        for turn in range(number):
            place = missing[turn]
            start = block + 2 * points * turn
            chance = draw(state.words[start : start + 2 * points], posterior, wins, place)
            posterior.chances[place] = chance
            if chance < 0:
                missing[left] = place
                left += 1
        number = left


@compiled
def draw(block: Words, posterior: Posterior, wins: Floats, place: int) -> float:
    """The chance from the first point of the block that is in the region, or -1."""
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
    """A word as a number between 0 and 1."""
    return (np.int64(word >> _SHIFT) + 0.5) * STEP

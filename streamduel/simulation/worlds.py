"""Preference matrices by construction: of arms with utilities, at random, and in a cycle."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from types import MappingProxyType
from typing import Final

import numpy as np

from streamduel.errors import PreferenceError, nearest
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Floats
from streamduel.preference.matrix import MOST_ARMS

LEAST_GAP: Final = 0.05
"""The least |p_ij - 1/2| of a random matrix, if nothing else is said."""

MOST_GAP: Final = 0.35
"""The largest |p_ij - 1/2| of a random matrix."""


def bradley_terry(utilities: Sequence[float]) -> Floats:
    """p_ij = 1 / (1 + exp(u_j - u_i)): each arm's strength is exp(u).

    Args:
        utilities: (K,) u of each arm; only differences matter.

    >>> bradley_terry([math.log(3), 0.0]).round(4).tolist()
    [[0.5, 0.75], [0.25, 0.5]]

    Source: Bradley and Terry, "Rank analysis of incomplete block designs: I. The method of paired
    comparisons", Biometrika 39, 1952.
    """
    return _of_differences(utilities, lambda gap: 1 / (1 + math.exp(-gap)))


def gaussian(utilities: Sequence[float], deviation: float = 1.0) -> Floats:
    """p_ij = Φ((u_i - u_j) / (σ √2)): the larger of two noisy utilities wins.

    Args:
        utilities: (K,) mean utility u of each arm.
        deviation: σ, the standard deviation of each utility at each duel, above 0.

    >>> gaussian([1.0, 0.0]).round(4).tolist()
    [[0.5, 0.7602], [0.2398, 0.5]]

    Source: Thurstone, "A law of comparative judgment", Psychological Review 34, 1927, case V.
    """
    if not deviation > 0:
        raise PreferenceError(f"the deviation must be greater than 0 (found {deviation!r}).")
    # Φ(x) = (1 + erf(x / √2)) / 2
    return _of_differences(utilities, lambda gap: (1 + math.erf(gap / (2 * deviation))) / 2)


def _of_differences(utilities: Sequence[float], chance: Callable[[float], float]) -> Floats:
    """The matrix in which p_ij is a function of u_i - u_j ≥ 0, and p_ji the rest."""
    values = [float(utility) for utility in utilities]
    if len(values) < 2 or not all(map(math.isfinite, values)):
        raise PreferenceError(f"utilities must be at least 2 finite numbers (found {values}).")
    p = np.full((len(values), len(values)), 0.5)
    for i, ours in enumerate(values):
        for j, theirs in enumerate(values):
            if ours > theirs:
                p[i, j] = chance(ours - theirs)
                p[j, i] = 1 - p[i, j]
    return p


def random_utilities(n_arms: int, generator: Generator) -> list[float]:
    """Utilities from the standard normal distribution.

    Args:
        n_arms: K, at least 2.
        generator: what they are drawn from; K words of it.
    """
    normal = NormalDist()
    return [normal.inv_cdf(draw) for draw in uniform(generator, _checked_arms(n_arms)).tolist()]


def random_condorcet(
    n_arms: int, generator: Generator, *, winner: int = 0, gap: float = LEAST_GAP
) -> Floats:
    """Preferences without any order, but for one arm that beats all others.

    The gaps |p_ij - 1/2| are independent and uniform from `gap` to `MOST_GAP`; who of two other
    arms is ahead is decided by a fair coin.

    Args:
        n_arms: K, at least 2.
        generator: what is drawn from; K (K - 1) words of it.
        winner: the arm that beats all others.
        gap: the least of all gaps, above 0 and at most `MOST_GAP`.

    >>> random_condorcet(3, Generator(7), winner=1, gap=0.1).round(3).tolist()
    [[0.5, 0.244, 0.824], [0.756, 0.5, 0.794], [0.176, 0.206, 0.5]]
    """
    n_arms, gap = _checked_arms(n_arms), _checked_gap(gap)
    if not 0 <= winner < n_arms:
        raise PreferenceError(f"the winner must be an arm from 0 to {n_arms - 1} (found {winner}).")
    rows, columns = np.triu_indices(n_arms, k=1)
    size, sign = uniform(generator, 2 * len(rows)).reshape(2, -1)
    lead = (gap + (MOST_GAP - gap) * size) * np.where(sign < 0.5, 1, -1)
    lead = np.where(rows == winner, np.abs(lead), lead)
    lead = np.where(columns == winner, -np.abs(lead), lead)
    p = np.full((n_arms, n_arms), 0.5)
    p[rows, columns] += lead
    p[columns, rows] = 1 - p[rows, columns]
    return p


def cyclic(n_arms: int, gap: float = LEAST_GAP) -> Floats:
    """A cycle: each arm beats the next ones, up to half way around. There is no best arm.

    With K odd, each arm beats (K - 1) / 2 others; with K even, opposite arms are equal.

    Args:
        n_arms: K, at least 3.
        gap: p_ij - 1/2 wherever i beats j, above 0 and at most `MOST_GAP`.

    >>> cyclic(3, gap=0.25).tolist()
    [[0.5, 0.75, 0.25], [0.25, 0.5, 0.75], [0.75, 0.25, 0.5]]
    """
    n_arms, gap = _checked_arms(n_arms, least=3), _checked_gap(gap)
    ahead = (np.arange(n_arms) - np.arange(n_arms)[:, None]) % n_arms
    signs = np.sign(n_arms - 2 * ahead) * (ahead > 0)
    return np.asarray(0.5 + gap * signs, dtype=np.float64)


def uniform(generator: Generator, n: int) -> Floats:
    """Uniform numbers in (0, 1), the middles of 2**52 equal parts.

    Args:
        generator: what they are drawn from; n words of it.
        n: how many.
    """
    parts = (generator.words(n) >> np.uint64(12)).astype(np.float64)
    return np.asarray((parts + 0.5) * 2.0**-52, dtype=np.float64)


def _checked_arms(n_arms: int, least: int = 2) -> int:
    if not least <= n_arms <= MOST_ARMS:
        raise PreferenceError(
            f"the number of arms must be from {least} to {MOST_ARMS} (found {n_arms})."
        )
    return n_arms


def _checked_gap(gap: float) -> float:
    if not 0 < gap <= MOST_GAP:
        raise PreferenceError(
            f"the gap must be greater than 0 and at most {MOST_GAP} (found {gap})."
        )
    return gap


World = Callable[[int, Generator, float], Floats]

_WORLDS: Final = MappingProxyType[str, World](
    {
        "bradley-terry": lambda n, generator, _: bradley_terry(random_utilities(n, generator)),
        "gaussian": lambda n, generator, _: gaussian(random_utilities(n, generator)),
        "condorcet": lambda n, generator, gap: random_condorcet(n, generator, gap=gap),
        "cyclic": lambda n, _, gap: cyclic(n, gap),
    }
)

NAMES: Final = tuple(_WORLDS)
"""The kinds of matrices that `world` makes."""

WITH_GAP: Final = ("condorcet", "cyclic")
"""Those of them that have a gap."""


def world(name: str, n_arms: int, generator: Generator, gap: float = LEAST_GAP) -> Floats:
    """A preference matrix of a kind, by name.

    Args:
        name: `bradley-terry` and `gaussian` have standard normal utilities, `condorcet` one arm
            that beats all others and no further order, `cyclic` no best arm.
        n_arms: K.
        generator: what is drawn from.
        gap: of `condorcet` the least, of `cyclic` the only gap; the others have none.

    Raises:
        PreferenceError: there is no such kind, or a number is not allowed.
    """
    if name not in _WORLDS:
        raise PreferenceError(
            f"the environment must be one of {', '.join(NAMES)}"
            f" (found {name!r}{nearest(name, NAMES)})."
        )
    return _WORLDS[name](n_arms, generator, gap)

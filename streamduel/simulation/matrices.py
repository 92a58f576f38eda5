"""Preference matrices: published, of arms with utilities, at random, and cyclic."""

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
from streamduel.preference.matrix import MAX_ARMS

ARXIV: Final[Floats] = np.array(
    (
        (0.50, 0.55, 0.55, 0.54, 0.61, 0.61),
        (0.45, 0.50, 0.55, 0.55, 0.58, 0.60),
        (0.45, 0.45, 0.50, 0.54, 0.51, 0.56),
        (0.46, 0.45, 0.46, 0.50, 0.54, 0.50),
        (0.39, 0.42, 0.49, 0.46, 0.50, 0.51),
        (0.39, 0.40, 0.44, 0.50, 0.49, 0.50),
    )
)
"""Six rankers of the arXiv search engine: [i][j] is the probability that ranker i beats ranker j.

Measured on users by interleaving: Yue and Joachims, "Beat the Mean Bandit", ICML 2011, Table 1, as
in the file `pref_arxiv.txt` of jkomiyama/duelingbanditlib (MIT). The first ranker beats all others,
by at least 0.04; the fourth and the sixth are equal; the preferences are not transitive in
strength. Such small gaps are typical of a search engine's rankers.
"""
ARXIV.setflags(write=False)

ARXIV_RANKERS: Final = ("ltr-v3", "ltr-v2", "dense-v1", "ltr-v1", "bm25-rm3", "bm25")
"""Invented names of the six, in the order of the rows; the paper gives none."""

MIN_GAP: Final = 0.05
"""The default of the least |p_ij - 1/2| of a random matrix."""

MAX_GAP: Final = 0.35
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


def gaussian(utilities: Sequence[float]) -> Floats:
    """p_ij = Φ((u_i - u_j) / √2): the larger of two noisy utilities wins.

    Args:
        utilities: (K,) mean utility u of each arm; its standard deviation at each duel is 1.

    >>> gaussian([1.0, 0.0]).round(4).tolist()
    [[0.5, 0.7602], [0.2398, 0.5]]

    Source: Thurstone, "A law of comparative judgment", Psychological Review 34, 1927, case V.
    """
    # Φ(x) = (1 + erf(x / √2)) / 2
    return _of_differences(utilities, lambda gap: (1 + math.erf(gap / 2)) / 2)


def _of_differences(utilities: Sequence[float], chance: Callable[[float], float]) -> Floats:
    """The matrix in which p_ij is a function of u_i - u_j ≥ 0, and p_ji = 1 - p_ij."""
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
    """Utilities of K arms from the standard normal distribution; K words are drawn."""
    return normal(generator, _checked_arms(n_arms))


def random_condorcet(n_arms: int, generator: Generator, *, gap: float = MIN_GAP) -> Floats:
    """Random preferences in which arm 0 beats all others.

    The gaps |p_ij - 1/2| are independent and uniform from `gap` to `MAX_GAP`; a fair coin decides
    which of two other arms is ahead.

    Args:
        n_arms: K, at least 2.
        generator: K (K - 1) words are drawn from it.
        gap: the least gap, above 0 and at most `MAX_GAP`.

    >>> random_condorcet(3, Generator(7), gap=0.1).round(3).tolist()
    [[0.5, 0.756, 0.824], [0.244, 0.5, 0.206], [0.176, 0.794, 0.5]]
    """
    n_arms, gap = _checked_arms(n_arms), _checked_gap(gap)
    rows, columns = np.triu_indices(n_arms, k=1)
    size, sign = uniform(generator, 2 * len(rows)).reshape(2, -1)
    lead = (gap + (MAX_GAP - gap) * size) * np.where(sign < 0.5, 1, -1)
    lead = np.where(rows == 0, np.abs(lead), lead)
    p = np.full((n_arms, n_arms), 0.5)
    p[rows, columns] += lead
    p[columns, rows] = 1 - p[rows, columns]
    return p


def cyclic(n_arms: int, gap: float = MIN_GAP) -> Floats:
    """A cycle: each arm beats the next ones, up to half way around. There is no Condorcet winner.

    With K odd, each arm beats (K - 1) / 2 others; with K even, opposite arms are equal.

    Args:
        n_arms: K, at least 3.
        gap: p_ij - 1/2 wherever i beats j, above 0 and at most `MAX_GAP`.

    >>> cyclic(3, gap=0.25).tolist()
    [[0.5, 0.75, 0.25], [0.25, 0.5, 0.75], [0.75, 0.25, 0.5]]
    """
    n_arms, gap = _checked_arms(n_arms, least=3), _checked_gap(gap)
    ahead = (np.arange(n_arms) - np.arange(n_arms)[:, None]) % n_arms
    signs = np.sign(n_arms - 2 * ahead) * (ahead > 0)
    return np.asarray(0.5 + gap * signs, dtype=np.float64)


def uniform(generator: Generator, n: int) -> Floats:
    """Uniform numbers in (0, 1), the middles of 2**52 equal parts; n words are drawn."""
    parts = (generator.words(n) >> np.uint64(12)).astype(np.float64)
    return np.asarray((parts + 0.5) * 2.0**-52, dtype=np.float64)


def normal(generator: Generator, n: int) -> list[float]:
    """Standard normal numbers; n words are drawn."""
    return [NormalDist().inv_cdf(draw) for draw in uniform(generator, n).tolist()]


def _checked_arms(n_arms: int, least: int = 2) -> int:
    if not least <= n_arms <= MAX_ARMS:
        raise PreferenceError(
            f"the number of arms must be from {least} to {MAX_ARMS} (found {n_arms})."
        )
    return n_arms


def _checked_gap(gap: float) -> float:
    if not 0 < gap <= MAX_GAP:
        raise PreferenceError(
            f"the gap must be greater than 0 and at most {MAX_GAP} (found {gap})."
        )
    return gap


_Kind = Callable[[int, Generator, float], Floats]

_KINDS: Final = MappingProxyType[str, _Kind](
    {
        "bradley-terry": lambda n, generator, _: bradley_terry(random_utilities(n, generator)),
        "gaussian": lambda n, generator, _: gaussian(random_utilities(n, generator)),
        "condorcet": lambda n, generator, gap: random_condorcet(n, generator, gap=gap),
        "cyclic": lambda n, _, gap: cyclic(n, gap),
    }
)

KINDS: Final = tuple(_KINDS)
"""The kinds of matrices that `generate` makes."""

WITH_GAP: Final = ("condorcet", "cyclic")
"""The kinds that have a gap."""


def generate(kind: str, n_arms: int, generator: Generator, gap: float = MIN_GAP) -> Floats:
    """Generate a preference matrix of a kind.

    Args:
        kind: `bradley-terry` and `gaussian` have standard normal utilities, `condorcet` one arm
            that beats all others and no further order, `cyclic` no Condorcet winner.
        n_arms: K.
        generator: of the random kinds.
        gap: the least gap of `condorcet`, the only gap of `cyclic`; the others have none.

    Raises:
        PreferenceError: the kind is unknown, or a number is not allowed.
    """
    if kind not in _KINDS:
        raise PreferenceError(
            f"the environment must be one of {', '.join(KINDS)}"
            f" (found {kind!r}{nearest(kind, KINDS)})."
        )
    return _KINDS[kind](n_arms, generator, gap)

"""The preference matrices of the experiments, and subsets of them."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.winners import condorcet_winner
from streamduel.simulation.matrices import ARXIV

FOLDER: Final = "PUBLISHED_MATRICES"
"""The environment variable that names the folder."""

NAVIGATIONAL: Final = "MSLR_Navigational_PMat.npz"
INFORMATIONAL: Final = "MSLR_Informational_PMat.npz"

HOW_TO_GET: Final = (
    f"the matrices are data of Zoghi, Karnin, Whiteson and de Rijke and no part of this project:"
    f" take {NAVIGATIONAL} and {INFORMATIONAL} from github.com/nightingal3/duelling-bandits (MIT),"
    f" and name their folder with --matrices or {FOLDER}"
)

WITHOUT_WINNER: Final = [92, 6, 91, 93, 104]
"""Five informational rankers, three of them Copeland winners in a cycle."""
WITH_WINNER: Final = [1, 3, 2, 0, 4]
"""Five informational rankers, one of them a Condorcet winner."""


def six_rankers() -> Floats:
    """The arXiv search engine's."""
    return ARXIV


def of_arms(p: Floats, arms: list[int] | Integers) -> Floats:
    """The preferences of a subset of arms."""
    return np.asarray(p[arms][:, arms], dtype=np.float64)


def random_arms(n_arms: int, size: int, random: np.random.Generator) -> Integers:
    """A random subset of arms, in ascending order."""
    return np.sort(random.random(n_arms).argsort()[:size]).astype(np.int64)


def condorcet_subsets(p: Floats, size: int, number: int, seed: int) -> list[Floats]:
    """Random subsets that have a Condorcet winner; those without are drawn again.

    Args:
        p: (K, K) of all arms.
        size: of each subset.
        number: of subsets.
        seed: equal seeds give equal subsets, whatever their number.
    """
    random = np.random.default_rng([seed, size])
    found: list[Floats] = []
    while len(found) < number:
        subset = of_arms(p, random_arms(len(p), size, random))
        if condorcet_winner(subset) is not None:
            found.append(subset)
    return found


def three_in_a_cycle(gaps: Floats) -> Floats:
    """Three Copeland winners in a cycle, which beat all others; the others are in order.

    The three beat K - 2 arms each, the others from 0 to K - 4.

    Args:
        gaps: (K, K), |p_ij - 1/2| is taken from above the diagonal.

    >>> three_in_a_cycle(np.full((4, 4), 0.25)).tolist()[2]
    [0.75, 0.25, 0.5, 0.75]
    """
    lead = np.triu(gaps, k=1)
    lead[0, 2] *= -1
    return np.asarray(0.5 + lead - lead.T, dtype=np.float64)

"""Random and published preference matrices for these tests."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from streamduel.preference.arrays import Floats
from streamduel.preference.matrix import read
from streamduel.preference.winners import wins_over

# The matrices belong to other authors' papers and are not part of the project; the environment
# variable names the folder that contains them.
FOLDER = "PUBLISHED_MATRICES"


def of_upper(upper: list[float], n_arms: int) -> Floats:
    """Return the matrix with these entries above the diagonal, row by row."""
    p = np.full((n_arms, n_arms), 0.5)
    above = np.triu_indices(n_arms, k=1)
    p[above] = upper
    p.T[above] = 1 - p[above]
    return p


@st.composite
def matrices(draw: st.DrawFn, most_arms: int = 6, ties: bool = True) -> Floats:
    """Multiples of 1/16: arithmetic is exact; ties and probabilities 0 and 1 are frequent."""
    n_arms = draw(st.integers(2, most_arms))
    sixteenths = st.integers(0, 16) if ties else st.integers(0, 16).filter(lambda n: n != 8)
    n_pairs = n_arms * (n_arms - 1) // 2
    upper = draw(st.lists(sixteenths, min_size=n_pairs, max_size=n_pairs))
    return of_upper([n / 16 for n in upper], n_arms)


def published(name: str) -> Floats:
    """Return a published matrix; skip the test if the file is missing."""
    path = Path(os.environ.get(FOLDER, "."), name)
    if not path.exists():
        pytest.skip(f"{name} not found; set {FOLDER} to the folder that contains it.")
    return read(path)


CYCLE = of_upper([0.75, 0.25, 0.75], 3)
"""0 beats 1 beats 2 beats 0, all by the same margin."""

EVEN = np.full((4, 4), 0.5)
"""Four identical arms."""

ORDER = of_upper([0.625, 0.75, 0.875, 0.625, 0.75, 0.625], 4)
"""A total order: each arm beats all arms with a larger index."""


def is_total_order(preferences: Floats) -> bool:
    """Return whether the arms can be ordered so that each one beats all that come after it.

    In such an order the arms beat K - 1, K - 2, …, 0 others; and with these numbers, the first
    beats all, the second all but the first, and so on. A single tie makes it impossible.
    """
    beaten = np.sort(wins_over(preferences))
    return bool((beaten == np.arange(len(preferences))).all())

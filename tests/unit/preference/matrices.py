"""Random and published preference matrices for these tests."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from streamduel.preference.arrays import Floats
from streamduel.preference.matrix import read

# They belong to other people's papers and are no part of the project: whoever has them names the
# folder that holds them.
FOLDER = "PUBLISHED_MATRICES"


def of_upper(upper: list[float], n_arms: int) -> Floats:
    """The matrix with these entries above the diagonal, row by row."""
    p = np.full((n_arms, n_arms), 0.5)
    above = np.triu_indices(n_arms, k=1)
    p[above] = upper
    p.T[above] = 1 - p[above]
    return p


@st.composite
def matrices(draw: st.DrawFn, most_arms: int = 6, ties: bool = True) -> Floats:
    """Multiples of 1/16, in which everything is exact and ties and certainties are frequent."""
    n_arms = draw(st.integers(2, most_arms))
    sixteenths = st.integers(0, 16) if ties else st.integers(0, 16).filter(lambda n: n != 8)
    n_pairs = n_arms * (n_arms - 1) // 2
    upper = draw(st.lists(sixteenths, min_size=n_pairs, max_size=n_pairs))
    return of_upper([n / 16 for n in upper], n_arms)


def published(name: str) -> Floats:
    """A published matrix; the test is skipped where it is not at hand."""
    path = Path(os.environ.get(FOLDER, "."), name)
    if not path.exists():
        pytest.skip(f"{name} is not here; the variable {FOLDER} names the folder that holds it.")
    return read(path)


CYCLE = of_upper([0.75, 0.25, 0.75], 3)
"""0 beats 1 beats 2 beats 0, all by as much."""

EVEN = np.full((4, 4), 0.5)
"""Four identical arms."""

ORDER = of_upper([0.625, 0.75, 0.875, 0.625, 0.75, 0.625], 4)
"""0 beats 1 beats 2 beats 3, and each all that come after it."""

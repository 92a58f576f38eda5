"""Which lists optimised interleaving may show, and how often: the linear programme."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Final

import numpy as np

from streamduel.errors import InterleavingError
from streamduel.interleaving.interleaved import Document
from streamduel.preference.arrays import Floats

_PRECISION: Final = 1e-10  # the finest that the solver offers
_NO_SOLVER: Final = (
    "optimised interleaving needs scipy; install it with pip install 'streamduel[sim]'."
)


def require_solver() -> None:
    """Refuse at the start what would fail at the first two rankings that differ.

    Raises:
        InterleavingError: scipy is not installed.
    """
    if find_spec("scipy") is None:  # not an import, which takes half a second
        raise InterleavingError(_NO_SOLVER)


def allowed_lists(
    list_a: Sequence[Document], list_b: Sequence[Document], ranks: int
) -> list[tuple[Document, ...]]:
    """The lists of which each beginning is the union of a beginning of a and one of b.

    Args:
        list_a: document ids of ranker a, the best first.
        list_b: those of ranker b.
        ranks: how long the lists are; neither ranking is shorter.

    Returns:
        None of them twice, 2^ranks at most.

    >>> ["".join(each) for each in allowed_lists("abc", "bca", 3)]
    ['abc', 'bac', 'bca']
    """
    beginnings: dict[tuple[Document, ...], None] = {(): None}
    for _ in range(ranks):
        longer: dict[tuple[Document, ...], None] = {}
        for beginning in beginnings:
            for ranking in (list_a, list_b):
                top = next(document for document in ranking if document not in beginning)
                longer[(*beginning, top)] = None
        beginnings = longer
    return list(beginnings)


def sensitivity_of(worths: Floats) -> Floats:
    """How much a click on each list tells about who is better.

    Args:
        worths: (n, ranks) what a click is worth; its sign matters.

    Returns:
        (n,) from 0 to 1 bit.

    >>> sensitivity_of(np.array([[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]])).round(3).tolist()
    [0.751, 0.0]
    """
    attention = 1 / np.arange(1, worths.shape[1] + 1)
    attention /= attention.sum() or 1.0
    wins_a, wins_b = (worths > 0) @ attention, (worths < 0) @ attention
    decided = wins_a + wins_b
    share = wins_a / np.where(decided > 0, decided, 1.0)
    entropy = np.zeros(len(worths))
    for part in (share, 1 - share):
        entropy -= part * np.log2(np.where(part > 0, part, 1.0))
    return np.asarray(decided * entropy, dtype=np.float64)


def most_sensitive(worths: Floats, sensitivity: Floats) -> Floats:
    """The most sensitive probabilities of all that are unbiased.

    Args:
        worths: (n, ranks) what a click on each list is worth.
        sensitivity: (n,) of each list.

    Returns:
        (n,) of sum 1. Lists that are never shown have exactly 0.

    Raises:
        InterleavingError: there are none, or scipy is not installed.
    """
    n = len(worths)
    if n == 1:  # the rankings agree; there is nothing to choose
        return np.ones(1)
    try:
        from scipy.optimize import linprog  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise InterleavingError(_NO_SOLVER) from None
    scale = np.abs(worths).max() or 1.0  # the solver's precision is absolute
    solution = linprog(
        -sensitivity,
        A_eq=np.vstack((worths.T / scale, np.ones(n))),
        b_eq=np.append(np.zeros(worths.shape[1]), 1.0),
        bounds=(0, None),
        method="highs",
        options={
            "primal_feasibility_tolerance": _PRECISION,
            "dual_feasibility_tolerance": _PRECISION,
        },
    )
    if solution.status != 0 or solution.x is None:
        raise InterleavingError(
            f"these rankings have no unbiased interleaving (found: {solution.message}); interleave"
            " them by team draft."
        )
    probabilities = np.where(solution.x > _PRECISION, solution.x, 0.0)
    return np.asarray(probabilities / probabilities.sum(), dtype=np.float64)

"""Types of arrays, and where the largest of some values is."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Booleans: TypeAlias = npt.NDArray[np.bool_]

_FEW = 16
"""Up to this many numbers a list is faster: at K = 6, 0.9 µs instead of 1.7 µs, of 7 µs for a
decision of RUCB."""


def places_of_largest(values: Floats) -> list[int]:
    """Where the largest of the values is: all its places, ascending.

    Args:
        values: (n,), at least one, none of them NaN.

    >>> places_of_largest(np.array([0.5, 0.75, 0.25])), places_of_largest(np.array([2.0, 1.0, 2.0]))
    ([1], [0, 2])
    """
    if len(values) > _FEW:
        places: list[int] = (values == values[values.argmax()]).nonzero()[0].tolist()
        return places
    listed: list[float] = values.tolist()
    largest = max(listed)
    if listed.count(largest) == 1:
        return [listed.index(largest)]
    return [place for place, value in enumerate(listed) if value == largest]

"""The largest or the least of some numbers, and where it is: what most decisions come down to.

numpy's argmax and argmin let go of the interpreter each time, however few numbers there are. That
costs nothing by itself; but while another thread waits for the interpreter, to answer a scrape or
to send to Kafka, each time wakes it in vain, which takes as long as the whole decision. Of few
numbers a list is as quick, and keeps the interpreter.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streamduel.preference.arrays import Floats

FEW: Final = 16
"""Up to so many numbers a list is as quick as an array: 0.8 µs for `largest_at`."""


def largest(values: Floats) -> float:
    """The largest of the values.

    Args:
        values: (n,), at least one, none of them NaN.

    >>> largest(np.array([0.5, 0.75, 0.25]))
    0.75
    """
    if len(values) <= FEW:
        found: float = max(values.tolist())
        return found
    return values.item(values.argmax())


def largest_at(values: Floats) -> list[int]:
    """Where the largest of the values is: all its places, ascending.

    Args:
        values: (n,), at least one, none of them NaN; written to, and as before in the end.

    >>> largest_at(np.array([0.5, 0.75, 0.25])), largest_at(np.array([2.0, 1.0, 2.0]))
    ([1], [0, 2])
    """
    if len(values) <= FEW:
        listed: list[float] = values.tolist()
        most = max(listed)
        if listed.count(most) == 1:
            return [listed.index(most)]
        return [place for place, value in enumerate(listed) if value == most]
    best = int(values.argmax())
    most = values.item(best)
    values[best] = -np.inf
    alone = values.item(values.argmax()) < most
    values[best] = most
    places: list[int] = [best] if alone else (values == most).nonzero()[0].tolist()
    return places


def least_at(values: Floats) -> int:
    """Where the least of the values is, first.

    Args:
        values: (n,), at least one, none of them NaN.

    >>> least_at(np.array([0.5, 0.25, 0.75, 0.25]))
    1
    """
    if len(values) <= FEW:
        listed: list[float] = values.tolist()
        return listed.index(min(listed))
    return int(values.argmin())

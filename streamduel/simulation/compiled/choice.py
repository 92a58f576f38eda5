"""Choosing among arms at random: the n-th of those marked, and one with the largest value."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamduel.preference.arrays import Booleans, Floats
from streamduel.simulation.compiled.arena import Arena, below
from streamduel.simulation.compiled.jit import compiled

NONE: Final = -1
"""No arm."""


@compiled
def nth(marked: Booleans, n: int) -> int:
    """The place before which n others are marked.

    >>> nth(np.array([False, True, False, True]), 1)
    3
    """
    for place in range(len(marked)):
        if marked[place]:
            if n == 0:
                return place
            n -= 1
    return NONE


@compiled
def number(marked: Booleans) -> int:
    """How many places are marked."""
    total = 0
    for place in range(len(marked)):
        total += marked[place]
    return total


@compiled
def one_of_largest(arena: Arena, values: Floats, passed: int) -> int:
    """A place of the largest value; a random one of several, among which `passed` is no choice.

    Args:
        arena: gives a draw, if there are several.
        values: the largest is not negative.
        passed: a place, or NONE.
    """
    # Numbers that are not negative are ordered as their bits are; and of integers, a processor
    # compares many at once.
    bits = values.view(np.int64)
    highest, tied = np.int64(0), 0
    for place in range(len(values)):
        highest = max(highest, bits[place])
    for place in range(len(values)):
        tied += bits[place] == highest
    n = 0
    if tied == 1:
        passed = NONE
    else:
        n = below(arena, tied - (passed != NONE and bits[passed] == highest))
    for place in range(len(values)):
        if bits[place] == highest and place != passed:
            if n == 0:
                return place
            n -= 1
    return NONE


@compiled
def one_of_least(arena: Arena, values: Floats) -> int:
    """A place of the least value, a random one of several; none is negative.

    Args:
        arena: gives a draw, if there are several.
        values: none of them negative.
    """
    bits = values.view(np.int64)  # as above
    least, tied = np.int64(least_bits(values)), 0
    for place in range(len(values)):
        tied += bits[place] == least
    n = below(arena, tied)
    for place in range(len(values)):
        if bits[place] == least:
            if n == 0:
                return place
            n -= 1
    return NONE


@compiled
def least_of(values: Floats) -> float:
    """The least value; none is negative."""
    bits, least, place = values.view(np.int64), least_bits(values), 0
    while bits[place] != least:
        place += 1
    result: float = values[place]
    return result


@compiled
def largest_of(values: Floats) -> float:
    """The largest value; it is not negative."""
    bits, largest, place = values.view(np.int64), np.int64(0), 0
    for other in range(len(values)):
        largest = max(largest, bits[other])
    while bits[place] != largest:
        place += 1
    result: float = values[place]
    return result


@compiled
def least_bits(values: Floats) -> int:
    """The bits of the least value; none is negative."""
    bits = values.view(np.int64)
    least = bits[0]
    for place in range(len(values)):
        least = min(least, bits[place])
    return least  # type: ignore[no-any-return]

"""Leaping over steps in which nothing changes but ln t: looking for the step that ends them.

A statement about the scale α ln t holds at a step `last`, and from some later step on it does not.
About where that is follows from the scale at which the statement should cease to hold; rounding may
shift it by a step. So the statement itself is tried, first there, then by bisection: while
`end - last > 1`, try `probe(...)`, and set `last` or `end` to it.
"""

from __future__ import annotations

from math import ceil, exp

from streamduel.simulation.compiled.jit import compiled
from streamduel.simulation.compiled.logarithm import ln


@compiled
def step_of(scale: float, alpha: float, end: int) -> int:
    """About the first step at which α ln t reaches a scale, but at most `end`.

    >>> step_of(2.5, 0.51, 10**9), step_of(2.5, 0.51, 100)
    (135, 100)
    """
    return min(end, ceil(exp(min(scale / alpha, ln(end)))))


@compiled
def probe(last: int, end: int, guess: int) -> int:
    """The step to try next: the one before the guess, then the guess, then the middle.

    >>> probe(10, 1000, 135), probe(134, 1000, 135), probe(135, 1000, 135)
    (134, 135, 567)
    """
    if last < guess - 1 < end:
        return guess - 1
    return guess if last < guess < end else (last + end) // 2

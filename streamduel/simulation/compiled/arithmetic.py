"""Logarithms and what depends on them, with the same bits as the policies' Python code."""

from __future__ import annotations

from math import ceil, exp, frexp

from streamduel.policies.base import beta
from streamduel.preference import divergence, elimination, exponential, logarithm, normal
from streamduel.preference import evidence as wagers
from streamduel.preference.array_logarithm import HIGH, LOW, POINTS
from streamduel.preference.logarithm import LN2_HIGH, LN2_LOW, STEPS
from streamduel.simulation.compiled.jit import compiled, share


def _ln(x: float) -> float:
    """`logarithm.ln` with its table in arrays, since numba does not compile a table of tuples."""
    mantissa, exponent = frexp(x)
    row = int(mantissa * STEPS + 0.5) - STEPS // 2
    point = POINTS[row]
    s = (mantissa - point) / (mantissa + point)
    square = s * s
    series = square * (2 / 3 + square * (2 / 5 + square * (2 / 7)))
    low = 2 * s + (s * series + (exponent * LN2_LOW + LOW[row]))
    return float((exponent * LN2_HIGH + HIGH[row]) + low)


ln = share(logarithm.ln, _ln)
evidence = share(divergence.evidence)
share(exponential.series)
share(exponential.exp)
share(normal.tail_exponent)
share(normal.scaled_tail)
wealth = share(wagers.wealth)
wager = share(elimination.wager)
share(beta.log_density)
share(beta.exp_from_below)
sampling_box = share(beta.sampling_box)
in_region = share(beta.in_region)

# While a policy compares an arm with itself, only ln t changes. A condition on the scale α ln t
# holds at a step `last`, and from some later step on it does not. The scale at which it ceases to
# hold gives that step up to a rounding error, so the condition itself is evaluated, first there,
# then by bisection: while `end - last > 1`, evaluate it at `probe(...)`, and move `last` or `end`.


@compiled
def step_of(scale: float, alpha: float, end: int) -> int:
    """About the first step at which α ln t reaches a scale, but at most `end`.

    >>> step_of(2.5, 0.51, 10**9), step_of(2.5, 0.51, 100)
    (135, 100)
    """
    return min(end, ceil(exp(min(scale / alpha, ln(end)))))


@compiled
def probe(last: int, end: int, guess: int) -> int:
    """The next step to evaluate: the one before the guess, then the guess, then the middle.

    >>> probe(10, 1000, 135), probe(134, 1000, 135), probe(135, 1000, 135)
    (134, 135, 567)
    """
    if last < guess - 1 < end:
        return guess - 1
    return guess if last < guess < end else (last + end) // 2

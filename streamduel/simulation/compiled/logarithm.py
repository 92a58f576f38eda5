"""The natural logarithm of `streamduel.preference.logarithm`, compiled, with the same bits."""

from __future__ import annotations

from math import frexp

from streamduel.preference.array_logarithm import HIGH, LOW, POINTS
from streamduel.preference.logarithm import LN2_HIGH, LN2_LOW, STEPS
from streamduel.simulation.compiled.jit import compiled


@compiled
def ln(x: float) -> float:
    """The natural logarithm of x > 0; see there.

    >>> from streamduel.preference import logarithm
    >>> all(ln(x) == logarithm.ln(x) for x in (1.0, 1.5, 3.0, 4.5e6, 2.0**50, 1e-9))
    True
    """
    mantissa, exponent = frexp(x)
    row = int(mantissa * STEPS + 0.5) - STEPS // 2
    point = POINTS[row]
    s = (mantissa - point) / (mantissa + point)
    square = s * s
    series = square * (2 / 3 + square * (2 / 5 + square * (2 / 7)))
    low = 2 * s + (s * series + (exponent * LN2_LOW + LOW[row]))
    return float((exponent * LN2_HIGH + HIGH[row]) + low)

"""The natural logarithm of arrays, in the same bits as `streamduel.preference.logarithm`."""

from __future__ import annotations

import numpy as np

from streamduel.preference.arrays import Floats
from streamduel.preference.logarithm import LN2_HIGH, LN2_LOW, STEPS, TABLE

POINTS, HIGH, LOW = (np.array(column) for column in zip(*TABLE, strict=True))


def ln_each(x: Floats) -> Floats:
    """`ln` of every element, in the same bits; -inf where an element is 0.

    Args:
        x: of any shape, each at least 0 and at most 2**1000.

    >>> ln_each(np.array([0.0, 0.5, 2.0])).tolist()
    [-inf, -0.6931471805599453, 0.6931471805599453]
    """
    mantissa, exponent = np.frexp(np.where(x > 0, x, 1.0))
    row = (mantissa * STEPS + 0.5).astype(np.int64) - STEPS // 2
    point = POINTS[row]
    s = (mantissa - point) / (mantissa + point)
    square = s * s
    series = square * (2 / 3 + square * (2 / 5 + square * (2 / 7)))
    low = 2 * s + (s * series + (exponent * LN2_LOW + LOW[row]))
    return np.where(x > 0, (exponent * LN2_HIGH + HIGH[row]) + low, -np.inf)

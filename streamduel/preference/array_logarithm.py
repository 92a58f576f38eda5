"""The natural logarithm of arrays, in the same bits as `streamduel.preference.logarithm`."""

from __future__ import annotations

import numpy as np

from streamduel.preference.arrays import Floats, constants, polynomial
from streamduel.preference.logarithm import LN2_HIGH, LN2_LOW, STEPS, TABLE

SERIES = constants(2 / 3, 2 / 5, 2 / 7)
POINTS, HIGH, LOW = (np.array(column) for column in zip(*TABLE, strict=True))


def ln_each(x: Floats) -> Floats:
    """`ln` of every element, in the same bits; -inf where an element is 0.

    Args:
        x: of any shape, each at least 0 and at most 2**1000.

    >>> ln_each(np.array([0.0, 0.5, 2.0])).tolist()
    [-inf, -0.6931471805599453, 0.6931471805599453]
    """
    positive = x > 0
    mantissa, exponent = np.frexp(x if positive.all() else np.where(positive, x, 1.0))
    row = (mantissa * STEPS + 0.5).astype(np.int64)
    row -= STEPS // 2
    point = POINTS.take(row)
    s = (mantissa - point) / (mantissa + point)
    square = s * s
    low = polynomial(square, SERIES)
    low *= square
    low *= s
    low += exponent * LN2_LOW + LOW.take(row)
    low += 2 * s
    low += exponent * LN2_HIGH + HIGH.take(row)
    return low if positive.all() else np.where(positive, low, -np.inf)

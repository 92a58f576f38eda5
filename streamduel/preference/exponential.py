"""The exponential function, with the same bits on every machine.

As with `streamduel.preference.logarithm`, only +, -, *, / and scaling by powers of 2 are used,
whose results IEEE 754 defines.
"""

from __future__ import annotations

from math import factorial, floor, ldexp
from typing import Final

import numpy as np

from streamduel.preference.arrays import Floats, constants, polynomial
from streamduel.preference.logarithm import LN2_HIGH, LN2_LOW

PER_LN2: Final = 1.4426950408889634
"""1 / ln 2."""

C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12 = (1 / factorial(n) for n in range(2, 13))
SERIES: Final = constants(*(1 / factorial(n) for n in range(13)))


def exp(x: float) -> float:
    """The power e ** x, equal in every bit on every machine.

    With k the integer next to x / ln 2, exp(x) = 2**k exp(r), |r| ≤ ln 2 / 2: the series to r**12
    leaves less than 2**-52.

    Args:
        x: from -700 to 700.

    >>> exp(0.0), round(exp(1.0), 15)
    (1.0, 2.718281828459046)
    """
    k = floor(x * PER_LN2 + 0.5)
    return ldexp(series((x - k * LN2_HIGH) - k * LN2_LOW), k)


def exp_each(x: Floats) -> Floats:
    """`exp` of every element, in the same bits.

    Args:
        x: of any shape, each from -700 to 700.

    >>> exp_each(np.array([0.0, 1.0])).round(15).tolist()
    [1.0, 2.718281828459046]
    """
    k = np.floor(x * PER_LN2 + 0.5)
    near = polynomial((x - k * LN2_HIGH) - k * LN2_LOW, SERIES)
    powers: Floats = np.ldexp(near, k.astype(np.int32), out=near)
    return powers


def series(r: float) -> float:
    """The exponential function near 0."""
    # fmt: off
    return 1 + r * (1 + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * (C7 + r * (
        C8 + r * (C9 + r * (C10 + r * (C11 + r * C12)))))))))))
    # fmt: on

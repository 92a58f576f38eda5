"""The natural logarithm of a count of duels, with the same bits on every machine.

A confidence bound compares with ln t, and one bit in it can decide a duel. `math.log` and
`numpy.log` differ in the last bit between C libraries and between processors; +, -, *, / and
`frexp` do not, because IEEE 754 says what they return.
"""

from __future__ import annotations

from decimal import Context, Decimal
from math import frexp
from typing import Final

_STEPS: Final = 64
# The arithmetic of `decimal` is software and correctly rounded, so these are the same everywhere.
_EXACT = Context(prec=60)


def _split(value: Decimal, bits: int) -> tuple[float, float]:
    """A value as a multiple of 2**-bits and the small remainder."""
    scale = 2**bits
    high = int(_EXACT.multiply(value, Decimal(scale)).to_integral_value())
    low = _EXACT.subtract(value, _EXACT.divide(Decimal(high), Decimal(scale)))
    return high / scale, float(low)


# ln 2 and the logarithms of the table are split so that `exponent * ln 2 + ln(point)` has no
# rounding error in its high part: multiples of 2**-42 below 2**10 fit into 53 bits.
_LN2_HIGH, _LN2_LOW = _split(_EXACT.ln(Decimal(2)), 42)
_TABLE = tuple(
    (point / _STEPS, *_split(_EXACT.ln(_EXACT.divide(Decimal(point), Decimal(_STEPS))), 42))
    for point in range(_STEPS // 2, _STEPS + 1)
)


def ln(t: int) -> float:
    """The natural logarithm of t, equal in every bit on every machine.

    With t = 2**e * m and p the multiple of 1/64 next to m, ln t = e ln 2 + ln p + ln(m / p), where
    ln(m / p) = 2 artanh(s), s = (m - p) / (m + p), |s| < 1/128: four terms of the series leave less
    than 2**-64. The error is below 1 unit in the last place (2 are promised); therefore
    ln(t + 1) > ln(t) for every t below 2**46, more duels than anybody will serve.

    Args:
        t: a count, from 1 to 2**1000.

    Raises:
        ValueError: t is below 1.

    >>> ln(1), ln(2), ln(1_000_000)
    (0.0, 0.6931471805599453, 13.815510557964274)

    Source: P. T. P. Tang, "Table-driven implementation of the logarithm function in IEEE
    floating-point arithmetic", ACM TOMS 16(4), 1990 (the idea; tables and terms are our own).
    """
    if t < 1:
        raise ValueError(f"the logarithm of a count needs a count from 1 (found {t!r}).")
    mantissa, exponent = frexp(t)
    point, high, low = _TABLE[int(mantissa * _STEPS + 0.5) - _STEPS // 2]
    s = (mantissa - point) / (mantissa + point)
    square = s * s
    series = square * (2 / 3 + square * (2 / 5 + square * (2 / 7)))
    return (exponent * _LN2_HIGH + high) + (2 * s + (s * series + (exponent * _LN2_LOW + low)))

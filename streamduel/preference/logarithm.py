"""The natural logarithm, with the same bits on every machine.

A confidence bound compares with ln t, and one bit in it can decide a duel. `math.log` and
`numpy.log` differ in the last bit between C libraries and between processors; +, -, *, / and
`frexp` do not, because IEEE 754 defines their results. Pure Python, because ranker services use it
without numpy; `ln_each` of `streamduel.preference.array_logarithm` is for arrays.
"""

from __future__ import annotations

from decimal import Context, Decimal
from math import frexp
from typing import Final

STEPS: Final = 64
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
LN2_HIGH, LN2_LOW = _split(_EXACT.ln(Decimal(2)), 42)
TABLE = tuple(
    (point / STEPS, *_split(_EXACT.ln(_EXACT.divide(Decimal(point), Decimal(STEPS))), 42))
    for point in range(STEPS // 2, STEPS + 1)
)


def ln(x: float) -> float:
    """The natural logarithm of x, equal in every bit on every machine.

    With x = 2**e * m and p the multiple of 1/64 next to m, ln x = e ln 2 + ln p + ln(m / p), where
    ln(m / p) = 2 artanh(s), s = (m - p) / (m + p), |s| < 1/128: four terms of the series leave less
    than 2**-64. The error is below 1 unit in the last place (2 are promised), also next to 1, where
    e ln 2 and ln p cancel exactly; therefore ln(t + 1) > ln(t) for every integer t below 2**46,
    more duels than any experiment has.

    Args:
        x: a count of duels, or a real number, greater than 0 and at most 2**1000.

    Raises:
        ValueError: x is not greater than 0.

    >>> ln(1), ln(2), ln(1_000_000), ln(0.5)
    (0.0, 0.6931471805599453, 13.815510557964274, -0.6931471805599453)

    Source: P. T. P. Tang, "Table-driven implementation of the logarithm function in IEEE
    floating-point arithmetic", ACM TOMS 16(4), 1990 (the idea; tables and terms are our own).
    """
    if not x > 0:
        raise ValueError(f"a logarithm needs a number greater than 0 (found {x!r}).")
    mantissa, exponent = frexp(x)
    point, high, low = TABLE[int(mantissa * STEPS + 0.5) - STEPS // 2]
    s = (mantissa - point) / (mantissa + point)
    square = s * s
    series = square * (2 / 3 + square * (2 / 5 + square * (2 / 7)))
    return (exponent * LN2_HIGH + high) + (2 * s + (s * series + (exponent * LN2_LOW + low)))

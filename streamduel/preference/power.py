"""Powers with fractional exponents, with the same bits on every machine."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Final

# The arithmetic of `decimal` is software; its ln and exp are correctly rounded.
_EXACT: Final = Context(prec=60, rounding=ROUND_HALF_EVEN)


def power(base: int, exponent: Fraction) -> Decimal:
    """The power base ** exponent, to more than 50 digits.

    `**` of floats asks the C library, whose last bits differ between machines; one bit can decide
    a comparison, or what is left when a power is rounded down.

    Args:
        base: from 1.
        exponent: from 0.

    >>> float(power(64, Fraction(101, 100))), float(power(1000, Fraction(2, 3)))
    (66.71780869383177, 100.0)
    """
    over = _EXACT.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    return _EXACT.exp(_EXACT.multiply(_EXACT.ln(Decimal(base)), over))

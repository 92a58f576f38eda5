"""Powers: exact for integer results, close to float powers otherwise."""

from __future__ import annotations

import decimal
from fractions import Fraction

import pytest

from streamduel.preference.power import power


@pytest.mark.parametrize("base", [1, 2, 7, 10, 1_000, 10**6, 10**15])
@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1), Fraction(3, 7), Fraction(101, 100)])
def test_close_to_float_power(base: int, exponent: Fraction) -> None:
    assert float(power(base, exponent)) == pytest.approx(base ** float(exponent), rel=1e-13)


@pytest.mark.parametrize(("root", "degree"), [(2, 13), (10, 6), (31, 4), (999_983, 2)])
def test_integer_root_exact_to_fifty_digits(root: int, degree: int) -> None:
    for step in range(degree + 1):
        exact = Fraction(power(root**degree, Fraction(step, degree)))
        assert abs(exact / root**step - 1) < Fraction(1, 10**50)


def test_independent_of_callers_decimal_context() -> None:
    expected = power(12_345, Fraction(5, 9))
    with decimal.localcontext() as context:
        context.prec = 3
        assert power(12_345, Fraction(5, 9)) == expected

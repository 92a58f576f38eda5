"""Tails and quantiles of the normal distribution against the C library."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from streamduel.preference.normal import GRID, QUANTILES, quantiles, scaled_tail


def test_tail_is_precise() -> None:
    for x in np.linspace(0, 5, 2_000).tolist():
        assert scaled_tail(x) == pytest.approx(math.exp(x * x) * math.erfc(x), rel=1.3e-7)


def test_tail_beyond_the_range_of_erfc() -> None:
    # erfcx(x) = (1 - 1 / (2 x²) + ...) / (x √π)
    assert scaled_tail(26.0) == pytest.approx((1 - 1 / 1352) / (26 * math.sqrt(math.pi)), rel=1e-5)


def test_quantiles_do_not_depend_on_the_last_bits_of_a_logarithm() -> None:
    inverse = NormalDist().inv_cdf
    exact = np.array([inverse((k + 0.5) / QUANTILES) for k in range(QUANTILES // 2, QUANTILES)])
    from_rounding_edge = np.abs((exact * GRID) % 1 - 0.5)
    assert from_rounding_edge.min() > 1e-7, "ten million times the error of a logarithm"
    assert quantiles()[QUANTILES // 2 :].tolist() == (np.rint(exact * GRID) / GRID).tolist()


def test_quantiles_are_of_the_normal_distribution() -> None:
    table = quantiles()
    assert len(table) == QUANTILES
    assert (np.diff(table) > 0).all()
    assert (table == -table[::-1]).all()
    assert (table**2).mean() == pytest.approx(1, abs=1e-3)
    assert (table**4).mean() == pytest.approx(3, abs=0.02)

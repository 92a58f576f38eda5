"""The normal distribution: tails, and quantiles for draws, with the same bits on every machine."""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Final, TypeVar

import numpy as np

from streamduel.preference.arrays import Floats
from streamduel.preference.exponential import exp, exp_each

Real = TypeVar("Real", float, Floats)

QUANTILES: Final = 1 << 16
"""Different values of a draw: 16 bits, so that a random word gives four."""

GRID: Final = 1 << 20
"""Quantiles are rounded to multiples of 2**-20, which no C library's last bit can change."""


def scaled_tail(x: float) -> float:
    """erfcx(x) = exp(x²) erfc(x), x from 0, with an error below 1.2e-7 of it.

    exp(-x²) times half of it is the probability that a standard normal variable exceeds x √2.

    Args:
        x: from 0.

    >>> round(scaled_tail(0.0), 6), round(scaled_tail(1.0), 6)
    (1.0, 0.427584)

    Source: W. H. Press et al., "Numerical Recipes", section 6.2 (`erfcc`).
    """
    t = 1 / (1 + x / 2)
    return t * exp(tail_exponent(t))


def scaled_tail_each(x: Floats) -> Floats:
    """`scaled_tail` of every element, in the same bits."""
    t = 1 / (1 + x / 2)
    tails: Floats = t * exp_each(tail_exponent(t))
    return tails


def tail_exponent(t: Real) -> Real:
    """The polynomial in the exponent of `scaled_tail`, t from 0 to 1."""
    # fmt: off
    return -1.26551223 + t * (1.00002368 + t * (0.37409196 + t * (0.09678418 + t * (
        -0.18628806 + t * (0.27886807 + t * (-1.13520398 + t * (1.48851587 + t * (
            -0.82215223 + t * 0.17087277))))))))
    # fmt: on


@cache
def quantiles() -> Floats:
    """(65536,) the quantiles of the standard normal distribution at (k + 1/2) / 65536, ascending.

    To index them with 16 random bits is to draw from that distribution, cut at 4.3.
    """
    inverse = NormalDist().inv_cdf
    half = QUANTILES // 2
    upper = [round(inverse((half + k + 0.5) / QUANTILES) * GRID) / GRID for k in range(half)]
    table = np.array([-x for x in reversed(upper)] + upper)
    table.flags.writeable = False
    return table

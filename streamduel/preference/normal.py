"""The normal distribution: tails, and quantiles for draws, with the same bits on every machine."""

from __future__ import annotations

from functools import cache
from statistics import NormalDist
from typing import Final

import numpy as np

from streamduel.preference.arrays import Floats, constants
from streamduel.preference.exponential import exp

QUANTILES: Final = 1 << 16
"""Different values of a draw: 16 bits, so that a random word gives four."""

C0, C1, C2, C3, C4, C5, C6, C7, C8, C9 = (
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398,
    1.48851587, -0.82215223, 0.17087277,
)  # fmt: skip
TAIL: Final = constants(C0, C1, C2, C3, C4, C5, C6, C7, C8, C9)

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


def tail_exponent(t: float) -> float:
    """The polynomial in the exponent of `scaled_tail`, t from 0 to 1."""
    # fmt: off
    return C0 + t * (C1 + t * (C2 + t * (C3 + t * (C4 + t * (C5 + t * (C6 + t * (C7 + t * (
        C8 + t * C9))))))))
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


@cache
def quantile_list() -> list[float]:
    """`quantiles()` as a list, which `bisect` searches faster: one for all policies of a process.

    It takes 2 MB. Do not change it.
    """
    values: list[float] = quantiles().tolist()
    return values

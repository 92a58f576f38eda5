"""ln t against correctly rounded `decimal` arithmetic."""

from __future__ import annotations

import math
import random
from decimal import Context, Decimal

import pytest

from streamduel.preference.logarithm import ln

EXACT = Context(prec=50)


def error(t: int) -> float:
    """Error of ln(t) in units in the last place."""
    exact = EXACT.ln(Decimal(t))
    return float(abs(Decimal(ln(t)) - exact) / Decimal(math.ulp(float(exact))))


def test_log_of_one_is_zero() -> None:
    assert ln(1) == 0.0
    assert math.copysign(1, ln(1)) == 1


def test_error_for_small_counts() -> None:
    assert max(error(t) for t in range(2, 10_000)) < 0.55


def test_error_for_large_counts() -> None:
    dice = random.Random(1)
    sizes = [dice.randint(10, 200) for _ in range(10_000)]
    assert max(error(dice.getrandbits(size) + 2) for size in sizes) < 0.55


def test_error_near_powers_of_two_and_table_points() -> None:
    near = [
        step * 2**exponent + offset
        for exponent in (10, 33, 46)
        for step in range(64, 256)
        for offset in (-1, 0, 1)
    ]
    assert max(map(error, near)) < 0.55


def test_strictly_increasing() -> None:
    dice = random.Random(2)
    starts = [1, *(dice.getrandbits(size) | 1 for size in range(10, 46))]
    for start in starts:
        values = [ln(t) for t in range(start, start + 2_000)]
        assert all(map(float.__lt__, values, values[1:]))


def test_pinned_bits() -> None:
    # Must be identical on every machine.
    pinned = {
        3: "0x1.193ea7aad030bp+0",
        1_000: "0x1.ba18a998fffa0p+2",
        10**9 + 7: "0x1.4b927f34a104dp+4",
        2**53 + 1: "0x1.25e4f7b2737fap+5",
    }
    assert {t: ln(t).hex() for t in pinned} == pinned


@pytest.mark.parametrize("t", [0, -1])
def test_below_one_rejected(t: int) -> None:
    with pytest.raises(ValueError, match=f"found {t}"):
        ln(t)

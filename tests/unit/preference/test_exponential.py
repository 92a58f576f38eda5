"""exp against correctly rounded `decimal` arithmetic."""

from __future__ import annotations

import math
import random
from decimal import Context, Decimal

import numpy as np

from streamduel.preference.exponential import exp, exp_each

EXACT = Context(prec=50)


def error(x: float) -> float:
    """Error of exp(x) in units in the last place."""
    exact = EXACT.exp(Decimal(x))
    return float(abs(Decimal(exp(x)) - exact) / Decimal(math.ulp(float(exact))))


def test_error() -> None:
    dice = random.Random(1)
    assert max(error(dice.uniform(-700, 700)) for _ in range(10_000)) < 3
    assert max(error(dice.uniform(-2, 2)) for _ in range(10_000)) < 3
    assert exp(0.0) == 1.0


def test_arrays_have_the_same_bits() -> None:
    dice = np.random.RandomState(2)
    x = np.concatenate(
        [dice.uniform(-700, 700, 5_000), dice.uniform(-1, 1, 5_000), [0.0, -700, 700]]
    )
    assert exp_each(x).tolist() == [exp(each) for each in x.tolist()]


def test_pinned_bits() -> None:
    # Must be identical on every machine.
    pinned = {x: exp(x).hex() for x in (-1.26551223, 0.3, 17.25, -333.3)}
    assert pinned == {
        -1.26551223: "0x1.20dd72fff3bdap-2",
        0.3: "0x1.599058c8c1a96p+0",
        17.25: "0x1.d94295464477bp+24",
        -333.3: "0x1.1bffc932ffe0dp-481",
    }

"""Random numbers from bits."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from streamduel.interleaving.base import below, uniform


@pytest.mark.parametrize("n", [2, 3, 6, 7, 8])
def test_each_integer_is_equally_likely(n: int) -> None:
    # A count of 8,000 has variance 8000 · (1/n)(1 - 1/n); five deviations, 26 counts in all.
    rng = random.Random(n)
    counts = Counter(below(n, rng) for _ in range(8000))
    assert counts.keys() == set(range(n))
    for count in counts.values():
        assert abs(count - 8000 / n) <= 5 * (8000 / n * (1 - 1 / n)) ** 0.5


def test_one_outcome_draws_no_bits() -> None:
    rng = random.Random(1)
    assert below(1, rng) == 0
    assert rng.getstate() == random.Random(1).getstate()


class Bits:
    """Planned bits; records how many were drawn."""

    def __init__(self, *values: int) -> None:
        self._values = list(values)
        self.asked: list[int] = []

    def getrandbits(self, k: int, /) -> int:
        self.asked.append(k)
        return self._values.pop(0)


def test_too_large_values_are_drawn_again() -> None:
    bits = Bits(7, 5, 4)
    assert below(5, bits) == 4
    assert bits.asked == [3, 3, 3]
    assert below(4, Bits(3)) == 3


def test_a_uniform_number_is_below_one() -> None:
    bits = Bits(0, 2**52, 2**53 - 1)
    assert [uniform(bits) for _ in range(3)] == [0.0, 0.5, 1 - 2**-53]
    assert bits.asked == [53, 53, 53]

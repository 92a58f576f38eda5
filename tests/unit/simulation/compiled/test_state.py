"""Random choices among arms, and the words they take."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel.policies.base.generator import Generator

pytest.importorskip("numba")

from streamduel.simulation.compiled import state as kernels
from streamduel.simulation.compiled.state import State

VALUES = np.array([0.5, 2.0, 0.0, 2.0, 2.0])


def state() -> State:
    square, words = np.zeros((5, 5)), Generator(7).words(10)
    cells, taken = np.zeros((5, 5), dtype=np.int64), np.zeros(1, dtype=np.int64)
    return State(square, cells, cells, cells, words, taken, words, taken.copy(), 1)


@pytest.mark.parametrize(
    ("passed", "among"), [(kernels.NONE, [1, 3, 4]), (0, [1, 3, 4]), (3, [1, 4])]
)
def test_one_of_the_largest_is_drawn_except_the_excluded_one(passed: int, among: list[int]) -> None:
    where, generator = state(), Generator(7)
    for _ in range(8):
        chosen = kernels.one_of_largest(where, VALUES, passed)
        assert chosen == among[generator.below(len(among))]


def test_a_single_largest_value_takes_no_word() -> None:
    where = state()
    for passed in (kernels.NONE, 2, 4):
        assert kernels.one_of_largest(where, np.arange(5.0), passed) == 4
    assert kernels.one_of_least(where, np.arange(5.0)) == 0
    assert where.taken.item() == 0


def test_one_of_the_least_is_drawn() -> None:
    where, generator = state(), Generator(7)
    for _ in range(8):
        assert kernels.one_of_least(where, 2 - VALUES) == [1, 3, 4][generator.below(3)]


def test_extremes() -> None:
    values = np.array([3.0, 1e-300, np.inf, 0.0])
    assert kernels.least_of(values) == 0.0
    assert kernels.least_of(values[:3]) == 1e-300

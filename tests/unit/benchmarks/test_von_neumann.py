"""The von Neumann winner: no arm beats it, and it is unique."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.notions_of_winner import von_neumann_winner
from streamduel.preference.arrays import Floats
from streamduel.preference.winners import condorcet_winner
from tests.unit.preference.matrices import CYCLE, EVEN, ORDER, matrices, of_upper


@given(matrices())
@settings(deadline=None)  # the first call loads the solver
def test_no_arm_wins_more_than_half_against_winner(p: Floats) -> None:
    x = von_neumann_winner(p)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(1)
    assert (x @ (p - 0.5) >= -1e-9).all()
    winner = condorcet_winner(p)
    if winner is not None:
        assert x.tolist() == np.eye(len(p))[winner].tolist()


@given(st.lists(st.integers(1, 15).filter(lambda n: n != 8), min_size=3, max_size=3))
@settings(deadline=None)
def test_closed_form_for_cycle_of_three(sixteenths: list[int]) -> None:
    # Each arm has probability proportional to the gap between the other two.
    first, second, third = (abs(n / 16 - 0.5) for n in sixteenths)
    p = of_upper([0.5 + first, 0.5 - second, 0.5 + third], 3)  # 0 > 1, 2 > 0, 1 > 2
    expected = np.array([third, second, first]) / (first + second + third)
    assert von_neumann_winner(p) == pytest.approx(expected, abs=1e-9)


def test_degenerate_matrices() -> None:
    assert von_neumann_winner(CYCLE) == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert von_neumann_winner(ORDER).tolist() == [1, 0, 0, 0]
    assert von_neumann_winner(EVEN).sum() == pytest.approx(1)
    assert von_neumann_winner(of_upper([0.5], 2)).sum() == pytest.approx(1)
    assert von_neumann_winner(of_upper([0.0], 2)).tolist() == [0, 1]


def test_arm_outside_support_is_exactly_zero() -> None:
    p = np.full((4, 4), 0.75)  # the cycle beats a fourth arm
    p[:3, :3], p[3] = CYCLE, [0.25, 0.25, 0.25, 0.5]
    assert von_neumann_winner(p)[3] == 0


@pytest.mark.parametrize("lead", [1e-6, 1e-12, 1e-15])
def test_small_gaps(lead: float) -> None:
    p = np.full((3, 3), 0.5)
    p[0, 1:] += lead
    p[1:, 0] -= lead
    assert von_neumann_winner(p).tolist() == [1, 0, 0]
    p = of_upper([0.5 + lead, 0.5 - lead, 0.5 + lead], 3)
    assert von_neumann_winner(p) == pytest.approx([1 / 3, 1 / 3, 1 / 3], abs=0.1)

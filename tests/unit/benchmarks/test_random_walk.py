"""Stationary distribution of the random walk against exact fractions and simulation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.papers.notions_of_winner import random_walk_scores, random_walk_winners
from streamduel.preference.arrays import Floats
from streamduel.preference.winners import condorcet_winner
from tests.unit.preference.matrices import CYCLE, EVEN, ORDER, matrices, of_upper


def moves(p: Floats) -> list[list[Fraction]]:
    """Exact transition probabilities from i (row) to j."""
    rows = [[Fraction(p[j, i]) for j in range(len(p))] for i in range(len(p))]
    return [[chance / sum(row) for chance in row] for row in rows]


def ever_visited_from(chain: list[list[Fraction]], start: int) -> set[int]:
    visited, ahead = {start}, [start]
    while ahead:
        here = ahead.pop()
        for arm, chance in enumerate(chain[here]):
            if chance and arm not in visited:
                visited.add(arm)
                ahead.append(arm)
    return visited


@given(matrices())
def test_distribution_is_stationary(p: Floats) -> None:
    scores, chain = random_walk_scores(p), moves(p)
    assert scores.sum() == pytest.approx(1)
    after = [sum(scores[i] * float(chain[i][j]) for i in range(len(p))) for j in range(len(p))]
    assert after == pytest.approx(scores, abs=1e-15)


@given(matrices())
def test_transient_arms_have_zero_probability(p: Floats) -> None:
    chain = moves(p)
    reach = [ever_visited_from(chain, arm) for arm in range(len(p))]
    for_ever = set.intersection(*reach)  # reached from everywhere
    assert for_ever
    assert set(np.flatnonzero(random_walk_scores(p)).tolist()) == for_ever


@given(matrices(), st.randoms(use_true_random=False))
def test_equivariant_under_permutation(p: Floats, dice: np.random.RandomState) -> None:
    order = list(range(len(p)))
    dice.shuffle(order)
    renamed = random_walk_scores(p[np.ix_(order, order)])
    assert renamed == pytest.approx(random_walk_scores(p)[order], abs=1e-15)


def test_long_walk_converges_to_distribution() -> None:
    p = np.array([[0.5, 0.9, 0.3], [0.1, 0.5, 0.8], [0.7, 0.2, 0.5]])
    dice, here, visits = np.random.RandomState(3), 0, np.zeros(3)
    for _ in range(50_000):
        rival = dice.randint(3)
        if dice.random_sample() < p[rival, here]:  # the opponent wins: the walk moves
            here = rival
            visits[here] += 1
    # The walk mixes within a few steps: 0.01 is more than four standard errors.
    assert visits / visits.sum() == pytest.approx(random_walk_scores(p), abs=0.01)


def test_symmetric_cases() -> None:
    assert random_walk_scores(EVEN).tolist() == [0.25, 0.25, 0.25, 0.25]
    assert random_walk_scores(CYCLE) == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert random_walk_winners(CYCLE).tolist() == [0, 1, 2]
    assert random_walk_winners(ORDER).tolist() == [0]


def test_always_winning_arm_is_absorbing() -> None:
    p = of_upper([0.5, 0.0, 0.0], 3)
    assert random_walk_scores(p).tolist() == [0, 0, 1]
    assert random_walk_winners(p).tolist() == [2]


def test_two_arms_distribution() -> None:
    # 0 is left with 1/4 : 1/2 + 1/4, and 1 is left with 3/4 : 1/2 + 3/4.
    scores = random_walk_scores(of_upper([0.75], 2))
    assert scores == pytest.approx([0.6 / (0.6 + 1 / 3), (1 / 3) / (0.6 + 1 / 3)])


def test_precision_for_tiny_probabilities() -> None:
    small = 2.0**-50
    p = of_upper([1 - small, 1.0, 1 - small], 3)
    scores = random_walk_scores(p)
    # 1 is entered from 0 at 2 small, and left for 0 at 2/3; 2 is entered from 1 alone.
    assert scores[1] == pytest.approx(3 * small, rel=1e-12)
    assert scores[2] == pytest.approx(scores[1] * (small / 1.5) / (4 / 5), rel=1e-12)


def test_condorcet_winner_not_always_most_visited() -> None:
    p = of_upper([0.55, 0.55, 0.55, 1.0, 1.0, 0.5], 4)
    assert condorcet_winner(p) == 0
    assert random_walk_winners(p).tolist() == [1]

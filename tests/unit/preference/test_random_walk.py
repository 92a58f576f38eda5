"""The random walk's distribution, against exact fractions and against walking."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamduel.preference.arrays import Floats
from streamduel.preference.winners import condorcet_winner, random_walk_scores, random_walk_winners
from tests.unit.preference.matrices import CYCLE, EVEN, ORDER, matrices, of_upper


def moves(p: Floats) -> list[list[Fraction]]:
    """The chance to go from i (the row) to j, exactly."""
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
def test_one_step_leaves_the_distribution_as_it_is(p: Floats) -> None:
    scores, chain = random_walk_scores(p), moves(p)
    assert scores.sum() == pytest.approx(1)
    after = [sum(scores[i] * float(chain[i][j]) for i in range(len(p))) for j in range(len(p))]
    assert after == pytest.approx(scores, abs=1e-15)


@given(matrices())
def test_arms_that_are_left_for_ever_have_no_part(p: Floats) -> None:
    chain = moves(p)
    reach = [ever_visited_from(chain, arm) for arm in range(len(p))]
    for_ever = set.intersection(*reach)  # reached from everywhere
    assert for_ever
    assert set(np.flatnonzero(random_walk_scores(p)).tolist()) == for_ever


@given(matrices(), st.randoms(use_true_random=False))
def test_names_do_not_matter(p: Floats, dice: np.random.RandomState) -> None:
    order = list(range(len(p)))
    dice.shuffle(order)
    renamed = random_walk_scores(p[np.ix_(order, order)])
    assert renamed == pytest.approx(random_walk_scores(p)[order], abs=1e-15)


def test_the_long_run_of_a_walk_is_the_distribution() -> None:
    p = np.array([[0.5, 0.9, 0.3], [0.1, 0.5, 0.8], [0.7, 0.2, 0.5]])
    dice, here, visits = np.random.RandomState(3), 0, np.zeros(3)
    for _ in range(50_000):
        rival = dice.randint(3)
        if dice.random_sample() < p[rival, here]:  # it wins: the walk moves
            here = rival
            visits[here] += 1
    # The walk forgets where it was within a few steps: 0.01 is four standard errors and more.
    assert visits / visits.sum() == pytest.approx(random_walk_scores(p), abs=0.01)


def test_symmetric_cases() -> None:
    assert random_walk_scores(EVEN).tolist() == [0.25, 0.25, 0.25, 0.25]
    assert random_walk_scores(CYCLE) == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert random_walk_winners(CYCLE).tolist() == [0, 1, 2]
    assert random_walk_winners(ORDER).tolist() == [0]


def test_an_arm_that_always_wins_is_never_left() -> None:
    p = of_upper([0.5, 0.0, 0.0], 3)
    assert random_walk_scores(p).tolist() == [0, 0, 1]
    assert random_walk_winners(p).tolist() == [2]


def test_two_arms() -> None:
    # 0 is left with 1/4 : 1/2 + 1/4, and 1 is left with 3/4 : 1/2 + 3/4.
    scores = random_walk_scores(of_upper([0.75], 2))
    assert scores == pytest.approx([0.6 / (0.6 + 1 / 3), (1 / 3) / (0.6 + 1 / 3)])


def test_tiny_probabilities_keep_their_digits() -> None:
    small = 2.0**-50
    p = of_upper([1 - small, 1.0, 1 - small], 3)
    scores = random_walk_scores(p)
    # 1 is entered from 0 at 2 small, and left for 0 at 2/3; 2 is entered from 1 alone.
    assert scores[1] == pytest.approx(3 * small, rel=1e-12)
    assert scores[2] == pytest.approx(scores[1] * (small / 1.5) / (4 / 5), rel=1e-12)


def test_the_condorcet_winner_need_not_be_visited_most() -> None:
    p = of_upper([0.55, 0.55, 0.55, 1.0, 1.0, 0.5], 4)
    assert condorcet_winner(p) == 0
    assert random_walk_winners(p).tolist() == [1]

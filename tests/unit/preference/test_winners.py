"""Every kind of winner against its literal definition."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from benchmarks.papers.notions_of_winner import borda_scores, borda_winners
from streamduel.preference.arrays import Floats
from streamduel.preference.winners import (
    condorcet_winner,
    copeland_scores,
    copeland_winners,
    wins_over,
)
from tests.unit.preference.matrices import (
    CYCLE,
    EVEN,
    ORDER,
    is_total_order,
    matrices,
    of_upper,
    published,
)


@given(matrices())
def test_condorcet_winner_beats_every_other_arm(p: Floats) -> None:
    arms = range(len(p))
    winners = [i for i in arms if all(p[i, j] > 0.5 for j in arms if j != i)]
    assert ([condorcet_winner(p)] if winners else []) == winners
    if winners:
        assert copeland_winners(p).tolist() == winners
    else:
        assert condorcet_winner(p) is None


@given(matrices())
def test_copeland_winners_beat_most_arms(p: Floats) -> None:
    arms = range(len(p))
    beaten = [sum(p[i, j] > 0.5 for j in arms if j != i) for i in arms]
    assert wins_over(p).tolist() == beaten
    assert copeland_scores(p).tolist() == [number / (len(p) - 1) for number in beaten]
    assert copeland_winners(p).tolist() == [i for i in arms if beaten[i] == max(beaten)]


@given(matrices())
def test_borda_winners_have_highest_mean_preference(p: Floats) -> None:
    arms = range(len(p))
    scores = [sum(Fraction(p[i, j]) for j in arms if j != i) / (len(p) - 1) for i in arms]
    assert borda_scores(p) == pytest.approx([float(score) for score in scores], abs=1e-15)
    assert borda_winners(p).tolist() == [i for i in arms if scores[i] == max(scores)]


@given(matrices(most_arms=5))
def test_order_requires_each_arm_to_beat_all_later_ones(p: Floats) -> None:
    ordered = any(
        all(p[i, j] > 0.5 for i, j in itertools.combinations(order, 2))
        for order in itertools.permutations(range(len(p)))
    )
    assert is_total_order(p) == ordered


def test_win_counts_and_their_preferences_agree() -> None:
    wins = np.array([[0.0, 6.0, 2.5], [2.0, 0.0, 0.0], [1.5, 0.0, 0.0]])
    assert condorcet_winner(wins) == 0
    assert copeland_scores(wins).tolist() == [1.0, 0.0, 0.0]
    assert not is_total_order(wins)


def test_all_arms_win_in_cycle() -> None:
    assert condorcet_winner(CYCLE) is None
    assert copeland_scores(CYCLE).tolist() == [0.5, 0.5, 0.5]
    assert copeland_winners(CYCLE).tolist() == [0, 1, 2]
    assert borda_winners(CYCLE).tolist() == [0, 1, 2]
    assert not is_total_order(CYCLE)


def test_identical_arms_share_the_win() -> None:
    assert condorcet_winner(EVEN) is None
    assert copeland_scores(EVEN).tolist() == [0, 0, 0, 0]
    assert copeland_winners(EVEN).tolist() == [0, 1, 2, 3]
    assert borda_scores(EVEN).tolist() == [0.5, 0.5, 0.5, 0.5]
    assert not is_total_order(EVEN)


def test_two_arms_winners() -> None:
    p = of_upper([0.25], 2)
    assert condorcet_winner(p) == 1
    assert copeland_winners(p).tolist() == [1]
    assert borda_scores(p).tolist() == [0.25, 0.75]
    assert is_total_order(p)


def test_order_by_reversed_index() -> None:
    assert is_total_order(ORDER)
    assert is_total_order(ORDER[::-1, ::-1])


def test_borda_scores_equal_up_to_rounding() -> None:
    p = np.full((5, 5), 0.5)  # circulant: each arm has the same preferences over the next two arms
    for arm in range(5):
        for rival in ((arm + 1) % 5, (arm + 2) % 5):
            p[arm, rival], p[rival, arm] = 0.05, 1 - 0.05
    assert len(set(borda_scores(p).tolist())) > 1
    assert borda_winners(p).tolist() == [0, 1, 2, 3, 4]


def test_condorcet_winner_may_differ_from_borda_winner() -> None:
    p = of_upper([0.6, 0.6, 1.0], 3)
    assert condorcet_winner(p) == 0
    assert borda_winners(p).tolist() == [1]


def test_published_matrices() -> None:
    assert condorcet_winner(published("MSLR_Informational_PMat.npz")) is None
    assert condorcet_winner(published("mslr5_Condorcet5_Informational.txt")) == 0
    assert condorcet_winner(published("mslr5_NonCondorcet5_Informational.txt")) is None
    assert is_total_order(published("pref_arithmetic.txt"))
    cyclic = published("pref_cyclic.txt")
    assert condorcet_winner(cyclic) == 0
    assert not is_total_order(cyclic)

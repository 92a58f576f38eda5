"""Confidence intervals against their definition and against how often they miss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.preference.arrays import Floats
from streamduel.preference.divergence import bernoulli
from streamduel.preference.intervals import hoeffding, kl_interval


@st.composite
def duels(draw: st.DrawFn) -> tuple[float, float]:
    """How many duels were won, ties being half a win, of how many."""
    plays = draw(st.integers(1, 10**6))
    return draw(st.integers(0, 2 * plays)) / 2, float(plays)


def ends(wins: float, plays: float, scale: float) -> tuple[float, float]:
    lower, upper = kl_interval(np.array([wins]), np.array([plays]), scale)
    return lower.item(), upper.item()


@given(duels(), st.floats(0.01, 50))
@settings(deadline=None)  # one call takes milliseconds, on a busy machine many
def test_the_ends_are_where_the_evidence_reaches_the_scale(
    duel: tuple[float, float], scale: float
) -> None:
    wins, plays = duel
    mean, (lower, upper) = wins / plays, ends(*duel, scale)
    assert 0 <= lower <= mean <= upper <= 1
    # The divergence is a difference of numbers around 1, and its rounding counts plays times.
    slack, step = 1e-9 * scale + 1e-14 * plays, 2e-12
    for end, outwards in ((lower, -step), (upper, step)):
        if 0 <= end + outwards <= 1:
            assert plays * bernoulli(mean, end + outwards) >= scale - slack
        if abs(end - mean) > step:
            assert plays * bernoulli(mean, end - outwards) <= scale + slack


@given(st.integers(1, 10**6), st.floats(0.001, 40))
@settings(deadline=None)  # one call takes milliseconds, on a busy machine many
def test_means_of_0_and_1_have_closed_forms(plays: int, scale: float) -> None:
    lower, upper = ends(plays, plays, scale)
    assert upper == 1
    assert lower == pytest.approx(math.exp(-scale / plays), abs=2e-12)
    lower, upper = ends(0, plays, scale)
    assert lower == 0
    assert upper == pytest.approx(-math.expm1(-scale / plays), abs=2e-12)


@given(duels(), st.floats(0, 50))
@settings(deadline=None)  # one call takes milliseconds, on a busy machine many
def test_the_chernoff_interval_lies_within_that_of_hoeffding(
    duel: tuple[float, float], scale: float
) -> None:
    wins, plays = np.array([duel[0]]), np.array([duel[1]])
    wide, narrow = hoeffding(wins, plays, scale), kl_interval(wins, plays, scale)
    assert wide[0] <= narrow[0] <= wins / plays <= narrow[1] <= wide[1]


@given(duels(), st.floats(0.01, 50))
@settings(deadline=None)  # one call takes milliseconds, on a busy machine many
def test_swapping_the_arms_mirrors_the_interval(duel: tuple[float, float], scale: float) -> None:
    wins, plays = duel
    lower, upper = ends(wins, plays, scale)
    mirrored = ends(plays - wins, plays, scale)
    assert mirrored == pytest.approx((1 - upper, 1 - lower), abs=1e-7)


def test_a_pair_that_has_not_met_may_be_anything() -> None:
    for function in (hoeffding, kl_interval):
        lower, upper = function(np.zeros((2, 2)), np.zeros((2, 2)), 3.0)
        assert lower.tolist() == [[0, 0], [0, 0]]
        assert upper.tolist() == [[1, 1], [1, 1]]


def test_without_evidence_allowed_only_the_mean_is_left() -> None:
    wins, plays = np.array([1.0, 0.0, 4.0]), np.array([4.0, 4.0, 4.0])
    for function in (hoeffding, kl_interval):
        for scale in (0.0, -1.0):
            lower, upper = function(wins, plays, scale)
            assert lower.tolist() == upper.tolist() == [0.25, 0, 1]


def test_each_pair_may_have_its_own_scale() -> None:
    wins, plays, scale = np.full(2, 6.0), np.full(2, 8.0), np.array([0.5, 2.0])
    for function in (hoeffding, kl_interval):
        lower, upper = function(wins, plays, scale)
        for i in range(2):
            alone = function(wins[i : i + 1], plays[i : i + 1], float(scale[i]))
            assert (lower[i], upper[i]) == (alone[0][0], alone[1][0])


def test_hoeffding_is_the_bonus_of_the_upper_bounds_at_twice_the_scale() -> None:
    lower, upper = hoeffding(np.array([8.0]), np.array([16.0]), scale=2 * 0.25)
    assert (lower.item(), upper.item()) == (0.5 - 0.125, 0.5 + 0.125)


def binomial(plays: int, truth: float) -> Floats:
    """How probable each number of wins is."""
    lost = 1 - truth
    return np.array(
        [math.comb(plays, n) * truth**n * lost ** (plays - n) for n in range(plays + 1)]
    )


def misses(lower: Floats, upper: Floats, truth: float, chances: Floats) -> tuple[float, float]:
    """How probable it is that the truth is below, and above, the interval."""
    return float(chances[lower > truth].sum()), float(chances[upper < truth].sum())


@pytest.mark.parametrize("truth", [0.02, 0.3, 0.5, 0.97])
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("plays", [1, 7, 60])
def test_intervals_miss_no_more_often_than_they_promise(
    truth: float, scale: float, plays: int
) -> None:
    wins = np.arange(plays + 1.0)
    chances = binomial(plays, truth)
    total = np.full(plays + 1, float(plays))
    for function in (hoeffding, kl_interval):
        below, above = misses(*function(wins, total, scale), truth, chances)
        assert max(below, above) <= math.exp(-scale)


def test_drawn_duels_miss_as_often_as_computed() -> None:
    truth, plays, scale, runs = 0.3, 60, 1.0, 20_000
    every = np.arange(plays + 1.0)
    chances = binomial(plays, truth)
    drawn = np.random.RandomState(5).binomial(plays, truth, runs).astype(float)
    for function in (hoeffding, kl_interval):
        expected = sum(misses(*function(every, np.full(plays + 1, 60.0), scale), truth, chances))
        lower, upper = function(drawn, np.full(runs, 60.0), scale)
        found = ((lower > truth) | (upper < truth)).mean()
        assert found == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / runs))


def test_bits_are_pinned() -> None:
    # Every machine has to agree with these.
    lower, upper = kl_interval(np.array([6.0, 30.5, 0.0]), np.array([8.0, 100.0, 9.0]), 2.0)
    assert [x.hex() for x in lower.tolist()] == [
        "0x1.9b6c933dbe7b4p-2",
        "0x1.c04c13fee3d6ep-3",
        "0x0.0p+0",
    ]
    assert [x.hex() for x in upper.tolist()] == [
        "0x1.e93ac5c4ab800p-1",
        "0x1.9b02c05917851p-2",
        "0x1.9816fd0e50000p-3",
    ]

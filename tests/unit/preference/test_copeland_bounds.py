"""Incrementally updated Copeland score bounds against a full recomputation."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from streamduel.preference.arrays import Floats
from streamduel.preference.copeland_bounds import CopelandBounds
from streamduel.preference.counts import WinCounts, distinct_pairs

SLOTS = ("_means", "_trials", "_margins", "_smallest", "next_turn", "beats", "undecided", "wins")


def recomputed(wins: Floats, in_flight: Floats, scale: float) -> tuple[Floats, Floats]:
    """All K x K bounds by definition: U and L."""
    played = wins + wins.T
    trials = played + in_flight
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(played > 0, wins / played, 1.0)
        upper: Floats = means + np.where(trials > 0, np.sqrt(scale / trials), 1.0)
    np.fill_diagonal(upper, 0.5)
    return upper, 1 - upper.T


def assert_as_recomputed(
    bounds: CopelandBounds, wins: Floats, in_flight: Floats, scale: float
) -> int:
    upper, lower = recomputed(wins, in_flight, scale)
    others = ~np.eye(len(wins), dtype=bool)
    assert bounds.beats.tolist() == (lower > 0.5).tolist()
    assert bounds.undecided.tolist() == ((lower <= 0.5) & (upper >= 0.5) & others).tolist()
    assert bounds.wins.tolist() == ((lower >= 0.5) & others).sum(axis=1).tolist()
    optimistic = ((upper >= 0.5) & others).sum(axis=1)
    assert (len(wins) - 1 - bounds.losses).tolist() == optimistic.tolist()
    for arm in range(len(wins)):
        assert bounds.against(arm, scale).tolist() == upper[:, arm].tolist()
    return int(bounds.wins.sum())


@pytest.mark.parametrize("n_arms", [2, 3, 7])
def test_scores_equal_definition_after_every_update(n_arms: int) -> None:
    counts, dice = WinCounts(n_arms), np.random.RandomState(n_arms)
    bounds, in_flight = CopelandBounds(counts), np.zeros((n_arms, n_arms))
    bounds.advance(0.1)
    flying: Counter[tuple[int, int]] = Counter()
    decided = set()
    for step in range(600):
        first, second = dice.randint(n_arms, size=2).tolist()
        pair = (min(first, second), max(first, second))
        if dice.randint(4):
            wins = 1.0 if first < second else 0.0
            counts.add_one(first, second, wins if dice.randint(4) else dice.randint(3) / 2)
            bounds.mark_in_flight(first, second, flying[pair])
        elif first != second:
            flying[pair] += 1
            in_flight[first, second] += 1
            in_flight[second, first] += 1
            bounds.mark_in_flight(first, second, flying[pair])
        # Up by small steps and leaps, and back.
        scale = (0.3 + step / 400) * (1, 1, 1, 0.6, 2.5)[dice.randint(5)] + dice.random_sample() / 9
        bounds.advance(scale)
        decided.add(assert_as_recomputed(bounds, counts.wins, in_flight, scale))
    assert len(decided) > 1 + n_arms // 3
    for first, second in flying:
        bounds.refresh(first, second)
    bounds.advance(1.7)
    assert_as_recomputed(bounds, counts.wins, np.zeros((n_arms, n_arms)), 1.7)


def test_pair_decided_below_margin() -> None:
    counts = WinCounts(4)
    bounds = CopelandBounds(counts)
    bounds.advance(0.0)
    turns = bounds.turns
    for pair, margin in (((0, 1), 4.0), ((3, 0), 2.0), ((2, 1), 1.0)):  # n / 4 when all are won
        counts.add_one(*pair, first_wins=1, count=int(4 * margin))
        bounds.refresh(*pair)
    assert (bounds.next_turn, bounds.turns) == (1.0, turns + 3)
    for scale, next_turn, wins in (
        (0.999, 1.0, [1, 0, 1, 1]),
        (1.001, 2.0, [1, 0, 0, 1]),
        (3.999, 4.0, [1, 0, 0, 0]),
        (4.001, np.inf, [0, 0, 0, 0]),
        (1.5, 2.0, [1, 0, 0, 1]),
    ):
        bounds.advance(scale)
        assert bounds.wins.tolist() == wins
        assert bounds.next_turn == next_turn
    before = bounds.turns
    bounds.advance(1.6)
    bounds.refresh(2, 2)
    bounds.advance(1.7)
    assert bounds.turns == before, "nothing has crossed"


def test_lead_reversal_in_one_update() -> None:
    counts = WinCounts(2)
    bounds = CopelandBounds(counts)
    bounds.advance(0.5)
    counts.add_one(0, 1, first_wins=1, count=10)
    bounds.refresh(0, 1)
    assert bounds.beats.tolist() == [[False, True], [False, False]]
    counts.add_one(1, 0, first_wins=1, count=40)
    bounds.refresh(1, 0)
    assert bounds.beats.tolist() == [[False, False], [True, False]]
    assert (bounds.wins.tolist(), bounds.losses.tolist()) == ([0, 1], [1, 0])


def test_batch_update_equals_single_updates() -> None:
    counts, dice = WinCounts(6), np.random.RandomState(1)
    one_by_one, at_once = CopelandBounds(counts), CopelandBounds(counts)
    one_by_one.advance(0.0)
    for m in (0, 1, 5, 100, 100):
        first, second = dice.randint(6, size=(2, m))
        counts.add(first, second, (first < second) * 1.0)
        at_once.refresh_many(*distinct_pairs(first, second, 6))
        for pair in zip(first.tolist(), second.tolist(), strict=True):
            one_by_one.refresh(*pair)
        from_counts = CopelandBounds(counts)
        for scale in (0.3, 0.9):
            for bounds in (one_by_one, at_once, from_counts):
                bounds.advance(scale)
            for name in SLOTS:
                expected = np.array(getattr(one_by_one, name)).tolist()
                assert np.array(getattr(at_once, name)).tolist() == expected, name
                assert np.array(getattr(from_counts, name)).tolist() == expected, name
    assert one_by_one.wins.sum() > 5

"""Incrementally updated upper confidence bounds against a full recomputation."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from streamduel.preference.arrays import Floats
from streamduel.preference.bounds import UpperBounds
from streamduel.preference.counts import WinCounts, distinct_pairs


def recomputed(wins: Floats, in_flight: Floats, scale: float) -> Floats:
    """All K x K bounds by definition."""
    played = wins + wins.T
    trials = played + in_flight
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(played > 0, wins / played, 1.0)
        upper: Floats = means + np.where(trials > 0, np.sqrt(scale / trials), 1.0)
    np.fill_diagonal(upper, 0.5)
    return upper


def assert_equal_to_definition(bounds: UpperBounds, wins: Floats, in_flight: Floats) -> None:
    for scale in (0.013, 0.57, 3.1):
        upper = recomputed(wins, in_flight, scale)
        possible = np.flatnonzero((upper >= 0.5).all(axis=1))
        assert bounds.possible_winners(scale).tolist() == possible.tolist()
        for arm in range(len(wins)):
            assert bounds.against(arm, scale).tolist() == upper[:, arm].tolist()


@pytest.mark.parametrize("n_arms", [2, 3, 7])
def test_bounds_equal_definition_after_every_update(n_arms: int) -> None:
    counts, dice = WinCounts(n_arms), np.random.RandomState(n_arms)
    bounds, in_flight = UpperBounds(counts), np.zeros((n_arms, n_arms))
    flying: Counter[tuple[int, int]] = Counter()
    for _ in range(300):
        first, second = dice.randint(n_arms, size=2).tolist()
        if dice.randint(2):
            counts.add_one(first, second, dice.randint(3) / 2)
            bounds.mark_in_flight(first, second, flying[min(first, second), max(first, second)])
        elif first != second:
            flying[min(first, second), max(first, second)] += 1
            in_flight[first, second] += 1
            in_flight[second, first] += 1
            bounds.mark_in_flight(first, second, int(in_flight[first, second]))
        assert_equal_to_definition(bounds, counts.wins, in_flight)
    for first, second in flying:
        bounds.refresh(first, second)
    assert_equal_to_definition(bounds, counts.wins, np.zeros((n_arms, n_arms)))


def test_batch_refresh_equals_single_refreshes() -> None:
    counts, dice = WinCounts(6), np.random.RandomState(1)
    one_by_one, at_once = UpperBounds(counts), UpperBounds(counts)
    for m in (0, 1, 2, 5, 100, 100):
        first, second = dice.randint(6, size=(2, m))
        counts.add(first, second, dice.randint(3, size=m) / 2)
        at_once.refresh_many(*distinct_pairs(first, second, 6))
        for pair in zip(first.tolist(), second.tolist(), strict=True):
            one_by_one.refresh(*pair)
        from_counts = UpperBounds(counts)
        for name in ("_means", "_trials", "_required", "_hurdles"):
            expected = getattr(one_by_one, name).tolist()
            assert getattr(at_once, name).tolist() == expected, name
            assert getattr(from_counts, name).tolist() == expected, name


def test_single_candidate_until_first_challenger() -> None:
    counts, dice = WinCounts(4), np.random.RandomState(5)
    bounds, held = UpperBounds(counts), 0
    for _ in range(400):
        first, second = dice.randint(4, size=2).tolist()
        counts.add_one(first, second, float(dice.random_sample() < 0.5 + 0.2 * (second - first)))
        bounds.refresh(first, second)
        challenges = [bounds.challenge(arm) for arm in range(4)]
        scales = [0.0, 0.3, 2.0, 9.0, *(c * near for c in challenges for near in (1 - 1e-9, 1.01))]
        for scale in scales:
            upper = recomputed(counts.wins, np.zeros((4, 4)), scale)
            possible = np.flatnonzero((upper >= 0.5).all(axis=1)).tolist()
            for arm in range(4):
                others = np.delete(upper[:, arm], arm)
                alone = possible == [arm] and others.max() < 0.5
                assert bounds.rules_out_all_but(arm, scale) == alone
                if alone:
                    assert scale <= challenges[arm]
                    held += 1
                elif possible == [arm] and scale > challenges[arm]:
                    assert others.max() >= 0.5
    assert held > 100

"""Regret bound against a search over all preferences within the intervals."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel.preference.arrays import Floats
from streamduel.preference.evidence import intervals
from streamduel.preference.regret import estimated_regret, regret_bound
from streamduel.preference.winners import condorcet_winner, copeland_scores

ORDER: Floats = np.array([[0, 90, 80], [30, 0, 70], [40, 50, 0.0]])
CYCLE: Floats = np.array([[0, 900, 100], [100, 0, 900], [900, 100, 0.0]])
ALONE = (50, 3, 1)


def regrets(p: Floats, wins: Floats, alone: tuple[int, ...]) -> dict[str, float]:
    """Regret of all duels under these preferences."""
    duels = np.triu(wins + wins.T) + np.diag(alone)
    scores = copeland_scores(p)
    found = {"copeland": float((duels * np.add.outer(scores.max() - scores,
                                                     scores.max() - scores)).sum())}  # fmt: skip
    winner = condorcet_winner(p)
    if winner is not None:
        gaps = p[winner] - 0.5
        strong = float((duels * np.add.outer(gaps, gaps)).sum())
        weak = float((duels * np.minimum.outer(gaps, gaps)).sum())
        found |= {"strong": strong, "condorcet": strong / 2, "weak": weak}
    return found


@pytest.mark.parametrize("wins", [ORDER, CYCLE, ORDER * 20])
def test_bound_covers_all_preferences_within_intervals(wins: Floats) -> None:
    bound = regret_bound(wins, ALONE, 0, delta=0.1)
    lower, upper = intervals(wins, 0.1)
    users = np.random.RandomState(1)
    worst = dict.fromkeys(bound, 0.0)
    for _ in range(3_000):
        # Often at the ends, where regrets are largest.
        p = np.full((3, 3), 0.5)
        for i, j in ((0, 1), (0, 2), (1, 2)):
            share = np.clip(users.random_sample() * 2 - 0.5, 0, 1)
            p[i, j] = lower[i, j] + share * (upper[i, j] - lower[i, j])
            p[j, i] = 1 - p[i, j]
        for kind, regret in regrets(p, wins, ALONE).items():
            worst[kind] = max(worst[kind], regret)
    assert all(worst[kind] <= bound[kind] + 1e-9 for kind in bound)
    if wins is ORDER:  # and the bound is not far above what is possible
        assert worst["strong"] > 0.9 * bound["strong"]


def test_estimate_below_bound() -> None:
    estimate = estimated_regret(ORDER, 0, ALONE)
    bound = regret_bound(ORDER, ALONE, 0, delta=0.05)
    assert all(estimate[kind] < bound[kind] for kind in estimate)


def test_champion_replaces_missing_condorcet_winner() -> None:
    bound = regret_bound(CYCLE, (0, 0, 0), 2, delta=0.05)
    _, upper = intervals(CYCLE, 0.05)
    gaps = np.maximum(upper[2] - 0.5, 0)
    gaps[2] = 0
    served = (CYCLE + CYCLE.T).sum(axis=1)
    assert bound["strong"] == pytest.approx(float(gaps @ served))


def test_self_duel_costs_twice_the_gap() -> None:
    more = estimated_regret(ORDER, 0, (0, 10, 0))["strong"]
    assert more - estimated_regret(ORDER, 0)["strong"] == pytest.approx(10 * 2 * 0.25)

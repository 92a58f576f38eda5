"""RUCB's regret is that of the algorithm as published, and its bounds hold as often as proved.

The bands come from `rucb_textbook.py`, which shares no code with streamduel: 4,000 of its runs gave
the means and deviations below. The mean of `RUNS` runs of ours must lie within four standard errors
of that mean, RUNS being so few that the textbook's own error does not matter. All seeds are fixed.

For orientation, measured once at T = 100,000, with one standard error: 566 ± 3 (the textbook, 2,000
runs) and 556 ± 5 (ours, 420 runs). Nearly all of it is gathered before T = 20,000.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from streamduel.policies import RUCB
from tests.statistics.rucb_textbook import ARXIV

RUNS = 60
TEXTBOOK = {  # checkpoint: (mean, deviation of one run) of the half regret
    False: {2_000: (104.2, 4.8), 10_000: (396.8, 49.8)},
    True: {2_000: (104.2, 4.9), 10_000: (397.1, 49.0)},
}


def regret(policy: RUCB, luck: random.Random, checkpoints: list[int]) -> list[float]:
    """Half regret, (Δ_wi + Δ_wj) / 2 per duel, at each checkpoint; the arms are shuffled."""
    arms = luck.sample(range(len(ARXIV)), k=len(ARXIV))
    chances = ARXIV[np.ix_(arms, arms)].tolist()
    gaps = [ARXIV[0, arm] - 0.5 for arm in arms]
    total, course = 0.0, []
    for t in range(1, max(checkpoints) + 1):
        first, second = policy.propose()[0].tolist()
        policy.observe(first, second, float(luck.random() < chances[first][second]))
        total += (gaps[first] + gaps[second]) / 2
        if t in checkpoints:
            course.append(total)
    return course


@pytest.mark.parametrize("champion_set", [False, True])
def test_regret_on_arxiv_is_the_textbooks(champion_set: bool) -> None:
    band = TEXTBOOK[champion_set]
    courses = [
        regret(RUCB(6, seed=run, champion_set=champion_set), random.Random(run), list(band))
        for run in range(RUNS)
    ]
    for measured, (mean, deviation) in zip(np.mean(courses, axis=0), band.values(), strict=True):
        assert abs(measured - mean) < 4 * deviation / RUNS**0.5


def test_regret_grows_ever_more_slowly() -> None:
    checkpoints = [2_000, 20_000, 40_000]
    courses = [regret(RUCB(6, seed=run), random.Random(run), checkpoints) for run in range(5)]
    early, middle, late = np.mean(courses, axis=0)
    assert (late - middle) / 20_000 < (early / 2_000) / 10


def test_the_bounds_hold_as_often_as_lemma_1_says() -> None:
    # With α = 2, K = 6 and δ = 0.1, C(δ) = ((4α - 1) K² / ((2α - 1) δ))^(1 / (2α - 1)) = 9.4: in at
    # least nine runs of ten, no bound is ever on the wrong side from the 10th duel on. A pair's
    # bounds narrow only when it is played, so it is enough to look then.
    failed = 0
    for run in range(60):
        policy, luck = RUCB(6, seed=run, alpha=2.0), random.Random(run)
        wrong = False
        for t in range(1, 1_001):
            first, second = policy.propose()[0].tolist()
            policy.observe(first, second, float(luck.random() < ARXIV[first, second]))
            upper = policy._bounds.against(second, scale=2.0 * np.log(t + 1)).item(first)
            lower = 1 - policy._bounds.against(first, scale=2.0 * np.log(t + 1)).item(second)
            wrong |= t > 9 and first != second and not lower <= ARXIV[first, second] <= upper
        failed += wrong
    assert failed <= 6

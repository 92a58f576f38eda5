import itertools

import numpy as np
import pytest

from streamduel.preference.arrays import Floats
from streamduel.preference.regret import KINDS, estimated_regret


def random_wins(seed: int, n_arms: int) -> Floats:
    """Wins and ties of random duels; some pairs have no duels."""
    rng = np.random.RandomState(seed)
    wins = rng.randint(0, 30, (n_arms, n_arms)).astype(float)
    ties = np.triu(rng.randint(0, 5, (n_arms, n_arms)), k=1)
    met = np.triu(rng.random_sample((n_arms, n_arms)) < 0.7, k=1)
    return (wins + (ties + ties.T) / 2) * (met + met.T)


def duel_by_duel(wins: Floats, champion: int) -> dict[str, float]:
    """The regret summed over single duels by definition."""
    n_arms = len(wins)

    def preference(i: int, j: int) -> float:
        met = wins[i, j] + wins[j, i]
        return float(wins[i, j] / met) if met else 0.5

    gap = [max(0.0, preference(champion, i) - 0.5) for i in range(n_arms)]
    score = [
        sum(preference(i, j) > 0.5 for j in range(n_arms) if j != i) / (n_arms - 1)
        for i in range(n_arms)
    ]
    sums = dict.fromkeys(KINDS, 0.0)
    for i, j in itertools.combinations(range(n_arms), 2):
        for _ in range(int(wins[i, j] + wins[j, i])):
            sums["condorcet"] += (gap[i] + gap[j]) / 2
            sums["strong"] += gap[i] + gap[j]
            sums["weak"] += min(gap[i], gap[j])
            sums["copeland"] += 2 * max(score) - score[i] - score[j]
    return sums


@pytest.mark.parametrize("seed", range(10))
def test_total_equals_sum_over_duels(seed: int) -> None:
    wins = random_wins(seed, n_arms=2 + seed % 5)
    for champion in range(len(wins)):
        assert estimated_regret(wins, champion) == pytest.approx(duel_by_duel(wins, champion))


def test_zero_regret_before_first_duel() -> None:
    assert estimated_regret(np.zeros((4, 4)), champion=2) == dict.fromkeys(KINDS, 0.0)


def test_no_negative_regret_for_arm_beating_champion() -> None:
    wins = np.array([[0.0, 1.0], [9.0, 0.0]])
    regret = estimated_regret(wins, champion=0)
    assert regret == {"condorcet": 0, "strong": 0, "weak": 0, "copeland": 10}


def test_wins_not_modified() -> None:
    wins = random_wins(3, n_arms=5)
    before = wins.copy()
    wins.flags.writeable = False
    estimated_regret(wins, champion=0)
    assert np.array_equal(wins, before)

"""Auto: RMED1 until every arm has surely lost to another one, then D-TS from the same counts.

This combination has no paper. RMED1 and D-TS are read as in their own files here. "Surely" is the
normal mixture of Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic
confidence sequences", Annals of Statistics 49(2), 2021, with sub-Gaussian steps of variance 1/4 and
a prior of precision ρ = 16: it must reach (K - 1) / δ, δ = 0.01. The check
precedes a duel, if there are 1 % and at least K more duels of different arms than at the last one.
"""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.double_thompson import first
from tests.statistics.textbook.estimates import certainly_beats, largest, play, second_sample
from tests.statistics.textbook.history import Floats, Ints, jitted, new_history, summary
from tests.statistics.textbook.rmed import admit, draw_each, likeliest, opponent


@jitted
def mixture(won: int, lost: int) -> float:
    """Mixture martingale of the hypothesis that the leader does not beat the other arm, ρ = 16."""
    variance = (won + lost) / 4.0
    excess = won - (won + lost) / 2.0
    return float(np.sqrt(16.0 / (variance + 16.0)) * np.exp(excess**2 / (2.0 * (variance + 16.0))))


@jitted
def all_have_lost(wins: Ints, delta: float) -> bool:
    """Whether each arm surely loses to another one."""
    n_arms = len(wins)
    for arm in range(n_arms):
        lost = False
        for other in range(n_arms):
            behind = wins[other, arm] > wins[arm, other]
            wealth = mixture(wins[other, arm], wins[arm, other])
            lost |= behind and wealth >= (n_arms - 1) / delta
        if not lost:
            return False
    return True


@jitted
def run(
    preferences: Floats, horizon: int, checkpoints: Ints, seed: int, delta: float = 0.01
) -> tuple[Ints, Ints]:
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    wins = np.zeros((n_arms, n_arms), dtype=np.int64)
    history = new_history(checkpoints)
    t = draw_each(preferences, history, wins, 1)
    order = np.random.permutation(n_arms)  # noqa: NPY002
    waiting = np.ones(n_arms, dtype=np.bool_)
    upcoming = np.zeros(n_arms, dtype=np.bool_)
    look_at, over = 1, False
    while t < len(history) and not over:
        for i in order:
            if not over and wins.sum() >= look_at:
                over = all_have_lost(wins, delta)
                look_at = wins.sum() + max(n_arms, wins.sum() // 100)
            if waiting[i] and not over and t < len(history):
                t += 1
                play(preferences, history, t, i, opponent(wins, likeliest(wins), i), wins)
                waiting[i] = False
                admit(upcoming, waiting, wins, t, 0.3 * n_arms**1.01)
        waiting[:] = upcoming
        upcoming[:] = False
    while t < len(history):
        t += 1
        scale = 0.51 * np.log(t)
        champion = first(wins, scale, False)
        uncertain = ~certainly_beats(wins, scale)[:, champion]
        challenger = largest(second_sample(wins, champion), uncertain)
        play(preferences, history, t, champion, challenger, wins)
    return summary(history, n_arms, checkpoints)

"""Auto: RMED1 until every arm has surely lost to another one, then D-TS from the same counts.

This combination has no paper. RMED1 and D-TS are read as in their own files here; "surely" as in
top-two, at ln 1/δ with δ = 0.01. The check precedes a duel, if there are 1 % and at least K more
duels of different arms than at the last one.
"""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.double_thompson import first
from tests.statistics.textbook.estimates import certainly_beats, largest, play, second_sample
from tests.statistics.textbook.history import Floats, Ints, jitted, new_history, summary
from tests.statistics.textbook.rmed import admit, draw_each, likeliest, opponent
from tests.statistics.textbook.top_two import against


@jitted
def all_have_lost(wins: Ints, delta: float) -> bool:
    """Whether surely no arm beats all others."""
    least = min([against(wins, arm) for arm in range(len(wins))])
    return bool(least >= np.log(1 / delta))


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

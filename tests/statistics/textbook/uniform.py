"""Uniform: two different arms, every pair equally likely. The baseline; no paper."""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.history import Floats, Ints, duel, jitted, new_history, summary


@jitted
def run(preferences: Floats, horizon: int, checkpoints: Ints, seed: int) -> tuple[Ints, Ints]:
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    history = new_history(checkpoints)
    for t in range(1, len(history) + 1):
        first = np.random.randint(n_arms)  # noqa: NPY002
        second = np.random.randint(n_arms - 1)  # noqa: NPY002
        if second >= first:
            second += 1
        duel(preferences, history, t, first, second)
    return summary(history, n_arms, checkpoints)

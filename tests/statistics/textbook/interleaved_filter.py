"""Interleaved Filter 1 and 2: Yue, Broder, Kleinberg and Joachims, "The K-armed Dueling Bandits
Problem", COLT 2009, Algorithms 2 and 3.

δ = 1 / (T K²) and c_t = sqrt(ln(1/δ) / t) as in this version; the journal version has
sqrt(4 ln(1/δ) / t), which is `confidence_scale` = 4. After each round robin the beaten arms go
first; then, of those that beat the candidate, the one against which its estimate is the lowest
becomes the candidate, with empty statistics. IF2 prunes, at that moment, the arms against which the
estimate is above 1/2. The last arm duels itself to the end.
"""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.history import (
    Floats,
    Ints,
    duel,
    jitted,
    new_history,
    one_of,
    settle,
    summary,
)


@jitted
def run(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    confidence_scale: float = 1.0,
    prune: bool = True,
) -> tuple[Ints, Ints]:
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    history = new_history(checkpoints)
    log_inverse_delta = np.log(horizon * n_arms**2)
    candidate = np.random.randint(n_arms)  # noqa: NPY002
    remaining = np.ones(n_arms, dtype=np.bool_)  # W
    remaining[candidate] = False
    won = np.zeros(n_arms)  # the candidate's wins against each arm of W
    comparisons = 0  # the candidate's duels with each arm of W
    t = 0
    while t < len(history) and remaining.any():
        for arm in np.flatnonzero(remaining):
            if t < len(history):
                t += 1
                won[arm] += duel(preferences, history, t, candidate, int(arm))
        comparisons += 1
        estimate = won / comparisons
        radius = np.sqrt(confidence_scale * log_inverse_delta / comparisons)
        remaining &= ~(estimate - radius >= 0.5)
        winning = remaining & (estimate + radius <= 0.5)
        if winning.any():
            if prune:
                remaining &= ~(estimate > 0.5)
            lowest = estimate[winning].min()
            candidate = one_of(winning & (estimate == lowest))
            remaining[candidate] = False
            won[:] = 0
            comparisons = 0
    settle(history, t + 1, len(history), candidate)
    return summary(history, n_arms, checkpoints)


@jitted
def run_1(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    confidence_scale: float = 1.0,
) -> tuple[Ints, Ints]:
    return run(preferences, horizon, checkpoints, seed, confidence_scale, False)


@jitted
def run_2(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    confidence_scale: float = 1.0,
) -> tuple[Ints, Ints]:
    return run(preferences, horizon, checkpoints, seed, confidence_scale, True)

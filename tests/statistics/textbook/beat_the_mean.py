"""Beat the Mean, online: Yue and Joachims, "Beat the Mean Bandit", ICML 2011, Algorithms 1 and 2:
explore, then exploit, with δ = 1/(2TK) and no limit N.

What the paper leaves open, and the reading taken:

- The radius is 3 γ² sqrt(ln(1/δ) / n) as printed; `tight` leaves out the 3. It is 1 for n = 0.
- The opponent is uniform over the other remaining arms. (The paper draws from all of them, the
  arm itself included; an arm learns nothing from itself.)
- A duel counts for the arm in turn alone, not for its opponent.
- After each duel at most one arm is removed, ties at random; its duels leave the others' counts.
- Exploitation: the arm left against itself.
"""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.estimates import largest, smallest
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
    gamma: float = 1.3,
    tight: bool = False,
) -> tuple[Ints, Ints]:
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    history = new_history(checkpoints)
    width = (1 if tight else 3) * gamma**2 * np.sqrt(np.log(2.0 * horizon * n_arms))
    played = np.zeros((n_arms, n_arms))  # duels of the first arm, in its turn, with the second
    won = np.zeros((n_arms, n_arms))  # wins of these
    working = np.ones(n_arms, dtype=np.bool_)  # W
    for t in range(1, len(history) + 1):
        arm = smallest(played.sum(axis=1), working)
        other = one_of(working & (np.arange(n_arms) != arm))
        played[arm, other] += 1
        won[arm, other] += duel(preferences, history, t, arm, other)
        n = played.sum(axis=1)
        estimates = np.where(n > 0, won.sum(axis=1) / np.maximum(n, 1), 0.5)
        least = n[working].min()
        radius = width / np.sqrt(least) if least > 0 else 1.0
        worst = smallest(estimates, working)
        best = largest(estimates, working)
        if estimates[worst] + radius <= estimates[best] - radius:
            working[worst] = False
            played[:, worst] = 0
            won[:, worst] = 0
        if working.sum() == 1:
            settle(history, t + 1, len(history), one_of(working))
            break
    return summary(history, n_arms, checkpoints)


@jitted
def run_tight(
    preferences: Floats, horizon: int, checkpoints: Ints, seed: int, gamma: float = 1.3
) -> tuple[Ints, Ints]:
    return run(preferences, horizon, checkpoints, seed, gamma, True)

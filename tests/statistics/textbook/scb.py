"""SCB: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS 2015, Algorithms 2-4.

Epoch r = 1, 2, … lasts T_r = 2^(2^r) duels, starts without earlier results, and runs Algorithm 2
with failure probability δ = ln(T_r) / T_r, at most 1/2; the arm it finds duels with itself for the
rest of the epoch. reward(i) duels i with an arm j drawn at random until n kl(p̂, 1/2) > ln(π² n² K²
/ (3 δ)); what is decided stays decided in that epoch.

Algorithm 4 has ε = 0, with which its printed condition never ends it. It also ends when one arm is
left, or when all opponents of all arms left are decided: then the scores of these arms are known,
and the result is the best of them, ties at random, as it would be after infinitely many rewards.
"""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.history import (
    Floats,
    Ints,
    Small,
    Truths,
    duel,
    jitted,
    kl,
    new_history,
    one_of,
    settle,
    summary,
)

UNDECIDED, LOSES, WINS, CUT_OFF = -1, 0, 1, -1


@jitted
def run(preferences: Floats, horizon: int, checkpoints: Ints, seed: int) -> tuple[Ints, Ints]:
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    history = new_history(checkpoints)
    t = 0
    r = 1
    while t < len(history):
        length = 2.0 ** (2.0**r)
        delta = min(np.log(length) / length, 0.5)
        end = int(min(t + length, len(history)))
        arm, t = find_winner(preferences, history, t, end, delta)
        if arm != CUT_OFF:
            settle(history, t + 1, end, arm)
            t = end
        r += 1
    return summary(history, n_arms, checkpoints)


@jitted
def find_winner(
    preferences: Floats, history: Small, t: int, end: int, delta: float
) -> tuple[int, int]:
    """Algorithm 4 over the rewards of Algorithm 2: the arm, and the duels played so far."""
    n_arms = len(preferences)
    outcome = np.full((n_arms, n_arms), UNDECIDED)
    rewards = np.zeros(n_arms)  # S
    kept = np.ones(n_arms, dtype=np.bool_)  # B
    draws = 1
    while True:
        for i in np.flatnonzero(kept):
            j = np.random.randint(n_arms - 1)  # noqa: NPY002
            if j >= i:
                j += 1
            t = decide(preferences, history, t, end, delta, outcome, int(i), j)
            if outcome[i, j] == UNDECIDED:
                return CUT_OFF, t
            rewards[i] += outcome[i, j]
        if draws >= 2:
            level = np.log(4 * draws * n_arms / delta) + 2 * np.log(np.log(draws))
            eliminate(kept, rewards / draws, level / draws)
        if kept.sum() == 1:
            return one_of(kept), t
        if all_decided(kept, outcome):
            scores = (outcome == WINS).sum(axis=1)
            return one_of(kept & (scores == scores[kept].max())), t
        draws += 1


@jitted
def decide(
    preferences: Floats,
    history: Small,
    t: int,
    end: int,
    delta: float,
    outcome: Ints,
    i: int,
    j: int,
) -> int:
    """Duel i with j until one is known to win, or the epoch is over."""
    n_arms = len(preferences)
    won = 0
    played = 0
    while outcome[i, j] == UNDECIDED and t < end:
        t += 1
        won += duel(preferences, history, t, i, j)
        played += 1
        level = np.log(np.pi**2 * played**2 * n_arms**2 / (3 * delta))
        if played * kl(won / played, 0.5) > level:
            outcome[i, j] = WINS if won > played / 2 else LOSES
            outcome[j, i] = LOSES if won > played / 2 else WINS
    return t


@jitted
def eliminate(kept: Truths, means: Floats, level: float) -> None:
    """Lines 10 and 11: drop the arms whose interval lies below that of another arm."""
    best = 0.0
    for i in np.flatnonzero(kept):
        best = max(best, least(means[i], level))
    for i in np.flatnonzero(kept):
        if 1 - least(1 - means[i], level) < best:
            kept[i] = False


@jitted
def least(mean: float, level: float) -> float:
    """The smallest q with kl(mean, q) ≤ level; the largest is 1 - least(1 - mean, level)."""
    if mean == 0:
        return 0.0
    outside, inside = 0.0, mean
    for _ in range(50):
        middle = (outside + inside) / 2
        if kl(mean, middle) <= level:
            inside = middle
        else:
            outside = middle
    return inside


@jitted
def all_decided(kept: Truths, outcome: Ints) -> bool:
    """Whether every pair with a remaining arm is decided."""
    n_arms = len(kept)
    for i in np.flatnonzero(kept):
        for j in range(n_arms):
            if i != j and outcome[i, j] == UNDECIDED:
                return False
    return True

"""C2B: Agarwal, Ghuge and Nagarajan, "An Asymptotically Optimal Batched Algorithm for the Dueling
Bandit Problem", NeurIPS 2022, Algorithm 1.

q = T^(1/B) with B = ⌊ln T⌋, q_r = ⌊q^r (1 + 1e-12)⌋, at least 1. In a round each pair of two arms
that lines 7 to 11 name is compared q_r times, once even if named from both sides, in an order drawn
at random. Sets D_r and candidate come from the counts and from q_(r-1) at the end of the last
round; c_ij = ∞ where i and j never met; candidate ties at random. Counts accumulate.

`elimination`: "kl" is that of section 4, I_i - I* > ln T + f(K), f(K) = 0.3 K^1.01, sums and least
value over all arms; "kl_anytime" has ln t, t being the duels so far; "hoeffding" is line 13. An
eliminated arm does not return. A rule that would eliminate all arms eliminates none in that round
(this cannot happen while one arm beats all others in the counts).
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


@jitted
def run(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    rounds: int = 0,  # B; 0 is ⌊ln T⌋
    elimination: str = "kl",
) -> tuple[Ints, Ints]:
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    history = new_history(checkpoints)
    n_rounds = rounds if rounds > 0 else int(np.log(horizon))
    q = horizon ** (1 / n_rounds)
    wins = np.zeros((n_arms, n_arms))
    active = np.ones(n_arms, dtype=np.bool_)
    r = 1
    t = 0
    while t < len(history) and active.sum() > 1:
        pairs = batch(active, defeats(wins, active, repeats(q, r - 1)))
        t = compare(preferences, history, t, pairs * repeats(q, r), wins)
        if elimination == "hoeffding":
            lost = lost_by_hoeffding(wins, active, n_rounds, horizon)
        elif elimination == "kl":
            lost = lost_by_kl(wins, np.log(horizon))
        else:
            lost = lost_by_kl(wins, np.log(t))
        if (active & ~lost).any():
            active &= ~lost
        r += 1
    settle(history, t + 1, len(history), one_of(active))  # if t < T, the only one left
    return summary(history, n_arms, checkpoints)


@jitted
def repeats(q: float, r: int) -> int:
    """q_r."""
    return max(1, int(q**r * (1 + 1e-12)))


@jitted
def defeats(wins: Floats, active: Truths, last_repeats: int) -> Truths:
    """Line 5: defeated[i, j] if j is in D_r(i)."""
    n_arms = len(wins)
    defeated = np.zeros((n_arms, n_arms), dtype=np.bool_)
    for i in range(n_arms):
        for j in range(n_arms):
            played = wins[i, j] + wins[j, i]
            if active[i] and active[j] and played > 0:
                radius = np.sqrt(2 * np.log(2 * n_arms**2 * last_repeats) / played)
                defeated[i, j] = wins[i, j] / played > 0.5 + radius
    return defeated


@jitted
def batch(active: Truths, defeated: Truths) -> Ints:
    """Lines 6 to 11: 1 for each pair i < j to compare, else 0."""
    n_arms = len(active)
    most = defeated.sum(axis=1)
    candidate = one_of(active & (most == most[active].max()))
    pairs = np.zeros((n_arms, n_arms), dtype=np.int64)
    for i in np.flatnonzero(active):
        if i != candidate:
            for j in np.flatnonzero(active):
                if j == candidate or (j != i and not defeated[candidate, i]):
                    pairs[min(i, j), max(i, j)] = 1
    return pairs


@jitted
def compare(preferences: Floats, history: Small, t: int, due: Ints, wins: Floats) -> int:
    """Play the due duels in random order, up to the last duel of the run."""
    n_arms = len(wins)
    left = due.sum()
    while left > 0 and t < len(history):
        ticket = np.random.randint(left)  # noqa: NPY002
        pair = 0
        while ticket >= due[pair // n_arms, pair % n_arms]:
            ticket -= due[pair // n_arms, pair % n_arms]
            pair += 1
        i, j = pair // n_arms, pair % n_arms
        due[i, j] -= 1
        left -= 1
        t += 1
        if duel(preferences, history, t, i, j):
            wins[i, j] += 1
        else:
            wins[j, i] += 1
    return t


@jitted
def lost_by_kl(wins: Floats, log_time: float) -> Truths:
    """The criterion of section 4."""
    n_arms = len(wins)
    information = np.zeros(n_arms)  # I_i
    for i in range(n_arms):
        for j in range(n_arms):
            played = wins[i, j] + wins[j, i]
            if wins[i, j] < wins[j, i]:
                information[i] += played * kl(wins[i, j] / played, 0.5)
    lost: Truths = information - information.min() > log_time + 0.3 * n_arms**1.01
    return lost


@jitted
def lost_by_hoeffding(wins: Floats, active: Truths, n_rounds: int, horizon: int) -> Truths:
    """Line 13."""
    n_arms = len(wins)
    lost = np.zeros(n_arms, dtype=np.bool_)
    for i in np.flatnonzero(active):
        for j in np.flatnonzero(active):
            played = wins[i, j] + wins[j, i]
            if played > 0:
                radius = np.sqrt(np.log(n_arms**2 * n_rounds * horizon) / (2 * played))
                lost[j] |= wins[i, j] / played > 0.5 + radius
    return lost

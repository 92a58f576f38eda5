"""RMED1, RMED2 and RMED2FH: Komiyama, Honda, Kashima and Nakagawa, "Regret Lower Bound and Optimal
Algorithm in Dueling Bandit Problem", COLT 2015, Algorithms 1 to 3. f(K) = 0.3 K^1.01, α = 3.

What the paper leaves open, and the reading taken:

- Initial phase: every pair once (RMED2FH: ⌈α ln ln T⌉ times, at least once), in random order; its
  duels count in t.
- The "arbitrarily fixed order" of a pass is one random order of the arms, drawn at the start.
- RMED2 completes the pairs with n < α ln ln t before each pass, not before each duel; nothing is
  due while ln ln t < 0. These duels leave the arm lists alone.
- Arms are admitted to the next pass after the outcome, with t the number of this duel. All arms
  that are not waiting in this pass are tested, so an arm left out earlier can come back.
- "n(l, i*) ≥ n(l, b) / ln ln t" is taken literally: a negative ln ln t makes it true; n(l, l)
  is 0.
- b(i): a quotient with d⁺ = 0 is +∞; a negative numerator stays (the authors' library has at
  least 0.01).
- i*, b, and the challenger of smallest mean: ties at random. The challenger is the champion
  itself exactly if the arm in turn is i* and no arm has a mean of 1/2 or more against it.
"""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.estimates import mean, play, smallest
from tests.statistics.textbook.history import (
    Floats,
    Ints,
    Small,
    Truths,
    jitted,
    kl,
    new_history,
    one_of,
    summary,
)


@jitted
def shortfalls(wins: Ints) -> Floats:
    """I_i of every arm i: the evidence of the counts against i as Condorcet winner."""
    n_arms = len(wins)
    total = np.zeros(n_arms)
    for i in range(n_arms):
        for j in range(n_arms):
            p = mean(wins, i, j)
            if j != i and p <= 0.5:
                total[i] += (wins[i, j] + wins[j, i]) * kl(p, 0.5)
    return total


@jitted
def cheapest_opponent(wins: Ints, best: int, i: int) -> int:
    """b(i): the arm whose duels with i cost the least regret per information."""
    n_arms = len(wins)
    price = np.full(n_arms, np.inf)
    for j in range(n_arms):
        p = mean(wins, i, j)
        if j != i and p < 0.5:
            gaps = mean(wins, best, i) - 0.5 + mean(wins, best, j) - 0.5
            price[j] = gaps / kl(p, 0.5)
    return smallest(price, np.arange(n_arms) != i)


@jitted
def likeliest(wins: Ints) -> int:
    """i*, the arm of smallest I."""
    total = shortfalls(wins)
    return one_of(total == total.min())


@jitted
def all_cheapest(wins: Ints) -> Ints:
    """b(i) of every arm i."""
    best = likeliest(wins)
    return np.array([cheapest_opponent(wins, best, i) for i in range(len(wins))])


@jitted
def opponent(wins: Ints, best: int, arm: int) -> int:
    """Algorithm 2: the arm's opponent in RMED1."""
    n_arms = len(wins)
    means = np.array([mean(wins, arm, j) for j in range(n_arms)])
    others = np.arange(n_arms) != arm
    rivals = others & (means <= 0.5)
    if rivals[best] or not rivals.any():
        return best
    return smallest(means, others)


@jitted
def opponent_2(wins: Ints, best: int, arm: int, cheapest: int, t: int) -> int:
    """Algorithm 3: the arm's opponent in RMED2 and RMED2FH."""
    with_best = wins[arm, best] + wins[best, arm]
    with_cheapest = wins[arm, cheapest] + wins[cheapest, arm]
    if mean(wins, arm, cheapest) <= 0.5 and with_best >= with_cheapest / np.log(np.log(t)):
        return cheapest
    return opponent(wins, best, arm)


@jitted
def shuffled_pairs(n_arms: int) -> Ints:
    """All pairs, in random order."""
    pairs = np.array([(i, j) for i in range(n_arms) for j in range(i)])
    return pairs[np.random.permutation(len(pairs))]  # noqa: NPY002


@jitted
def draw_each(preferences: Floats, history: Small, wins: Ints, times: int) -> int:
    """The initial phase: every pair `times` times. Returns the number of duels."""
    t = 0
    for i, j in shuffled_pairs(len(wins)):
        for _ in range(min(times, len(history) - t)):
            t += 1
            play(preferences, history, t, i, j, wins)
    return t


@jitted
def complete(preferences: Floats, history: Small, wins: Ints, t: int, alpha: float) -> int:
    """Play every pair with fewer than α ln ln t duels until it has them; returns the new t."""
    for i, j in shuffled_pairs(len(wins)):
        while 2 <= t < len(history) and wins[i, j] + wins[j, i] < alpha * np.log(np.log(t + 1)):
            t += 1
            play(preferences, history, t, i, j, wins)
    return t


@jitted
def admit(upcoming: Truths, waiting: Truths, wins: Ints, t: int, margin: float) -> None:
    """Line 18: the arms, of those not waiting, that join the next pass."""
    total = shortfalls(wins)
    for j in range(len(upcoming)):
        if not waiting[j] and total[j] - total.min() <= np.log(t) + margin:
            upcoming[j] = True


@jitted
def run(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    variant: int,
    alpha: float,
    scale: float,
) -> tuple[Ints, Ints]:
    """Variant 1 is RMED1, 2 is RMED2, 3 is RMED2FH."""
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    wins = np.zeros((n_arms, n_arms), dtype=np.int64)
    history = new_history(checkpoints)
    margin = scale * n_arms**1.01  # f(K)
    times = 1  # L
    if variant == 3 and horizon >= 3:
        times = max(1, int(np.ceil(alpha * np.log(np.log(horizon)))))
    t = draw_each(preferences, history, wins, times)
    cheapest = all_cheapest(wins)  # b, fixed by RMED2FH
    order = np.random.permutation(n_arms)  # noqa: NPY002
    waiting = np.ones(n_arms, dtype=np.bool_)  # L_R
    upcoming = np.zeros(n_arms, dtype=np.bool_)  # L_N
    while t < len(history):
        if variant == 2:
            t = complete(preferences, history, wins, t, alpha)
        for i in order:
            if waiting[i] and t < len(history):
                t += 1
                best = likeliest(wins)
                if variant == 2:
                    cheapest[i] = cheapest_opponent(wins, best, i)
                if variant == 1:
                    j = opponent(wins, best, i)
                else:
                    j = opponent_2(wins, best, i, cheapest[i], t)
                play(preferences, history, t, i, j, wins)
                waiting[i] = False
                admit(upcoming, waiting, wins, t, margin)
        waiting[:] = upcoming
        upcoming[:] = False
    return summary(history, n_arms, checkpoints)


@jitted
def run_1(
    preferences: Floats, horizon: int, checkpoints: Ints, seed: int, scale: float = 0.3
) -> tuple[Ints, Ints]:
    """f(K) = scale · K^1.01."""
    return run(preferences, horizon, checkpoints, seed, 1, 0.0, scale)


@jitted
def run_2(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    alpha: float = 3.0,
    scale: float = 0.3,
) -> tuple[Ints, Ints]:
    """The pairs are explored α ln ln t times."""
    return run(preferences, horizon, checkpoints, seed, 2, alpha, scale)


@jitted
def run_2fh(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    alpha: float = 3.0,
    scale: float = 0.3,
) -> tuple[Ints, Ints]:
    """The pairs are explored ⌈α ln ln T⌉ times, all at the start; b is then fixed."""
    return run(preferences, horizon, checkpoints, seed, 3, alpha, scale)

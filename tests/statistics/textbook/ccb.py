"""CCB: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS 2015, Algorithm 1.

An unseen pair has u = 2 and l = -1. Line 9 in the order A, B, C on the bounds of this step, all of
its inequalities strict; a set B left empty resets everything. In line 10 the coin comes first, and
an empty set leads on to line 11. In line 13, if no arm of the shortlist has l_jc ≤ 1/2, all arms
are taken; c is dropped from the argmax only where it ties with another arm.
"""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.history import (
    Floats,
    Ints,
    Truths,
    confidence_bounds,
    duel,
    jitted,
    new_history,
    one_of,
    summary,
)


@jitted
def run(
    preferences: Floats, horizon: int, checkpoints: Ints, seed: int, alpha: float = 0.51
) -> tuple[Ints, Ints]:
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    history = new_history(checkpoints)
    wins = np.zeros((n_arms, n_arms))
    best = np.ones(n_arms, dtype=np.bool_)  # B
    rivals = np.zeros((n_arms, n_arms), dtype=np.bool_)  # rivals[i, j]: j is in B^i
    losses = n_arms  # L_C
    for t in range(1, len(history) + 1):
        upper, lower = confidence_bounds(wins, alpha * np.log(t))
        at_most, at_least = score_bounds(upper, lower)
        optimistic = at_most == at_most.max()  # C_t
        losses = reset_disproven(lower, best, rivals, losses)
        losses = remove_losers(upper, at_most, at_least, best, rivals, losses)
        losses = add_winners(optimistic, at_most, at_least, best, rivals, losses)
        c, d = choose(upper, lower, optimistic, best, rivals)
        won = duel(preferences, history, t, c, d)
        if c != d:
            if won:
                wins[c, d] += 1
            else:
                wins[d, c] += 1
    return summary(history, n_arms, checkpoints)


@jitted
def score_bounds(upper: Floats, lower: Floats) -> tuple[Ints, Ints]:
    """Line 7: upper and lower bound of the number of arms that each arm beats."""
    n_arms = len(upper)
    at_most = np.zeros(n_arms, dtype=np.int64)
    at_least = np.zeros(n_arms, dtype=np.int64)
    for i in range(n_arms):
        for k in range(n_arms):
            if k != i and upper[i, k] >= 0.5:
                at_most[i] += 1
            if k != i and lower[i, k] >= 0.5:
                at_least[i] += 1
    return at_most, at_least


@jitted
def reset(best: Truths, rivals: Truths) -> int:
    """Lines 2 to 4."""
    best[:] = True
    rivals[:] = False
    return len(best)


@jitted
def reset_disproven(lower: Floats, best: Truths, rivals: Truths, losses: int) -> int:
    """Line 9A."""
    n_arms = len(best)
    for i in range(n_arms):
        for j in range(n_arms):
            if rivals[i, j] and lower[i, j] > 0.5:
                return reset(best, rivals)
    return losses


@jitted
def remove_losers(
    upper: Floats, at_most: Ints, at_least: Ints, best: Truths, rivals: Truths, losses: int
) -> int:
    """Line 9B."""
    for i in range(len(best)):
        if best[i] and at_most[i] < at_least.max():
            best[i] = False
            if rivals[i].sum() != losses + 1:
                rivals[i] = upper[i] < 0.5
    if not best.any():
        return reset(best, rivals)
    return losses


@jitted
def add_winners(
    optimistic: Truths, at_most: Ints, at_least: Ints, best: Truths, rivals: Truths, losses: int
) -> int:
    """Line 9C."""
    n_arms = len(best)
    for i in range(n_arms):
        if optimistic[i] and at_most[i] == at_least[i]:
            best[i] = True
            rivals[i] = False
            losses = n_arms - 1 - at_most[i]
            for j in range(n_arms):
                if j != i and rivals[j].sum() < losses + 1:
                    rivals[j] = False
                while j != i and rivals[j].sum() > losses + 1:
                    rivals[j, one_of(rivals[j])] = False
    return losses


@jitted
def choose(
    upper: Floats, lower: Floats, optimistic: Truths, best: Truths, rivals: Truths
) -> tuple[int, int]:
    """Lines 10 to 13."""
    n_arms = len(best)
    if np.random.random() < 1 / 4:  # noqa: NPY002
        undecided = rivals & (lower <= 0.5) & (upper >= 0.5)
        if undecided.any():
            pair = one_of(undecided.ravel())
            return pair // n_arms, pair % n_arms
    pool = optimistic
    if (best & optimistic).any() and np.random.random() < 2 / 3:  # noqa: NPY002
        pool = best & optimistic
    c = one_of(pool)
    possible = lower[:, c] <= 0.5  # always has c
    if np.random.random() < 1 / 2 and (possible & rivals[c]).any():  # noqa: NPY002
        possible &= rivals[c]
    highest = upper[:, c][possible].max()
    strongest = possible & (upper[:, c] == highest)
    if strongest.sum() > 1:
        strongest[c] = False
    return c, one_of(strongest)

"""Shared by the policies: counts, estimates, samples, argmax with random ties."""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.history import Floats, Ints, Small, Truths, duel, jitted, one_of


@jitted
def play(preferences: Floats, history: Small, t: int, i: int, j: int, wins: Ints) -> bool:
    """Play duel number t, counted in `wins` unless i = j. Returns whether i won."""
    i_won = duel(preferences, history, t, i, j)
    if i != j and i_won:
        wins[i, j] += 1
    elif i != j:
        wins[j, i] += 1
    return i_won


@jitted
def largest(values: Floats, allowed: Truths) -> int:
    """The allowed arm of the largest value, ties at random."""
    top = values[allowed].max()
    return one_of(allowed & (values == top))


@jitted
def smallest(values: Floats, allowed: Truths) -> int:
    """The allowed arm of the smallest value, ties at random."""
    return largest(-values, allowed)


@jitted
def mean(wins: Ints, i: int, j: int) -> float:
    """Share of wins of i against j; 1/2 before their first duel, and for i = j."""
    played = wins[i, j] + wins[j, i]
    if i == j or played == 0:
        return 0.5
    return float(wins[i, j] / played)


@jitted
def upper(wins: Ints, i: int, j: int, scale: float) -> float:
    """u_ij = mean + sqrt(scale / n), x/0 := 1; u_ii = 1/2. The lower bound l_ij is 1 - u_ji."""
    played = wins[i, j] + wins[j, i]
    if i == j:
        return 0.5
    if played == 0:
        return 2.0
    return float(wins[i, j] / played + np.sqrt(scale / played))


@jitted
def certainly_beats(wins: Ints, scale: float) -> Truths:
    """[i, j]: whether the mean of i against j is above 1/2 by more than sqrt(scale / n)."""
    n_arms = len(wins)
    sure = np.zeros((n_arms, n_arms), dtype=np.bool_)
    for i in range(n_arms):
        for j in range(n_arms):
            sure[i, j] = upper(wins, j, i, scale) < 0.5
    return sure


@jitted
def tournament(wins: Ints) -> Floats:
    """A matrix from the posterior: theta_ij ~ Beta(w_ij + 1, w_ji + 1), theta_ji = 1 - theta_ij."""
    n_arms = len(wins)
    theta = np.full((n_arms, n_arms), 0.5)
    for i in range(n_arms):
        for j in range(i + 1, n_arms):
            theta[i, j] = np.random.beta(wins[i, j] + 1.0, wins[j, i] + 1.0)  # noqa: NPY002
            theta[j, i] = 1.0 - theta[i, j]
    return theta


@jitted
def second_sample(wins: Ints, champion: int) -> Floats:
    """Posterior sample of each arm's win probability against the champion; 1/2 for itself."""
    n_arms = len(wins)
    theta = np.full(n_arms, 0.5)
    for j in range(n_arms):
        if j != champion:
            theta[j] = np.random.beta(  # noqa: NPY002
                wins[j, champion] + 1.0, wins[champion, j] + 1.0
            )
    return theta

"""Double Thompson Sampling, D-TS and D-TS+: Wu and Liu, "Double Thompson Sampling for Dueling
Bandits", NIPS 2016, Algorithm 1; for D-TS+ also the authors' program. α > 1/2, by default 0.51 as
in the paper's experiments.

What the paper leaves open, and the reading taken:

- The champion is the arm that beats the most arms in the first sample, among the arms whose upper
  bounds beat the most arms. "Beat" is u > 1/2, theta > 1/2; all arms are counted as opponents.
- D-TS breaks ties of the champion at random. D-TS+ takes of the tied arms the one of least
  Σ_j (2 max_k score_k - score_i - score_j) / kl(theta_ij, 1/2), the maximum over all arms.
- The challenger is drawn from a second sample, independent of the first, among the arms j with
  l_jc ≤ 1/2. The champion, with 1/2, is always one of them: it may meet itself.
- An unseen pair has u = 2, l = -1.
"""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.estimates import (
    certainly_beats,
    largest,
    play,
    second_sample,
    smallest,
    tournament,
    upper,
)
from tests.statistics.textbook.history import (
    Floats,
    Ints,
    Truths,
    jitted,
    kl,
    new_history,
    summary,
)


@jitted
def likely_winners(wins: Ints, scale: float) -> Truths:
    """The arms that beat the most arms by their upper bounds."""
    n_arms = len(wins)
    score = np.zeros(n_arms)
    for i in range(n_arms):
        for j in range(n_arms):
            score[i] += upper(wins, i, j, scale) > 0.5
    winners: Truths = score == score.max()
    return winners


@jitted
def price(theta: Floats, score: Floats) -> Floats:
    """For each arm as champion: estimated regret against all others per unit of information."""
    n_arms = len(theta)
    total = np.zeros(n_arms)
    for i in range(n_arms):
        for j in range(n_arms):
            if theta[i, j] != 0.5:
                total[i] += (2 * score.max() - score[i] - score[j]) / kl(theta[i, j], 0.5)
    return total


@jitted
def first(wins: Ints, scale: float, plus: bool) -> int:
    """The champion."""
    allowed = likely_winners(wins, scale)
    theta = tournament(wins)
    score = np.sum(theta > 0.5, axis=1).astype(np.float64)
    if plus:
        tied = allowed & (score == score[allowed].max())
        return smallest(price(theta, score), tied)
    return largest(score, allowed)


@jitted
def run(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    alpha: float = 0.51,
    plus: bool = False,
) -> tuple[Ints, Ints]:
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    wins = np.zeros((n_arms, n_arms), dtype=np.int64)
    history = new_history(checkpoints)
    for t in range(1, len(history) + 1):
        scale = alpha * np.log(t)
        champion = first(wins, scale, plus)
        uncertain = ~certainly_beats(wins, scale)[:, champion]
        challenger = largest(second_sample(wins, champion), uncertain)
        play(preferences, history, t, champion, challenger, wins)
    return summary(history, n_arms, checkpoints)


@jitted
def run_plus(
    preferences: Floats, horizon: int, checkpoints: Ints, seed: int, alpha: float = 0.51
) -> tuple[Ints, Ints]:
    return run(preferences, horizon, checkpoints, seed, alpha, True)

"""Condorcet SAVAGE and Copeland SAVAGE, the horizon known: Urvoy, Clérot, Féraud and Naamane,
"Generic Exploration and K-armed Voting Bandits", ICML 2013, Algorithm 1 with its two independence
tests; explore, then exploit.

What the paper leaves open, and the reading taken:

- Radius sqrt(ln(2 N T / δ) / (2 n)) with N = K(K-1)/2 pairs and δ = 1/T.
- The pair duelled is one of the least duelled active ones, ties at random; tests after each duel.
- Condorcet: an arm is eliminated, with all of its pairs, once its upper bound against some arm is
  below 1/2. A duel eliminates at most one of its arms, so one arm always stays.
- Copeland: a pair is dropped once it is decided, or neither of its arms can beat more arms than
  another arm certainly does ("more", not "as many": co-winners need not be distinguished).
- Exploitation: the arm left against itself; Copeland: the arm that certainly beats the most
  arms, a tie drawn once.
"""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.estimates import certainly_beats, play
from tests.statistics.textbook.history import (
    Floats,
    Ints,
    Truths,
    jitted,
    new_history,
    one_of,
    settle,
    summary,
)


@jitted
def least_duelled(active: Truths, wins: Ints) -> tuple[int, int]:
    """One of the active pairs with the fewest duels, ties at random."""
    pairs = np.argwhere(active)
    played = np.array([wins[i, j] + wins[j, i] for i, j in pairs])
    i, j = pairs[one_of(played == played.min())]
    return i, j


@jitted
def drop_condorcet(active: Truths, beats: Truths) -> None:
    """Drop every pair with an arm that is certainly beaten."""
    for arm in range(len(beats)):
        if beats[:, arm].any():
            active[arm, :] = False
            active[:, arm] = False


@jitted
def drop_copeland(active: Truths, beats: Truths) -> None:
    """Drop decided pairs, and pairs whose arms cannot beat more arms than another surely does."""
    n_arms = len(beats)
    at_least = beats.sum(axis=1)
    at_most = n_arms - 1 - beats.sum(axis=0)
    for i in range(n_arms):
        for j in range(n_arms):
            hopeless = max(at_most[i], at_most[j]) <= at_least.max()
            if beats[i, j] or beats[j, i] or hopeless:
                active[i, j] = False


@jitted
def run(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    copeland: bool = False,
) -> tuple[Ints, Ints]:
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    wins = np.zeros((n_arms, n_arms), dtype=np.int64)
    history = new_history(checkpoints)
    log_factor = np.log(n_arms * (n_arms - 1)) + 2 * np.log(horizon)  # ln(2 N T / δ)
    active = ~np.eye(n_arms, dtype=np.bool_)
    for t in range(1, len(history) + 1):
        i, j = least_duelled(active, wins)
        play(preferences, history, t, i, j, wins)
        beats = certainly_beats(wins, log_factor / 2)
        if copeland:
            drop_copeland(active, beats)
        else:
            drop_condorcet(active, beats)
        if not active.any():
            score = beats.sum(axis=1) if copeland else -beats.sum(axis=0)
            settle(history, t + 1, len(history), one_of(score == score.max()))
            break
    return summary(history, n_arms, checkpoints)


@jitted
def run_copeland(
    preferences: Floats, horizon: int, checkpoints: Ints, seed: int
) -> tuple[Ints, Ints]:
    return run(preferences, horizon, checkpoints, seed, True)

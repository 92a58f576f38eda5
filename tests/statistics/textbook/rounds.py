"""Two policies that compare all active pairs in rounds. PCOMP: Agarwal, Ghuge and Nagarajan,
"Batched Dueling Bandits", ICML 2022. Copeland preference-based racing: Busa-Fekete, Szörényi,
Weng, Cheng and Hüllermeier, "Top-k Selection based on Adaptive Sampling of Noisy Preferences",
ICML 2013, Algorithm 1 with Copeland's ranking, for the top arm.

What the papers leave open, and the reading taken:

- The duels of a round are shuffled, so that a round cut off at T is unbiased.
- PCOMP: q = T^(1/B), q_r = max(1, ⌊q^r (1 + 1e-12)⌋), B = ⌊ln T⌋, δ = 1/(6 T K² B), radius
  sqrt(ln(1/δ) / (2 n)). The means are those of the round alone, n = q_r; with `accumulate` those
  of all duels so far. All arms beaten by an active arm leave together; none, if that were all.
- Racing: δ = 1/T, at most T duels a pair: radius sqrt(ln(2 K² T / δ) / (2 n)); one duel serves
  (i, j) and (j, i). An arm is settled if some arm is surely better (beats more arms than it can),
  or it is surely better than all. A pair stays active while it is undecided and not both arms
  are settled.
- Exploitation: the arm left against itself; racing: the arm that certainly beats the most, a tie
  drawn once.
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
def drawn(left: Ints) -> tuple[int, int]:
    """Draw one of the duels in `left` uniformly and remove it."""
    place = np.random.randint(left.sum())  # noqa: NPY002
    for i in range(len(left)):
        for j in range(i):
            if place < left[i, j]:
                left[i, j] -= 1
                return i, j
            place -= left[i, j]
    return -1, -1


@jitted
def plan(active: Truths, times: int) -> Ints:
    """The duels of a round: every active pair [i, j], i > j, `times` times."""
    left = np.zeros(active.shape, dtype=np.int64)
    for i in range(len(left)):
        for j in range(i):
            left[i, j] = times if active[i, j] else 0
    return left


@jitted
def eliminate(active: Truths, wins: Ints, log_term: float) -> Truths:
    """The active arms that no active arm certainly beats; all of them if there is none."""
    beats = certainly_beats(wins, log_term / 2)
    stay = active.copy()
    for i in np.flatnonzero(active):
        stay &= ~beats[i]
    return stay if stay.any() else active


@jitted
def run_pcomp(
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    rounds: int = 0,
    accumulate: bool = False,
) -> tuple[Ints, Ints]:
    """PCOMP; `rounds` is B, 0 for ⌊ln T⌋."""
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    wins = np.zeros((n_arms, n_arms), dtype=np.int64)
    history = new_history(checkpoints)
    if rounds == 0:
        rounds = max(1, int(np.floor(np.log(horizon))))
    log_term = np.log(6.0 * horizon * n_arms**2 * rounds)  # ln(1/δ)
    active = np.ones(n_arms, dtype=np.bool_)
    t = 0
    for r in range(1, rounds + 1):
        q = max(1, int(np.floor(horizon ** (r / rounds) * (1 + 1e-12))))
        left = plan(np.outer(active, active), q)
        before = wins.copy()
        while t < len(history) and left.any():
            t += 1
            i, j = drawn(left)
            play(preferences, history, t, i, j, wins)
        if not left.any():
            active = eliminate(active, wins if accumulate else wins - before, log_term)
        if active.sum() == 1:
            settle(history, t + 1, len(history), one_of(active))
            break
    return summary(history, n_arms, checkpoints)


@jitted
def still_active(beats: Truths) -> Truths:
    """The pairs that stay active in racing."""
    n_arms = len(beats)
    at_least = beats.sum(axis=1)
    at_most = n_arms - 1 - beats.sum(axis=0)
    settled = np.zeros(n_arms, dtype=np.bool_)
    for i in range(n_arms):
        discarded = (at_least > at_most[i]).any()
        selected = np.sum(at_most < at_least[i]) == n_arms - 1
        settled[i] = discarded or selected
    active = ~(beats | beats.T)
    for i in range(n_arms):
        for j in range(n_arms):
            if i == j or (settled[i] and settled[j]):
                active[i, j] = False
    return active


@jitted
def run_racing(
    preferences: Floats, horizon: int, checkpoints: Ints, seed: int
) -> tuple[Ints, Ints]:
    """Copeland preference-based racing for the top arm."""
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    wins = np.zeros((n_arms, n_arms), dtype=np.int64)
    history = new_history(checkpoints)
    log_term = np.log(2.0 * n_arms**2) + 2 * np.log(horizon)  # ln(2 K² T / δ)
    active = ~np.eye(n_arms, dtype=np.bool_)
    t = 0
    while t < len(history):
        left = plan(active, 1)
        while t < len(history) and left.any():
            t += 1
            i, j = drawn(left)
            play(preferences, history, t, i, j, wins)
        beats = certainly_beats(wins, log_term / 2)
        active = still_active(beats)
        if not active.any():
            score = beats.sum(axis=1)
            settle(history, t + 1, len(history), one_of(score == score.max()))
            break
    return summary(history, n_arms, checkpoints)

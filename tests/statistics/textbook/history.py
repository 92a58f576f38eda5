"""Shared by all textbook policies: duel, random draw, bounds, summary.

A policy is one function, compiled by `jitted`,

    run(preferences, horizon, checkpoints, seed) -> plays, champions

with the win probabilities `preferences` (K, K), the ascending `checkpoints` (C,), the last at most
`horizon`, and the policy's own parameters after these, all with defaults. It duels up to the last
checkpoint, writes each duel into a history, and returns the `summary` of that history: `plays`
(C, K, K) counts each pair, as proposed, up to each checkpoint, and `champions` (C,) is the arm that
beats the most arms by then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Small: TypeAlias = npt.NDArray[np.int32]
Truths: TypeAlias = npt.NDArray[np.bool_]
Run: TypeAlias = Callable[[Floats, int, Ints, int], tuple[Ints, Ints]]

Function = TypeVar("Function", bound=Callable[..., object])

LOST, WON, SETTLED = 0, 1, 2  # third column of a history: outcome of the first arm


def jitted(function: Function) -> Function:
    """`numba.njit` that keeps the type of the function."""
    return cast(Function, numba.njit(function))


@jitted
def new_history(checkpoints: Ints) -> Small:
    """An array for every duel up to the last checkpoint: the two arms and the outcome."""
    return np.zeros((checkpoints[-1], 3), dtype=np.int32)


@jitted
def duel(preferences: Floats, history: Small, t: int, first: int, second: int) -> bool:
    """Play duel number `t`, from 1, and return whether the first arm won."""
    won = bool(np.random.random() < preferences[first, second])  # noqa: NPY002
    history[t - 1, 0] = first
    history[t - 1, 1] = second
    history[t - 1, 2] = WON if won else LOST
    return won


@jitted
def settle(history: Small, t: int, until: int, arm: int) -> None:
    """Fill duels `t` to `until` with the found arm against itself."""
    for row in range(t - 1, until):
        history[row, 0] = arm
        history[row, 1] = arm
        history[row, 2] = SETTLED


@jitted
def summary(history: Small, n_arms: int, checkpoints: Ints) -> tuple[Ints, Ints]:
    """Plays of each pair and the champion at each checkpoint."""
    plays = np.zeros((len(checkpoints), n_arms, n_arms), dtype=np.int64)
    champions = np.zeros(len(checkpoints), dtype=np.int64)
    so_far = np.zeros((n_arms, n_arms), dtype=np.int64)
    wins = np.zeros((n_arms, n_arms), dtype=np.int64)
    reached = 0
    for t in range(1, len(history) + 1):
        first, second, outcome = history[t - 1]
        so_far[first, second] += 1
        if outcome == WON:
            wins[first, second] += 1
        elif outcome == LOST:
            wins[second, first] += 1
        if t == checkpoints[reached]:
            plays[reached] = so_far
            champions[reached] = first if outcome == SETTLED else beats_most(wins)
            reached += 1
    return plays, champions


@jitted
def beats_most(wins: Ints) -> int:
    """The arm with the highest Copeland score by the counts, ties at random."""
    n_arms = len(wins)
    beaten = np.zeros(n_arms)
    for i in range(n_arms):
        for j in range(n_arms):
            if i != j and wins[i, j] > wins[j, i]:
                beaten[i] += 1
    return one_of(beaten == beaten.max())


@jitted
def one_of(pool: Truths) -> int:
    """One of the arms marked in `pool`, uniformly."""
    arms = np.flatnonzero(pool)
    return int(arms[np.random.randint(len(arms))])  # noqa: NPY002


@jitted
def confidence_bounds(wins: Floats, scale: float) -> tuple[Floats, Floats]:
    """U and L: share of wins ± sqrt(scale / duels); 2 and -1 for unseen pairs, 1/2 for i = j."""
    n_arms = len(wins)
    upper = np.full((n_arms, n_arms), 0.5)
    lower = np.full((n_arms, n_arms), 0.5)
    for i in range(n_arms):
        for j in range(n_arms):
            played = wins[i, j] + wins[j, i]
            if i == j:
                continue
            if played == 0:
                upper[i, j] = 2.0
                lower[i, j] = -1.0
            else:
                radius = np.sqrt(scale / played)
                upper[i, j] = wins[i, j] / played + radius
                lower[i, j] = wins[i, j] / played - radius
    return upper, lower


@jitted
def kl(p: float, q: float) -> float:
    """Kullback-Leibler divergence of Bernoulli(q) from Bernoulli(p), 0 ln 0 = 0, for 0 < q < 1."""
    divergence = 0.0
    if p > 0:
        divergence += p * np.log(p / q)
    if p < 1:
        divergence += (1 - p) * np.log((1 - p) / (1 - q))
    return divergence

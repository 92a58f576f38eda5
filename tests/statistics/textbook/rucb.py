"""RUCB: Zoghi, Whiteson, Munos and de Rijke, "Relative Upper Confidence Bound", ICML 2014.

Algorithm 1 as the arXiv version prints it. An unseen pair has u = 2. The challenger may be the
champion itself, which it is when u_cc = 1/2 is the largest; such a duel leaves W alone. With
`champion_set` the set B of the proceedings' version: it remembers the arm that last was the only
candidate for as long as it stays a candidate, and gives it half of the draws.
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
    preferences: Floats,
    horizon: int,
    checkpoints: Ints,
    seed: int,
    alpha: float = 0.51,
    champion_set: bool = False,
) -> tuple[Ints, Ints]:
    np.random.seed(seed)  # noqa: NPY002
    n_arms = len(preferences)
    history = new_history(checkpoints)
    wins = np.zeros((n_arms, n_arms))
    hypothesis = np.zeros(n_arms, dtype=np.bool_)  # B, never more than one arm
    for t in range(1, len(history) + 1):
        upper, _ = confidence_bounds(wins, alpha * np.log(t))
        candidates = np.ones(n_arms, dtype=np.bool_)
        for i in range(n_arms):
            candidates[i] = np.all(upper[i] >= 0.5)
        if champion_set:
            champion = champion_by_set(candidates, hypothesis)
        elif candidates.any():
            champion = one_of(candidates)
        else:
            champion = np.random.randint(n_arms)  # noqa: NPY002
        challenger = one_of(upper[:, champion] == upper[:, champion].max())
        won = duel(preferences, history, t, champion, challenger)
        if champion != challenger:
            if won:
                wins[champion, challenger] += 1
            else:
                wins[challenger, champion] += 1
    return summary(history, n_arms, checkpoints)


@jitted
def champion_by_set(candidates: Truths, hypothesis: Truths) -> int:
    """Lines 5-9 of the proceedings' version; changes B in place."""
    n_arms = len(candidates)
    hypothesis[:] = hypothesis & candidates
    if candidates.sum() == 0:
        return int(np.random.randint(n_arms))  # noqa: NPY002
    if candidates.sum() == 1:
        hypothesis[:] = candidates
        return one_of(candidates)
    if not hypothesis.any():
        return one_of(candidates)
    if np.random.random() < 0.5:  # noqa: NPY002
        return one_of(hypothesis)
    return one_of(candidates & ~hypothesis)

"""Relative Confidence Sampling: Zoghi, Whiteson, de Rijke and Munos, "Relative Confidence Sampling
for Efficient On-line Ranker Evaluation", WSDM 2014, Algorithm 1. α > 1/2, by default 0.51 (their
experiments: 0.501).

What the paper leaves open, and the reading taken:

- The champion is the outright winner of the sampled tournament; if there is none, the arm that has
  been champion least often (by either rule), ties at random.
- The challenger has the largest upper bound against the champion, whose own is 1/2: it may be the
  champion itself, as in RUCB. An unseen pair has 2.
"""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.estimates import largest, play, smallest, tournament, upper
from tests.statistics.textbook.history import (
    Floats,
    Ints,
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
    wins = np.zeros((n_arms, n_arms), dtype=np.int64)
    history = new_history(checkpoints)
    reigns = np.zeros(n_arms)  # times each arm was champion
    everyone = np.ones(n_arms, dtype=np.bool_)
    for t in range(1, len(history) + 1):
        victors = np.sum(tournament(wins) >= 0.5, axis=1) == n_arms
        champion = one_of(victors) if victors.any() else smallest(reigns, everyone)
        reigns[champion] += 1
        scale = alpha * np.log(t)
        bounds = np.array([upper(wins, j, champion, scale) for j in range(n_arms)])
        play(preferences, history, t, champion, largest(bounds, everyone), wins)
    return summary(history, n_arms, checkpoints)

"""The share of subsets of K arms with a Condorcet winner, or with a total order."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.papers.matrices import random_arms
from streamduel.preference.arrays import Floats
from streamduel.preference.winners import wins_over

_AT_ONCE = 2000


def condorcet_share(p: Floats, size: int) -> float:
    """The probability that a random subset of this size has a Condorcet winner, exactly.

    An arm that beats N others is the winner of N choose (size - 1) subsets.

    >>> condorcet_share(np.array([[0.5, 0.6, 0.4], [0.4, 0.5, 0.6], [0.6, 0.4, 0.5]]), 2)
    1.0
    >>> condorcet_share(np.array([[0.5, 0.6, 0.4], [0.4, 0.5, 0.6], [0.6, 0.4, 0.5]]), 3)
    0.0
    """
    having = sum(math.comb(beaten, size - 1) for beaten in wins_over(p).tolist())
    return having / math.comb(len(p), size)


def ordered_subsets(p: Floats, size: int, number: int, seed: int) -> int:
    """How many of some random subsets have an order in which each arm beats all later ones.

    Args:
        p: (K, K) of all arms.
        size: of the subsets.
        number: of subsets drawn.
        seed: of the draws.
    """
    random = np.random.default_rng([seed, size])
    beats = (p > p.T).astype(np.float32)
    ordered = 0
    for start in range(0, number, _AT_ONCE):
        rows = min(_AT_ONCE, number - start)
        members = np.zeros((rows, len(p)), dtype=np.float32)
        for row in members:
            row[random_arms(len(p), size, random)] = 1
        wins = members @ beats.T
        # In an order the members beat 0, 1, …, size - 1 others; a set of wins like this is one.
        wins[members == 0] = -1
        wins.sort(axis=1)
        ordered += int((wins[:, -size:] == np.arange(size)).all(axis=1).sum())
    return ordered

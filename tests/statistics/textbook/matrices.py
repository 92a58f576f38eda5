"""The preference matrices on which policies are compared."""

from __future__ import annotations

import numpy as np

from tests.statistics.textbook.history import Floats

# Yue and Joachims, "Beat the Mean Bandit", ICML 2011: six retrieval functions of arXiv.org.
ARXIV = np.array(
    [
        [0.50, 0.55, 0.55, 0.54, 0.61, 0.61],
        [0.45, 0.50, 0.55, 0.55, 0.58, 0.60],
        [0.45, 0.45, 0.50, 0.54, 0.51, 0.56],
        [0.46, 0.45, 0.46, 0.50, 0.54, 0.50],
        [0.39, 0.42, 0.49, 0.46, 0.50, 0.51],
        [0.39, 0.40, 0.44, 0.50, 0.49, 0.50],
    ]
)

# Komiyama et al., "Regret Lower Bound and Optimal Algorithm in Dueling Bandit Problem", COLT 2015:
# the first arm beats the others by 0.1; these form a cycle with gaps of 0.4.
CYCLIC = np.array(
    [
        [0.5, 0.6, 0.6, 0.6],
        [0.4, 0.5, 0.9, 0.1],
        [0.4, 0.1, 0.5, 0.9],
        [0.4, 0.9, 0.1, 0.5],
    ]
)

# The same paper: eight arms in order, p_ij = 1/2 + 0.05 (j - i).
_RANK = np.arange(8, dtype=np.float64)
ARITHMETIC: Floats = np.asarray(0.5 + 0.05 * (_RANK[None, :] - _RANK[:, None]), dtype=np.float64)

# Made for these tests, without Condorcet winner: 0 beats 1, 1 beats 2, 2 beats 0, each of them
# beats 3 and 4, and 3 beats 4; three Copeland winners with score 3/4, gaps from 0.1 to 0.3.
CYCLE5 = np.array(
    [
        [0.50, 0.60, 0.35, 0.70, 0.80],
        [0.40, 0.50, 0.65, 0.65, 0.75],
        [0.65, 0.35, 0.50, 0.60, 0.70],
        [0.30, 0.35, 0.40, 0.50, 0.60],
        [0.20, 0.25, 0.30, 0.40, 0.50],
    ]
)

# Made for these tests: Bradley-Terry, p_ij = u_i / (u_i + u_j), utilities u_i = (9 / 11)^i,
# so that neighbours are 0.05 apart and the first beats the last by 0.45.
_UTILITY: Floats = np.power(9 / 11, np.arange(16, dtype=np.float64))
BRADLEY_TERRY16: Floats = np.asarray(
    _UTILITY[:, None] / (_UTILITY[:, None] + _UTILITY[None, :]), dtype=np.float64
)

MATRICES: dict[str, Floats] = {
    "arithmetic": ARITHMETIC,
    "arxiv": ARXIV,
    "bradley_terry16": BRADLEY_TERRY16,
    "cycle5": CYCLE5,
    "cyclic": CYCLIC,
}


def copeland_scores(preferences: Floats) -> Floats:
    """The share of other arms that each arm beats."""
    beats = preferences > 0.5
    np.fill_diagonal(beats, val=False)
    scores: Floats = beats.sum(axis=1) / (len(preferences) - 1)
    return scores


def copeland_regret(preferences: Floats) -> Floats:
    """Of one duel (i, j): 2 cpld(w) - cpld(i) - cpld(j)."""
    scores = copeland_scores(preferences)
    regret: Floats = 2 * scores.max() - scores[:, None] - scores[None, :]
    return regret


def condorcet_regret(preferences: Floats) -> Floats | None:
    """Of one duel (i, j): (Δ_wi + Δ_wj) / 2; None if no arm beats all the others."""
    scores = copeland_scores(preferences)
    if scores.max() < 1:
        return None
    gaps = preferences[scores.argmax()] - 0.5
    regret: Floats = (gaps[:, None] + gaps[None, :]) / 2
    return regret

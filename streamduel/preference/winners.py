"""Winners: Condorcet and Copeland.

An arm *beats* another one when it wins more than half of their duels. In a tie, p_ij = 1/2, neither
arm beats the other: it prevents a Condorcet winner and adds nothing to a Copeland score.

Source of the definitions: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS
2015, section 2.
"""

from __future__ import annotations

import numpy as np

from streamduel.preference.arrays import Booleans, Floats, Integers


def wins_over(preferences: Floats) -> Integers:
    """How many other arms each arm beats: the Copeland score that is not normalised.

    Args:
        preferences: (K, K), preferences or counts of wins: i beats j if [i, j] > [j, i].

    Returns:
        (K,), each from 0 to K - 1.

    >>> wins_over(np.array([[0.5, 0.6, 0.7], [0.4, 0.5, 0.5], [0.3, 0.5, 0.5]])).tolist()
    [2, 0, 0]
    """
    beaten: Integers = np.add.reduce(preferences > preferences.T, axis=1, dtype=np.int64)
    return beaten


def score_bounds(sure: Booleans) -> tuple[Integers, Integers]:
    """How many other arms each arm beats at least, and at most, (K,) each.

    Args:
        sure: (K, K), [i, j] is whether i surely beats j.

    >>> sure = np.array([[False, True, False], [False, False, False], [False, False, False]])
    >>> least, most = score_bounds(sure)
    >>> least.tolist(), most.tolist()
    ([1, 0, 0], [2, 1, 2])
    """
    least: Integers = np.count_nonzero(sure, axis=1)
    return least, len(sure) - 1 - np.count_nonzero(sure, axis=0)


def condorcet_winner(preferences: Floats) -> int | None:
    """The arm that beats every other one.

    Args:
        preferences: (K, K), preferences or counts of wins.

    Returns:
        Its index, or None when there is no such arm. There is at most one.

    >>> condorcet_winner(np.array([[0.5, 0.6, 0.7], [0.4, 0.5, 0.5], [0.3, 0.5, 0.5]]))
    0
    >>> condorcet_winner(np.array([[0.5, 0.6, 0.4], [0.4, 0.5, 0.6], [0.6, 0.4, 0.5]])) is None
    True
    """
    winners = np.flatnonzero(wins_over(preferences) == len(preferences) - 1)
    return int(winners[0]) if len(winners) else None


def copeland_scores(preferences: Floats) -> Floats:
    """The share of the other arms that each arm beats, from 0 to 1.

    To beat an arm is to win more than half of the duels against it: a pair that is even, or without
    duels, counts for neither.

    Args:
        preferences: (K, K), preferences or counts of wins: i beats j if [i, j] > [j, i].

    Returns:
        (K,), the number of arms beaten divided by K - 1.

    >>> copeland_scores(np.array([[0.0, 6.0, 3.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0]])).tolist()
    [1.0, 0.0, 0.0]
    """
    scores: Floats = wins_over(preferences) / (len(preferences) - 1)
    return scores


def copeland_winners(preferences: Floats) -> Integers:
    """All arms that beat the most others; the Condorcet winner alone, if there is one.

    Args:
        preferences: (K, K), preferences or counts of wins.

    Returns:
        Their indices, ascending; at least one.

    >>> copeland_winners(np.array([[0.5, 0.6, 0.4], [0.4, 0.5, 0.6], [0.6, 0.4, 0.5]])).tolist()
    [0, 1, 2]
    """
    beaten = wins_over(preferences)
    return np.flatnonzero(beaten == beaten.max())

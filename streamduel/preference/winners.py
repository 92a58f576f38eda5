"""Which arm is best: the Condorcet, Copeland and Borda winners, and whether arms have an order.

The mixed winner of von Neumann and the winner of the random walk have modules of their own. An arm
*beats* another one when it wins more than half of their duels. A tie, p_ij = 1/2, is nobody's win:
it keeps an arm from being the Condorcet winner and adds nothing to a Copeland score.

Source of the definitions: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS
2015, section 2 and appendix C.2.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streamduel.preference.counts import Floats, Integers

# Scores are sums of thousands of rounded numbers; what differs by less is equal.
_ROUNDING: Final = 1e-12


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

    To beat an arm is to win more than half of the duels against it: a pair that is even, or has
    not met, counts for neither.

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


def borda_scores(p: Floats) -> Floats:
    """The probability of each arm to win a duel with an opponent drawn from all other arms.

    It is the sum of p_ij over j ≠ i, which the paper calls the Borda score, divided by K - 1.

    Args:
        p: (K, K), preferences with 1/2 on the diagonal.

    Returns:
        (K,), each from 0 to 1, 1/2 on average.

    >>> borda_scores(np.array([[0.5, 0.75, 0.5], [0.25, 0.5, 1.0], [0.5, 0.0, 0.5]])).tolist()
    [0.625, 0.625, 0.25]
    """
    return np.asarray((p.sum(axis=1) - 0.5) / (len(p) - 1), dtype=np.float64)


def borda_winners(p: Floats) -> Integers:
    """All arms with the largest Borda score; the Condorcet winner need not be among them.

    Args:
        p: (K, K), preferences with 1/2 on the diagonal.

    Returns:
        Their indices, ascending; scores that differ by rounding only are equal.

    >>> borda_winners(np.array([[0.5, 0.6, 0.6], [0.4, 0.5, 1.0], [0.4, 0.0, 0.5]])).tolist()
    [1]
    """
    return largest(borda_scores(p))


def largest(scores: Floats) -> Integers:
    """The arms whose score is the largest, up to rounding.

    Args:
        scores: (K,), none negative.

    Returns:
        Their indices, ascending.

    >>> largest(np.array([0.1 + 0.2, 0.3, 0.2])).tolist()
    [0, 1]
    """
    return np.flatnonzero(scores >= scores.max() * (1 - _ROUNDING))


def is_total_order(preferences: Floats) -> bool:
    """Whether the arms can be ordered so that each one beats all that come after it.

    In such an order the arms beat K - 1, K - 2, …, 0 others; and where the numbers are these, the
    first beats all, the second all but the first, and so on. A single tie makes it impossible.

    Args:
        preferences: (K, K), preferences or counts of wins.

    >>> is_total_order(np.array([[0.5, 0.4, 0.3], [0.6, 0.5, 0.4], [0.7, 0.6, 0.5]]))
    True
    """
    beaten = np.sort(wins_over(preferences))
    return bool((beaten == np.arange(len(preferences))).all())

"""The random walk winner: the arm that a walk towards winning arms visits most."""

from __future__ import annotations

import numpy as np

from streamduel.preference.counts import Floats, Integers
from streamduel.preference.winners import largest


def random_walk_scores(p: Floats) -> Floats:
    """How often each arm is visited, in the long run, by a walk that goes where arms win.

    From arm i the walk goes to arm j with probability p_ji / Σ_l p_li, the sum over all l, i itself
    (1/2) included: it draws an arm, any with the same chance, lets it duel the present one, goes
    there if it wins and draws again if it loses. Of two arms at least one wins sometimes, so
    wherever the walk begins it ends up in the same set of arms, and the distribution is unique
    also where preferences are 0 or 1; arms that the walk leaves for ever have score 0. The stay
    at i excludes periods.

    The source names the notion and leaves the chain open. Two of its statements decide: the
    Condorcet winner need not be the random walk winner (so the walk does not simply go to arms
    that beat the present one, where it could never leave the Condorcet winner), and the overlaps
    with other winners in its Table 1, which come out with this chain.

    Args:
        p: (K, K), preferences with 1/2 on the diagonal.

    Returns:
        (K,), the stationary distribution; its sum is 1.

    >>> random_walk_scores(np.array([[0.5, 0.75], [0.25, 0.5]])).round(12).tolist()
    [0.642857142857, 0.357142857143]

    Sources: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS 2015, appendix
    C.2; Grassmann, Taksar and Heyman, "Regenerative analysis and steady state distributions for
    Markov chains", Operations Research 33(5), 1985 (the elimination).
    """
    # First comes an arm that the walk returns to for ever: the one that wins sometimes against the
    # most others is such an arm. Every arm leads there, so nothing below is divided by 0.
    order = np.lexsort((p.sum(axis=1), (p > 0).sum(axis=1)))[::-1]
    moves = p.T[np.ix_(order, order)]
    moves /= moves.sum(axis=1, keepdims=True)
    # Arm by arm, from the last, the walk is watched only while it is at the arms before. This
    # subtracts nothing, so that even tiny probabilities keep all their digits.
    for last in range(len(p) - 1, 0, -1):
        moves[:last, last] /= moves[last, :last].sum()
        moves[:last, :last] += np.outer(moves[:last, last], moves[last, :last])
    visits = np.ones(len(p))
    for arm in range(1, len(p)):
        visits[arm] = (visits[:arm] * moves[:arm, arm]).sum()
    scores = np.empty(len(p))
    scores[order] = visits / visits.sum()
    return scores


def random_walk_winners(p: Floats) -> Integers:
    """All arms that the random walk visits most.

    Args:
        p: (K, K), preferences with 1/2 on the diagonal.

    Returns:
        Their indices, ascending; scores that differ by rounding only are equal.

    >>> random_walk_winners(np.array([[0.5, 0.6, 0.6], [0.4, 0.5, 1.0], [0.4, 0.0, 0.5]])).tolist()
    [0]
    """
    return largest(random_walk_scores(p))

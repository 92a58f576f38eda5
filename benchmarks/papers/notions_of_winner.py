"""Borda, random walk and von Neumann winners, which the Copeland paper compares with Copeland's.

Source of the definitions: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS
2015, appendix C.2.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.optimize import linprog

from streamduel.errors import PreferenceError
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.winners import condorcet_winner

# Scores are sums of thousands of rounded numbers; smaller differences are rounding.
_ROUNDING: Final = 1e-12


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


def random_walk_scores(p: Floats) -> Floats:
    """How often a random walk towards winning arms visits each arm, in the long run.

    From arm i the walk goes to arm j with probability p_ji / Σ_l p_li, the sum over all l, i itself
    (1/2) included: it draws an arm uniformly, lets it duel the current one, goes there if it wins
    and draws again if it loses. Of two arms at least one wins sometimes, so from any start the walk
    ends in the same set of arms, and the distribution is unique also where preferences are 0 or 1;
    arms that the walk leaves permanently have score 0. The stay at i excludes periods.

    The source names the notion and leaves the chain open. Two of its statements decide: the
    Condorcet winner need not be the random walk winner (so the walk does not simply go to arms that
    beat the current one, where it could never leave the Condorcet winner), and the overlaps with
    other winners in its Table 1, which this chain reproduces.

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
    # The first arm must be one that the walk always returns to: the one that can win against the
    # most others. Every arm leads there, so nothing below is divided by 0.
    order = np.lexsort((p.sum(axis=1), (p > 0).sum(axis=1)))[::-1]
    moves = p.T[np.ix_(order, order)]
    moves /= moves.sum(axis=1, keepdims=True)
    # Eliminate arm by arm, from the last, without subtractions: tiny probabilities keep all digits.
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


_PRECISION: Final = 1e-10  # the finest that the solver offers


def von_neumann_winner(p: Floats) -> Floats:
    """The distribution x over arms that wins at least half of its duels against every arm.

    It is the maximin strategy of the game with payoff p_ij - 1/2: x maximises the minimum over j of
    Σ_i x_i (p_ij - 1/2). The game is symmetric, so by von Neumann's theorem this minimum is 0. A
    Condorcet winner is always drawn. Without ties x is unique; with ties one solution is returned.

    Args:
        p: (K, K), preferences with 1/2 on the diagonal.

    Returns:
        (K,), not negative, of sum 1. Arms outside the support are exactly 0.

    Raises:
        PreferenceError: the solver gives up.

    >>> cycle = np.array([[0.5, 0.6, 0.4], [0.4, 0.5, 0.7], [0.6, 0.3, 0.5]])
    >>> von_neumann_winner(cycle).round(9).tolist()
    [0.5, 0.25, 0.25]

    Source: Dudík, Hofmann, Schapire, Slivkins and Zoghi, "Contextual Dueling Bandits", COLT 2015;
    its support is what Zoghi et al., "Copeland Dueling Bandits", NIPS 2015, appendix C.2, compare.
    """
    n_arms = len(p)
    winner = condorcet_winner(p)
    if winner is not None:  # exactly, however small its lead
        alone: Floats = np.eye(n_arms)[winner]
        return alone
    payoff = p - 0.5
    payoff /= np.abs(payoff).max() or 1.0  # the solver's precision is absolute
    solution = linprog(
        np.append(np.zeros(n_arms), -1.0),  # x, then the minimum payoff v to be maximised
        A_ub=np.column_stack((-payoff.T, np.ones(n_arms))),
        b_ub=np.zeros(n_arms),
        A_eq=np.append(np.ones(n_arms), 0.0)[np.newaxis],
        b_eq=np.ones(1),
        bounds=[(0, None)] * n_arms + [(None, None)],
        method="highs",
        options={
            "primal_feasibility_tolerance": _PRECISION,
            "dual_feasibility_tolerance": _PRECISION,
        },
    )
    if solution.status != 0 or solution.x is None:
        raise PreferenceError(f"The von Neumann winner was not found (found: {solution.message}).")
    shares = np.where(solution.x[:n_arms] > _PRECISION, solution.x[:n_arms], 0.0)
    return np.asarray(shares / shares.sum(), dtype=np.float64)

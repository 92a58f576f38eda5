"""Winners: Condorcet, Copeland, Borda, random walk and von Neumann; and the order of the arms.

An arm
*beats* another one when it wins more than half of their duels. In a tie, p_ij = 1/2, neither arm
beats the other: it prevents a Condorcet winner and adds nothing to a Copeland score.

Source of the definitions: Zoghi, Karnin, Whiteson and de Rijke, "Copeland Dueling Bandits", NIPS
2015, section 2 and appendix C.2.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streamduel.errors import PreferenceError
from streamduel.preference.arrays import Floats, Integers

# Scores are sums of thousands of rounded numbers; smaller differences are rounding.
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

    In such an order the arms beat K - 1, K - 2, …, 0 others; and with these numbers, the first
    beats all, the second all but the first, and so on. A single tie makes it impossible.

    Args:
        preferences: (K, K), preferences or counts of wins.

    >>> is_total_order(np.array([[0.5, 0.4, 0.3], [0.6, 0.5, 0.4], [0.7, 0.6, 0.5]]))
    True
    """
    beaten = np.sort(wins_over(preferences))
    return bool((beaten == np.arange(len(preferences))).all())


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
        PreferenceError: scipy is not installed, or its solver gives up.

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
    try:
        from scipy.optimize import linprog  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise PreferenceError(
            "The von Neumann winner needs scipy; install it with pip install 'streamduel[sim]'."
        ) from None
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

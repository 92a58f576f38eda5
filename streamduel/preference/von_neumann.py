"""The von Neumann winner: a way of drawing arms that no single arm has the better of."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamduel.errors import PreferenceError
from streamduel.preference.counts import Floats
from streamduel.preference.winners import condorcet_winner

_PRECISION: Final = 1e-10  # the finest that the solver offers


def von_neumann_winner(p: Floats) -> Floats:
    """The distribution x over arms that wins at least half of its duels against every arm.

    It is the maximin strategy of the game with payoff p_ij - 1/2: x maximises the least over j of
    Σ_i x_i (p_ij - 1/2). The game is fair, so that this least is 0 at best, and by von Neumann's
    theorem 0 can be had. A Condorcet winner is drawn always. Without ties x is unique; with ties
    it need not be, and one of the solutions is returned.

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
        np.append(np.zeros(n_arms), -1.0),  # x, then the least payoff v, which is to be large
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

"""What a duel of two arms costs, against the duel of the best arm with itself."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamduel.errors import PreferenceError, nearest
from streamduel.preference.counts import Floats
from streamduel.preference.gaps import gaps
from streamduel.preference.winners import condorcet_winner, copeland_scores, copeland_winners

KINDS: Final = ("condorcet", "copeland", "weak", "strong")
"""The ways to count regret."""


def regrets(p: Floats, kind: str) -> Floats:
    """The regret of one duel, for every two arms i and j.

    With w the Condorcet winner, Δ_wi = p_wi - 1/2 and c the Copeland scores divided by K - 1:

    * condorcet: (Δ_wi + Δ_wj) / 2; strong: Δ_wi + Δ_wj; weak: min(Δ_wi, Δ_wj);
    * copeland: 2 max_k c_k - c_i - c_j, which needs no Condorcet winner.

    None is negative, and a duel of w with itself costs nothing.

    Args:
        p: (K, K), preferences with 1/2 on the diagonal.
        kind: one of `KINDS`.

    Returns:
        (K, K), symmetric: [i, j] is the regret of a duel of i with j. An arm alone, i = j, counts
        as two.

    Raises:
        PreferenceError: there is no such kind, or it needs a Condorcet winner and there is none.

    >>> p = np.array([[0.5, 0.75], [0.25, 0.5]])
    >>> for kind in KINDS:
    ...     print(kind, regrets(p, kind).tolist())
    condorcet [[0.0, 0.125], [0.125, 0.25]]
    copeland [[0.0, 1.0], [1.0, 2.0]]
    weak [[0.0, 0.0], [0.0, 0.25]]
    strong [[0.0, 0.25], [0.25, 0.5]]

    Sources: Yue and Joachims, "The K-armed dueling bandits problem", JCSS 78(5), 2012 (strong and
    weak); Zoghi, Whiteson, Munos and de Rijke, "Relative Upper Confidence Bound for the K-Armed
    Dueling Bandit Problem", ICML 2014, section 3 (condorcet); Zoghi, Karnin, Whiteson and de
    Rijke, "Copeland Dueling Bandits", NIPS 2015, Definition 1 (copeland).
    """
    if kind not in KINDS:
        raise PreferenceError(
            f"The regret must be one of {', '.join(KINDS)} (found {kind!r}{nearest(kind, KINDS)})."
        )
    if kind == "copeland":
        scores = copeland_scores(p)
        return _sums(scores.max() - scores)
    winner = condorcet_winner(p)
    if winner is None:
        rows = [str(arm + 1) for arm in copeland_winners(p)]
        raise PreferenceError(
            f"The regret {kind!r} needs a Condorcet winner, an arm that beats all others (found"
            f" none; Copeland winners: row {', '.join(rows)}); the regret 'copeland' needs none."
        )
    gap = gaps(p, winner)
    if kind == "weak":
        return np.asarray(np.minimum.outer(gap, gap), dtype=np.float64)
    return _sums(gap) / 2 if kind == "condorcet" else _sums(gap)


def _sums(costs: Floats) -> Floats:
    """What two arms cost together, for every two arms."""
    return costs[:, np.newaxis] + costs

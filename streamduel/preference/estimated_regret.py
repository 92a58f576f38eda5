"""What the duels so far have cost, judged by the preferences that they themselves show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from streamduel.preference.counts import Floats
from streamduel.preference.winners import copeland_scores


def estimated_regret(
    wins: Floats, champion: int, alone: Sequence[int] | None = None
) -> dict[str, float]:
    """The cumulative regret of all duels under the preferences estimated from these same duels.

    With n_ij the duels of a pair, p_ij = w_ij / n_ij (1/2 for a pair that has not met), w the
    champion and Δ_i = max(0, p_wi - 1/2), a duel of (i, j) costs

    * strong: Δ_i + Δ_j; condorcet: half of that; weak: min(Δ_i, Δ_j);
    * copeland: 2 max_k c_k - c_i - c_j, with c the Copeland scores,

    summed over all duels, those of an arm with itself included. Two readings, both of which make it
    an estimate and no bound (`regret_bound` is one):

    * An arm that has the better of the champion in the estimate would have a negative gap. It is
      taken as 0: regret is measured against a best arm, and against that nothing is a gain.
    * The present estimate judges old duels too, so the sum may fall as well as rise.

    Args:
        wins: (K, K): [i, j] is how often i has beaten j, a tie being half a win each way.
        champion: w.
        alone: (K,): how often each arm has met itself; never, if left out.

    Returns:
        The regret of each kind.

    >>> wins = np.array([[0.0, 6.0, 3.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    >>> estimated_regret(wins, champion=0)
    {'condorcet': 2.0, 'copeland': 16.0, 'weak': 0.5, 'strong': 4.0}
    """
    duels = wins + wins.T
    own = np.zeros(len(wins)) if alone is None else np.asarray(alone, dtype=np.float64)
    return _cost(duels, own, _gaps(wins, champion), copeland_scores(wins))


def regret_of(
    pairs: Iterable[tuple[int, int, int]], wins: Floats, champion: int
) -> dict[str, float]:
    """What some of the duels have cost, judged as `estimated_regret` judges all of them.

    Args:
        pairs: two arms, perhaps the same, and how many duels.
        wins: (K, K), of all duels.
        champion: w.

    >>> wins = np.array([[0.0, 6.0, 3.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    >>> regret_of([(1, 1, 4)], wins, champion=0)
    {'condorcet': 1.0, 'copeland': 8.0, 'weak': 1.0, 'strong': 2.0}
    """
    duels, own = np.zeros_like(wins), np.zeros(len(wins))
    for first, second, count in pairs:
        if first == second:
            own[first] += count
        else:
            duels[first, second] += count
            duels[second, first] += count
    return _cost(duels, own, _gaps(wins, champion), copeland_scores(wins))


def _gaps(wins: Floats, champion: int) -> Floats:
    """Δ of every arm."""
    against = wins[champion] + wins[:, champion]
    met = against > 0
    gaps = np.zeros(len(wins))
    gaps[met] = np.maximum(0.0, wins[champion, met] / against[met] - 0.5)
    return gaps


def _cost(duels: Floats, own: Floats, gaps: Floats, scores: Floats) -> dict[str, float]:
    """The regret of each kind, from how often pairs and arms by themselves were served."""
    served = duels.sum(axis=1) + 2 * own
    strong = float(served @ gaps)
    return {
        "condorcet": strong / 2,
        "copeland": float(served @ (scores.max() - scores)),
        # Both halves of the symmetric matrix hold each duel.
        "weak": float((duels * np.minimum.outer(gaps, gaps)).sum()) / 2 + float(own @ gaps),
        "strong": strong,
    }

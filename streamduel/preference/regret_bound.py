"""What the duels so far have cost at most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamduel.preference.counts import Floats
from streamduel.preference.evidence import intervals


def regret_bound(
    wins: Floats, alone: Sequence[int], champion: int, delta: float
) -> dict[str, float]:
    """An upper bound of the cumulative regret of all duels; it holds at all times together.

    With probability 1 - δ all preferences are within their `intervals`. Then the regret is at most
    the largest that is possible within them:

    * condorcet, strong, weak: for each arm w that may beat all others there, a duel is judged by
      the upper bounds of the gaps p_wi - 1/2; the worst w counts. Where no arm can be the Condorcet
      winner, these regrets mean little; the champion then stands for w, as in the estimate.
    * copeland: by the most that an arm of the others may beat, and the least that the arm itself
      surely does.

    Args:
        wins: (K, K): [i, j] is how often i has beaten j, a tie being half a win each way.
        alone: (K,): how often each arm has met itself.
        champion: an arm.
        delta: δ, between 0 and 1.

    Returns:
        The bound for each kind.

    >>> wins = np.array([[0.0, 700.0], [300.0, 0.0]])
    >>> {kind: round(bound) for kind, bound in regret_bound(wins, [500, 0], 0, 0.05).items()}
    {'condorcet': 124, 'copeland': 1000, 'weak': 0, 'strong': 248}
    """
    lower, upper = intervals(wins, delta)
    own = np.asarray(alone, dtype=np.float64)
    duels = wins + wins.T
    served = duels.sum(axis=1) + 2 * own
    others = ~np.eye(len(wins), dtype=bool)
    possible = np.flatnonzero(((upper >= 0.5) | ~others).all(axis=1))
    winners = possible if len(possible) else [champion]
    gaps = np.where(others, np.maximum(upper - 0.5, 0.0), 0.0)[winners]
    strong = gaps @ served
    weak = [float((duels * np.minimum.outer(gap, gap)).sum()) / 2 + float(own @ gap)
            for gap in gaps]  # fmt: skip
    least = ((lower > 0.5) & others).sum(axis=1)
    most = ((upper > 0.5) & others).sum(axis=1)
    best = np.array([np.delete(most, arm).max() for arm in range(len(wins))])
    lost = np.maximum(best - least, 0) / (len(wins) - 1)
    return {
        "condorcet": float(strong.max()) / 2,
        "copeland": float(served @ lost),
        "weak": max(weak),
        "strong": float(strong.max()),
    }

"""What the duels so far have cost at most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamduel.preference.counts import Floats, Integers
from streamduel.preference.evidence import intervals_of, log_evidence, nats_of_all


def regret_bound(
    wins: Floats,
    alone: Sequence[int],
    champion: int,
    delta: float,
    evidence: Floats | None = None,
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
        evidence: `log_evidence(wins)`, where it is known already.

    Returns:
        The bound for each kind.

    >>> wins = np.array([[0.0, 700.0], [300.0, 0.0]])
    >>> {kind: round(bound) for kind, bound in regret_bound(wins, [500, 0], 0, 0.05).items()}
    {'condorcet': 124, 'copeland': 1000, 'weak': 0, 'strong': 248}
    """
    n_arms, nats = len(wins), nats_of_all(len(wins), delta)
    # Where [i, j] is so, its lower bound is above 1/2, and the upper bound of [j, i] below it.
    beats = (log_evidence(wins) if evidence is None else evidence) > nats
    own = np.asarray(alone, dtype=np.float64)
    duels = wins + wins.T
    served = duels.sum(axis=1) + 2 * own
    winners = np.logical_not(beats.any(axis=0))
    if not winners.any():
        winners[champion] = True
    _, upper = intervals_of(wins, wins.T, nats)
    gaps = np.maximum(upper - 0.5, 0.0)
    np.fill_diagonal(gaps, 0.0)
    strong = float((gaps @ served).max(where=winners, initial=0.0))
    at_least, at_most = beats.sum(axis=1), n_arms - 1 - beats.sum(axis=0)
    lost = np.maximum(_most_of_others(at_most) - at_least, 0) / (n_arms - 1)
    return {
        "condorcet": strong / 2,
        "copeland": float(served @ lost),
        "weak": max(_weak(row, duels, own) for row, may in zip(gaps, winners, strict=True) if may),
        "strong": strong,
    }


def _weak(gaps: Floats, duels: Floats, own: Floats) -> float:
    """The weak regret; both halves of the symmetric matrix hold each duel."""
    return float((duels * np.minimum.outer(gaps, gaps)).sum()) / 2 + float(own @ gaps)


def _most_of_others(counts: Integers) -> Integers:
    """For each arm, the largest count of another one."""
    next_to_it, largest = sorted(counts.tolist())[-2:]
    # Where two share the largest count, the next to it is as large.
    return np.asarray(np.where(counts == largest, next_to_it, largest), dtype=np.int64)

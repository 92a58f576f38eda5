"""What the duels so far have cost at most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from streamduel.preference.counts import Floats, Integers
from streamduel.preference.evidence import intervals_of, log_evidence, nats_of_all

CELLS: Final = 2**17
"""So many numbers are worked on at a time, a megabyte: with a thousand arms, each of which may be
the winner, all at once would take four gigabytes."""


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
    n_arms, nats = len(wins), nats_of_all(len(wins), delta)
    # Where [i, j] is so, its lower bound is above 1/2, and the upper bound of [j, i] below it.
    beats = log_evidence(wins) > nats
    own = np.asarray(alone, dtype=np.float64)
    duels = wins + wins.T
    served = duels.sum(axis=1) + 2 * own
    possible = np.flatnonzero(~beats.any(axis=0))
    winners = possible if len(possible) else np.array([champion])
    _, upper = intervals_of(wins[winners], wins.T[winners], nats)
    gaps = np.maximum(upper - 0.5, 0.0)
    gaps[np.arange(len(winners)), winners] = 0.0
    strong = float((gaps @ served).max())
    at_least, at_most = beats.sum(axis=1), n_arms - 1 - beats.sum(axis=0)
    lost = np.maximum(_most_of_others(at_most) - at_least, 0) / (n_arms - 1)
    return {
        "condorcet": strong / 2,
        "copeland": float(served @ lost),
        "weak": _weak(gaps, duels, own),
        "strong": strong,
    }


def _weak(gaps: Floats, duels: Floats, own: Floats) -> float:
    """The weak regret, by the winner that makes most of it; `gaps` has a row for each."""
    first, second = np.triu_indices(len(duels), k=1)
    fought, worst = duels[first, second], 0.0
    step = max(1, CELLS // len(fought))
    for start in range(0, len(gaps), step):
        some = gaps[start : start + step]
        smaller = np.minimum(some.take(first, axis=1), some.take(second, axis=1))
        worst = max(worst, float((smaller @ fought + some @ own).max()))
    return worst


def _most_of_others(counts: Integers) -> Integers:
    """For each arm, the largest count of another one."""
    *_, next_to_it, largest = np.sort(counts)
    # Where two share the largest count, the next to it is as large.
    return np.asarray(np.where(counts == largest, next_to_it, largest), dtype=np.int64)

"""Regret of duels: by known preferences, estimated from the duels, and an upper bound of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from streamduel.errors import PreferenceError, nearest
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.evidence import intervals
from streamduel.preference.winners import (
    condorcet_winner,
    copeland_scores,
    copeland_winners,
    score_bounds,
)

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
        (K, K), symmetric: [i, j] is the regret of a duel of i with j. An arm with itself, i = j,
        counts as two.

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
    gap: Floats = p[winner] - 0.5
    if kind == "weak":
        return np.asarray(np.minimum.outer(gap, gap), dtype=np.float64)
    return _sums(gap) / 2 if kind == "condorcet" else _sums(gap)


def _sums(costs: Floats) -> Floats:
    """The sum of the regrets of two arms, for every two arms."""
    return costs[:, np.newaxis] + costs


def estimated_regret(
    wins: Floats, champion: int, alone: Sequence[int] | None = None
) -> dict[str, float]:
    """The cumulative regret of all duels under the preferences estimated from these same duels.

    With n_ij the duels of a pair, p_ij = w_ij / n_ij (1/2 for a pair that has not met), w the
    champion and Δ_i = max(0, p_wi - 1/2), a duel of (i, j) costs

    * strong: Δ_i + Δ_j; condorcet: half of that; weak: min(Δ_i, Δ_j);
    * copeland: 2 max_k c_k - c_i - c_j, with c the Copeland scores,

    summed over all duels, those of an arm with itself included. It is an estimate, not a bound
    (`regret_bound` is one), for two reasons:

    * An arm that beats the champion in the estimate would have a negative gap; its gap is 0.
    * The current estimate is applied to old duels too, so the sum may also decrease.

    Args:
        wins: (K, K): [i, j] is how often i has beaten j, a tie being half a win each way.
        champion: w.
        alone: (K,): the number of duels of each arm with itself; 0 if left out.

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
    """The regret of some of the duels, under the same estimate as in `estimated_regret`.

    Args:
        pairs: two arms, possibly the same, and the number of their duels.
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
    """The regret of each kind, from the duels of pairs and of arms with themselves."""
    served = duels.sum(axis=1) + 2 * own
    strong = float(served @ gaps)
    return {
        "condorcet": strong / 2,
        "copeland": float(served @ (scores.max() - scores)),
        "weak": _weak(gaps, duels, own),
        "strong": strong,
    }


def regret_bound(
    wins: Floats, alone: Sequence[int], champion: int, delta: float
) -> dict[str, float]:
    """An upper bound of the cumulative regret of all duels, valid at all times together.

    With probability 1 - δ all preferences are within their `intervals`. Then the regret is at most
    the largest that is possible within them:

    * condorcet, strong, weak: for each arm w that may beat all others, from the upper bounds of the
      gaps p_wi - 1/2; the worst w counts. If no arm can be the Condorcet winner, these regrets mean
      little; w is then the champion, as in the estimate.
    * copeland: from the largest number of arms that another arm may beat, and the number that the
      arm itself surely beats.

    Args:
        wins: (K, K): [i, j] is how often i has beaten j, a tie being half a win each way.
        alone: (K,): the number of duels of each arm with itself.
        champion: an arm.
        delta: δ, between 0 and 1.

    Returns:
        The bound for each kind.

    >>> wins = np.array([[0.0, 700.0], [300.0, 0.0]])
    >>> {kind: round(bound) for kind, bound in regret_bound(wins, [500, 0], 0, 0.05).items()}
    {'condorcet': 125, 'copeland': 1000, 'weak': 0, 'strong': 249}
    """
    lower, upper = intervals(wins, delta)
    # Not by the one-sided evidence, which may be wrong while all intervals are right.
    beats = lower > 0.5
    own = np.asarray(alone, dtype=np.float64)
    duels = wins + wins.T
    served = duels.sum(axis=1) + 2 * own
    winners = np.logical_not(beats.any(axis=0))
    if not winners.any():
        winners[champion] = True
    gaps = np.maximum(upper - 0.5, 0.0)
    np.fill_diagonal(gaps, 0.0)
    strong = float((gaps @ served).max(where=winners, initial=0.0))
    least, most = score_bounds(beats)
    lost = np.maximum(_most_of_others(most) - least, 0) / (len(wins) - 1)
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
    # If two share the largest count, the second largest is equal.
    return np.asarray(np.where(counts == largest, next_to_it, largest), dtype=np.int64)

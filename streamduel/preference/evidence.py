"""Evidence and confidence that are valid at any time, after every single duel.

An ordinary confidence interval holds at a sample size fixed beforehand. A user who looks after
every duel, and stops at a good result, is wrong far more often than the interval says. The bounds
here hold at all times together, with the same probability (a time-uniform confidence sequence), for
any number of looks and any time to stop.

Let x be the outcomes of n duels of a pair, 1 for a win of arm i, 1/2 for a tie, 0 for a loss. Their
sum less n p moves like a random walk whose steps are at most 1 wide, so for every λ

    exp(λ (Σ x - n p) - λ² v / 2),  v = n / 4,

is a supermartingale that begins at 1. So is its mean over λ ~ N(0, 1/ρ):

    M_n(p) = sqrt(ρ / (v + ρ)) exp((Σ x - n p)² / (2 (v + ρ))).

By Ville's inequality, M_n(p) ever reaches 1/α with a probability of at most α. Which pairs duel may
depend on all outcomes so far, as with a bandit. Outcomes may be delayed or in another order, if the
delay does not depend on the winner.

To show that arm i beats arm j, only positive λ are useful. The mean over the positive half of the
same distribution, with p = 1/2 and z = (Σ x - n / 2) / sqrt(v + ρ), Φ the normal distribution, is

    M_ij = 2 Φ(z) exp(z² / 2) sqrt(ρ / (v + ρ)),

up to twice as much. It is a supermartingale if i does not beat j.

Source: S. R. Howard, A. Ramdas, J. McAuliffe and J. Sekhon, "Time-uniform, nonparametric,
nonasymptotic confidence sequences", Annals of Statistics 49(2), 2021, equation (14) and its
one-sided counterpart, Proposition 6; the mixture is Robbins's (1970). A supermartingale that bets
on an outcome is a wager: A. Ramdas, P. Grünwald, V. Vovk and G. Shafer, "Game-theoretic statistics
and safe anytime-valid inference", Statistical Science 38(4), 2023.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import sqrt
from typing import Final, Literal, TypeAlias

import numpy as np

from streamduel.preference.array_logarithm import ln_each
from streamduel.preference.arrays import Floats, polynomial
from streamduel.preference.exponential import exp, exp_each
from streamduel.preference.logarithm import ln
from streamduel.preference.normal import TAIL, scaled_tail

Winner: TypeAlias = Literal["condorcet", "copeland"]

RHO: Final = 8.0
"""ρ: the evidence is closest to its optimum after some hundred duels of a pair."""

MAX_SQUARE: Final = 690.0
"""The largest z² / 2: more evidence makes no difference, and exp(690) is finite."""

AT_ONCE: Final = 1 << 14
"""Pairs whose arrays stay in the cache of a core: with 1000 arms three times as fast as all."""


def wealth(more: float, fewer: float) -> tuple[float, float]:
    """M_ij of the arm i that has won more duels of a pair, and M_ji.

    Args:
        more: the wins of i, a tie being half a win each way.
        fewer: the wins of j, at most as many.

    >>> [round(each, 3) for each in wealth(60.0, 40.0)], wealth(0.0, 0.0)
    ([4.298, 0.183], (1.0, 1.0))
    """
    if more == 0:
        return 1.0, 1.0
    spread, lead = (more + fewer) / 4, (more - fewer) / 2  # v, Σ x - n / 2
    square = min(lead * lead / (2 * (spread + RHO)), MAX_SQUARE)  # z² / 2
    tail = scaled_tail(sqrt(square))  # 2 Φ(-z) exp(z² / 2)
    scale, won = sqrt(1 + spread / RHO), 2 * exp(square) - tail
    return won / scale, (won if more == fewer else tail) / scale


def wealth_each(wins: Floats, losses: Floats) -> Floats:
    """M of the arms with these wins and losses: `wealth`, in the same bits.

    Args:
        wins: of any shape.
        losses: of the same shape.
    """
    ahead, behind = wealth_of_pairs(np.maximum(wins, losses), np.minimum(wins, losses))
    return np.where(wins >= losses, ahead, behind)


def wealth_of_pairs(more: Floats, fewer: Floats) -> tuple[Floats, Floats]:
    """`wealth` of each pair, in the same bits.

    Args:
        more: of any shape.
        fewer: of the same shape, at most as many.
    """
    spread, lead = (more + fewer) / 4, (more - fewer) / 2
    square = np.minimum(lead * lead / (2 * (spread + RHO)), MAX_SQUARE)
    t = 1 / (1 + np.sqrt(square) / 2)
    powers = exp_each(np.array((polynomial(t, TAIL), square)))
    scale = np.sqrt(1 + spread / RHO)
    tail = t * powers[0]
    won = 2 * powers[1] - tail
    even = lead == 0
    np.copyto(tail, won, where=even)
    bets = np.array((won, tail)) / scale
    bets[:, spread == 0] = 1.0
    return bets[0], bets[1]


def log_evidence(wins: Floats) -> Floats:
    """The evidence for "i beats j", as a logarithm.

    ln M_ij where it is above 0, else 0. If in truth i does not beat j, it ever exceeds
    x with a probability of at most exp(-x).

    Args:
        wins: (K, K): [i, j] is how often i has beaten j, a tie being half a win each way.

    Returns:
        (K, K), in nats; the same bits on every machine.

    >>> log_evidence(np.array([[0.0, 560.0], [440.0, 0.0]])).round(3).tolist()
    [[0.0, 5.933], [0.0, 0.0]]
    """
    evidence = np.zeros(wins.shape)
    ahead = np.flatnonzero(wins > wins.T)  # without more wins than losses there is none
    won, lost = wins.take(ahead), wins.T.take(ahead)
    for start in range(0, len(ahead), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        np.put(evidence, ahead[part], log_evidence_of(won[part], lost[part]))
    return evidence


def log_evidence_of(wins: Floats, losses: Floats) -> Floats:
    """`log_evidence` of any pairs.

    Args:
        wins: of any shape.
        losses: of the same shape.
    """
    return np.maximum(ln_each(wealth_each(wins, losses)), 0.0)


def sure_at(wins: Floats, champion: int, seeks: Winner) -> float:
    """The evidence that the champion is the winner, in nats; `confidence` needs it.

    It is the Condorcet winner if it beats all others, and a Copeland winner if no arm can beat more
    others than it surely does. The result is the largest x for which this follows if each
    comparison needs x nats of evidence.

    For Copeland: with x, the champion surely beats S arms, and another arm i surely loses to L, so
    that it beats at most K - 1 - L. That is no more than S if at least K - 1 of the champion's
    evidence against all arms and of all arms' evidence against i reach x: x is the (K - 1)-th
    largest of these 2 K values, for the arm i where it is smallest.

    Args:
        wins: (K, K), as for `log_evidence`.
        champion: an arm.
        seeks: which winner.

    Returns:
        Nats; 0 without evidence.

    >>> wins = np.array([[0.0, 560.0, 600.0], [440.0, 0.0, 500.0], [400.0, 500.0, 0.0]])
    >>> round(sure_at(wins, 0, "condorcet"), 3), round(sure_at(wins, 0, "copeland"), 3)
    (5.933, 5.933)
    """
    against = sure_against(wins, champion, seeks)
    against[champion] = np.inf
    return float(against.min())


def sure_against(wins: Floats, champion: int, seeks: Winner) -> Floats:
    """For each arm, the evidence that it is no better a winner than the champion.

    Returns:
        (K,), in nats; `sure_at` is the least of the other arms.
    """
    least: Floats = comparisons(wins, champion, seeks).min(axis=1)
    return least


def closest_challenger(wins: Floats, champion: int, seeks: Winner) -> int:
    """The arm with the least evidence of being worse than the champion; of several, by duels.

    Args:
        wins: (K, K), as for `log_evidence`.
        champion: an arm.
        seeks: which winner.

    >>> wins = np.array([[0.0, 560.0, 600.0], [440.0, 0.0, 500.0], [400.0, 500.0, 0.0]])
    >>> closest_challenger(wins, 0, "condorcet")
    1
    """
    worse = sure_against(wins, champion, seeks)
    worse[champion] = np.inf
    return int(np.lexsort((-wins[champion] - wins[:, champion], worse))[0])


def comparisons(wins: Floats, champion: int, seeks: Winner) -> Floats:
    """For each arm, the evidence that `sure_at` needs that it is no better than the champion.

    Args:
        wins: (K, K), as for `log_evidence`.
        champion: an arm.
        seeks: which winner.

    Returns:
        (K, 1) for a Condorcet winner: that the champion beats the arm. (K, K - 1) for a Copeland
        winner: the largest of the champion's evidence, and of that of all arms against the arm.
    """
    if seeks == "condorcet":  # the champion's own comparisons suffice
        return log_evidence_of(wins[champion], wins[:, champion])[:, np.newaxis]
    return copeland_comparisons(log_evidence(wins), champion)


def copeland_comparisons(evidence: Floats, champion: int) -> Floats:
    """`comparisons` for a Copeland winner, the least of each arm first.

    Args:
        evidence: (K, K), [i, j] for "i beats j".
        champion: an arm.
    """
    both = np.concatenate([np.broadcast_to(evidence[champion], evidence.shape), evidence.T], axis=1)
    place = len(evidence) + 1
    return np.partition(both, place, axis=1)[:, place:]


@cache
def nats(confidence: float, n_arms: int, seeks: Winner) -> float:
    """The evidence that makes any winner sure with this confidence, at any time.

    For a Copeland winner a wrong champion needs one wrong comparison of K (K - 1). A Condorcet
    winner needs less: see `error_of`.

    Args:
        confidence: 1 - δ, from 0 to below 1.
        n_arms: K.
        seeks: which winner.

    >>> [round(nats(0.95, n_arms, "condorcet"), 3) for n_arms in (2, 3, 6, 500)]
    [3.689, 4.094, 4.105, 4.105]
    >>> round(nats(0.95, 4, "copeland"), 3)
    5.481
    """
    if seeks == "copeland":
        return ln(n_arms * (n_arms - 1)) - ln(1 - confidence)
    low, high = 0.0, ln(n_arms) - ln(1 - confidence)
    for _ in range(60):  # halves of 40 nats: to the last bit
        middle = (low + high) / 2
        low, high = (middle, high) if error_of(middle, n_arms) > 1 - confidence else (low, middle)
    return high


def error_of(evidence: float, n_arms: int) -> float:
    """The probability that a wrong arm ever has this evidence against every other arm, at most.

    Let a wrong arm not beat ℓ ≥ 1 of the others. Its evidence against these ℓ is the logarithm of
    wagers that it cannot gain by; a duel changes one of them, so their product is a supermartingale
    that begins at 1. If each reaches exp(x), the product reaches exp(ℓ x), with a probability of at
    most y^ℓ, y = exp(-x). There are at most 2 ℓ + 1 arms that do not beat at most ℓ others: among m
    such arms are m (m - 1) / 2 pairs, in each of which at least one does not beat the other, so
    m (m - 1) / 2 ≤ m ℓ. The sum of y^ℓ over all wrong arms is therefore at most
    3 y + 2 y² + 2 y³ + …, of K terms in all: a union over three arms, not over K.

    Args:
        evidence: x, in nats.
        n_arms: K.

    >>> round(error_of(4.0, 2), 4), round(error_of(4.0, 500), 4)
    (0.0366, 0.0556)
    """
    y = exp(-min(evidence, MAX_SQUARE))
    total, power, arms, left = 0.0, y, 3, n_arms
    while left > 0 and power > 0:
        total += min(arms, left) * power
        power, arms, left = power * y, 2, left - arms
    return min(total, 1.0)


def nats_of_all(n_arms: int, delta: float) -> float:
    """The evidence that each of all K (K - 1) / 2 pairs needs for all to be right together.

    Args:
        n_arms: K.
        delta: δ, between 0 and 1: the probability that any is ever wrong.
    """
    return ln(n_arms * (n_arms - 1) / 2) - ln(delta)


def intervals(wins: Floats, delta: float) -> tuple[Floats, Floats]:
    """Bounds of all preferences that hold together, at all times, with probability 1 - δ.

    They contain the p with M_n(p) < 1/α, α = δ / (K (K - 1) / 2).

    Args:
        wins: (K, K), as for `log_evidence`.
        delta: δ, between 0 and 1.

    Returns:
        (K, K) each: the lower and the upper bounds, within [0, 1]; 0 and 1 for pairs without duels.

    >>> lower, upper = intervals(np.array([[0.0, 560.0], [440.0, 0.0]]), delta=0.05)
    >>> lower.round(3).tolist()[0], upper.round(3).tolist()[0]
    ([0.0, 0.511], [1.0, 0.609])
    """
    return intervals_of(wins, wins.T, nats_of_all(len(wins), delta))


def intervals_of(wins: Floats, losses: Floats, evidence: float) -> tuple[Floats, Floats]:
    """`intervals` of any pairs: the preferences against which there is less evidence.

    Args:
        wins: of any shape.
        losses: of the same shape.
        evidence: in nats.
    """
    plays = wins + losses
    spread = plays / 4
    required = 2 * evidence + ln_each(1 + spread / RHO)
    met = plays > 0
    trials = np.where(met, plays, 1.0)
    mean = np.where(met, wins / trials, 0.5)
    radius = np.where(met, np.sqrt((spread + RHO) * required) / trials, 1.0)
    return np.maximum(mean - radius, 0.0), np.minimum(mean + radius, 1.0)


def confidence(wins: Floats, champion: int, seeks: Winner) -> float:
    """A lower bound of the probability that the champion is the winner, valid at any time.

    The largest 1 - δ for which `sure_at` reaches `nats`; 0 if there is none.

    Args:
        wins: (K, K), as for `log_evidence`.
        champion: an arm.
        seeks: which winner.

    >>> wins = np.array([[0.0, 560.0, 600.0], [440.0, 0.0, 500.0], [400.0, 500.0, 0.0]])
    >>> round(confidence(wins, 0, "condorcet"), 3), round(confidence(wins, 1, "condorcet"), 3)
    (0.992, 0.0)
    """
    return confidence_at(sure_at(wins, champion, seeks), len(wins), seeks)


def confidence_at(sure: float, n_arms: int, seeks: Winner) -> float:
    """`confidence` in one of K arms of which there is this evidence, by `sure_at`."""
    if seeks == "condorcet":
        return 1.0 - error_of(sure, n_arms)
    return max(0.0, 1.0 - exp(nats(0.0, n_arms, seeks) - sure))


def unbeaten(wins: Floats, champion: int, margin: float) -> float:
    """A lower bound of the probability that no arm beats the champion by more than a margin.

    It is valid at any time. A wrong champion needs one wrong comparison, in which it beats a better
    arm: a union over the K arms that may be it.

    Args:
        wins: (K, K), as for `log_evidence`.
        champion: an arm.
        margin: by how much a preference may exceed 1/2, from 0 to below 1/2.

    >>> wins = np.array([[0.0, 500.0], [500.0, 0.0]])
    >>> [round(unbeaten(wins, 0, margin), 3) for margin in (0.0, 0.05, 0.1)]
    [0.0, 0.955, 1.0]
    """
    gift = (wins[champion] + wins[:, champion]) * margin
    safe = log_evidence_of(wins[champion] + gift, wins[:, champion] - gift)
    safe[champion] = np.inf
    return max(0.0, 1.0 - len(wins) * exp(-float(safe.min())))


def unfairness(counts: Iterable[tuple[float, float]]) -> float:
    """The confidence that one of some pairs of counts is not from a fair coin, at any time.

    This is a test for a sample-ratio mismatch that is valid at every look at a dashboard: the
    probability that fair coins ever reach x is at most 1 - x. A toss may also be split between the
    sides, as a tie is, if both sides are equal on average.

    Args:
        counts: the counts of both sides, for each coin.

    Returns:
        From 0, no evidence against fairness, to 1.

    >>> round(unfairness([(520, 480)]), 3), round(unfairness([(600, 400), (500, 500)]), 6)
    (0.0, 1.0)

    Source: as for `streamduel.preference.evidence`; both directions, and all coins, together.
    """
    both = np.array([pair for count in counts for pair in (count, count[::-1])], dtype=np.float64)
    if not len(both):
        return 0.0
    most = float(log_evidence_of(both[:, 0], both[:, 1]).max())
    return max(0.0, 1 - len(both) * exp(-most))

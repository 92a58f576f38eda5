"""Kullback-Leibler divergences of Bernoulli distributions, with the same bits on every machine."""

from __future__ import annotations

from math import inf
from typing import Final

import numpy as np

from streamduel.preference.array_logarithm import ln_each
from streamduel.preference.arrays import Floats
from streamduel.preference.counts import FromCounts, WinCounts
from streamduel.preference.logarithm import ln


def bernoulli(p: float, q: float) -> float:
    """d(p, q) = p ln(p / q) + (1 - p) ln((1 - p) / (1 - q)), in nats.

    The evidence per duel against a true probability q, if the frequency of wins is p: after n duels
    it is about n d(p, q) nats. 0 ln 0 is 0, so d(1, q) = ln(1 / q) and d(0, q) = ln(1 / (1 - q));
    the divergence is infinite where q excludes an outcome that p allows.

    Args:
        p: from 0 to 1.
        q: from 0 to 1.

    >>> bernoulli(0.75, 0.5), bernoulli(1, 0.5), bernoulli(0.5, 1)
    (0.13081203594113697, 0.6931471805599453, inf)

    Source: S. Kullback and R. A. Leibler, "On Information and Sufficiency", Annals of Mathematical
    Statistics 22(1), 1951.
    """
    if (q <= 0 and p > 0) or (q >= 1 and p < 1):
        return inf
    won = p * ln(p / q) if p > 0 else 0.0
    lost = (1 - p) * ln((1 - p) / (1 - q)) if p < 1 else 0.0
    return won + lost


def from_half_each(p: Floats) -> Floats:
    """`bernoulli(p, 1/2)` of every element, in the same bits.

    Args:
        p: of any shape, each from 0 to 1.

    >>> from_half_each(np.array([0.75, 1.0, 0.5])).tolist()
    [0.13081203594113697, 0.6931471805599453, 0.0]
    """
    won, lost = p > 0, p < 1
    total = np.zeros(p.shape)
    total[won] += p[won] * ln_each(p[won] / 0.5)
    total[lost] += (1 - p[lost]) * ln_each((1 - p[lost]) / 0.5)
    return total


UNITS: Final = 2**40
"""In one nat."""


class EmpiricalDivergence(FromCounts):
    """I_i = Σ_j n_ij d(μ_ij, 1/2) over the arms j to which i has lost more often than it has won.

    d is the divergence of Bernoulli distributions, μ_ij = w_ij / n_ij. If i were the Condorcet
    winner, all its true means would be at least 1/2, and exp(-I_i) is the likelihood of the duels,
    relative to the best explanation. An arm that no arm is ahead of has I_i = 0.

    A duel changes only the terms of its own pair, so each sum is updated in constant time. The
    terms are cut to multiples of 2**-40 and added up as integers: sums do not depend on the order
    of the duels or of the arms, and arms with equal results have equal bits.

    Args:
        counts: the wins that the sums are about. The caller that adds to them calls `refresh`.

    Attributes:
        sums: (K,), read-only and live: I_i in nats.
        terms: (K, K), read-only and live: [i, j] is n_ij d(μ_ij, 1/2) where i is behind, else 0.

    >>> counts = WinCounts(3)
    >>> divergence = EmpiricalDivergence(counts)
    >>> counts.add_one(0, 1, first_wins=1, count=3)
    >>> divergence.refresh(0, 1)
    >>> counts.add_one(2, 1, first_wins=1, count=2)
    >>> divergence.refresh(1, 2)
    >>> divergence.sums.round(6).tolist()  # arm 1 has lost five duels: 5 ln 2
    [0.0, 3.465736, 0.0]

    Source: Komiyama, Honda, Kashima and Nakagawa, "Regret Lower Bound and Optimal Algorithm in
    Dueling Bandit Problem", COLT 2015, section 3.1.
    """

    def __init__(self, counts: WinCounts) -> None:
        n_arms = len(counts.wins)
        self._wins = counts.wins
        self._units = [0] * n_arms
        self.terms: Floats = np.zeros((n_arms, n_arms))
        self.sums: Floats = np.zeros(n_arms)
        self.refresh_many(*np.triu(counts.plays).nonzero())

    def refresh(self, first: int, second: int) -> None:
        """Update the terms of one pair."""
        if first == second:
            return
        first_wins, second_wins = self._wins.item(first, second), self._wins.item(second, first)
        if first_wins < second_wins:
            self._set(first, second, evidence(first_wins, second_wins))
            self._set(second, first, 0.0)
        else:
            self._set(first, second, 0.0)
            self._set(second, first, evidence(second_wins, first_wins))

    def _set(self, arm: int, rival: int, term: float) -> None:
        before = self.terms.item(arm, rival)
        if term == before:
            return
        self.terms[arm, rival] = term
        units = self._units[arm] + int(term * UNITS) - int(before * UNITS)
        self._units[arm] = units
        self.sums[arm] = units / UNITS  # rounded once, and correctly


def evidence(wins: float, losses: float) -> float:
    """The evidence against "at least as good", in nats: n d(w / n, 1/2), n = w + l.

    Args:
        wins: w, at most half of the duels.
        losses: l.

    >>> evidence(0, 3), evidence(1, 3), evidence(0, 0)
    (2.0794415416798357, 0.5232481437645479, 0.0)
    """
    if wins == losses:
        return 0.0
    played = wins + losses
    lost = losses * ln(2 * losses / played)
    total = lost + wins * ln(2 * wins / played) if wins else lost
    return max(total, 0.0)  # close to 1/2, rounding may leave a negative number

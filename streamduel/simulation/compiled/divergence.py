"""Empirical divergences: `streamduel.preference.divergence`, compiled."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from streamduel.preference.arrays import Floats, Integers
from streamduel.simulation.compiled.jit import compiled
from streamduel.simulation.compiled.logarithm import ln

_UNITS: Final = 2**40
"""In one nat."""


class Divergence(NamedTuple):
    """What `EmpiricalDivergence` keeps.

    Attributes:
        nats: (K,), and `units` (K,): the sums in whole nats and in units besides, perhaps more of
            these than one nat has. Both in one integer would need more than 64 bits.
    """

    sums: Floats
    terms: Floats
    nats: Integers
    units: Integers


def divergence(wins: Floats) -> Divergence:
    """The divergences of these counts.

    Args:
        wins: (K, K), perhaps of nothing yet.
    """
    n_arms = len(wins)
    kept = Divergence(
        sums=np.zeros(n_arms),
        terms=np.zeros((n_arms, n_arms)),
        nats=np.zeros(n_arms, dtype=np.int64),
        units=np.zeros(n_arms, dtype=np.int64),
    )
    for first, second in np.argwhere(np.triu(wins + wins.T) > 0):
        refresh(kept, wins, first, second)
    return kept


@compiled
def refresh(divergence: Divergence, wins: Floats, first: int, second: int) -> None:
    """Take up the counts of one pair as they are now."""
    first_wins, second_wins = wins[first, second], wins[second, first]
    if first_wins < second_wins:
        keep_term(divergence, first, second, evidence(first_wins, second_wins))
        keep_term(divergence, second, first, 0.0)
    else:
        keep_term(divergence, first, second, 0.0)
        keep_term(divergence, second, first, evidence(second_wins, first_wins))


@compiled
def keep_term(divergence: Divergence, arm: int, rival: int, term: float) -> None:
    """Keep a term, and the sum in which it is."""
    before = divergence.terms[arm, rival]
    if term == before:
        return
    divergence.terms[arm, rival] = term
    whole, whole_before = int(term), int(before)
    divergence.nats[arm] += whole - whole_before
    divergence.units[arm] += int((term - whole) * _UNITS) - int((before - whole_before) * _UNITS)
    carried, rest = divmod(divergence.units[arm], _UNITS)
    # Two exact numbers: their sum is rounded once.
    divergence.sums[arm] = float(divergence.nats[arm] + carried) + rest / _UNITS


@compiled
def evidence(wins: float, losses: float) -> float:
    """What speaks against "at least as good", in nats."""
    if wins == losses:
        return 0.0
    played = wins + losses
    total = losses * ln(2 * losses / played)
    if wins > 0:
        total += wins * ln(2 * wins / played)
    return max(total, 0.0)

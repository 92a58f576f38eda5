"""Evidence with clients as the unit, for duels that are independent among clients only.

Several duels of one client (a user or a session) are not independent: a client that prefers an arm
once is likely to prefer it again. So a client's duels of a pair are one wager. Let n be their
number and s the wins of arm i less n / 2. A client counts as at most m duels: y = s min(1, m / n),
so that y ≥ -m / 2. If i does not beat j, the mean of y is at most 0, whatever n is. For every λ in
[0, 2 / m), with ψ(t) = -ln(1 - t) - t and c = m / 2,

    exp(λ y - ψ(λ c) y² / c²) ≤ 1 + λ y,

whose mean is at most 1 (Fan, Grama and Liu 2015, (4.11); ψ is that of Howard et al. 2020). So the
product over independent clients, exp(λ S - ψ(λ c) Q / c²) with S = Σ y and Q = Σ y², has a mean of
at most 1. So has its mean over λ, here from the positive half of N(0, 1/ρ) below 2 / m, as for
single duels; by Markov's inequality it reaches 1/δ with a probability of at most δ. The order of
the clients does not matter: sums over them are enough.

It assumes that clients are independent, and that neither how many duels a client has nor which
pairs it is shown depends on what it prefers. It holds at the end of the data: a client who returns
changes its wager, so the guarantee is not for repeated looks.

The squares adapt to the clients: if their duels are practically independent, Q is what n coins
would give, and nothing is lost; if each client always prefers one arm, Q is n times as large.

Source: X. Fan, I. Grama and Q. Liu, "Exponential inequalities for martingales with applications",
Electronic Journal of Probability 20, 2015; S. R. Howard, A. Ramdas, J. McAuliffe and J. Sekhon,
"Time-uniform Chernoff bounds via nonnegative supermartingales", Probability Surveys 17, 2020,
for the mixture and the form with squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import Final, NamedTuple

import numpy as np

from streamduel.preference.arrays import Floats
from streamduel.preference.evidence import RHO, Winner, copeland_comparisons

USUAL: Final = 0.9
"""m is the number of duels of a pair that this share of the clients does not exceed. Fewer would
waste the duels of usual clients; with more, a single crawler takes away all evidence, because λ is
below 2 / m. It depends on the numbers of duels only, not on who won them."""

_STAKES: Final = 0.95 * np.exp(-0.05 * np.arange(220))
"""λ c: fine enough that neighbours differ by little, and small enough for 10^9 duels."""

AT_ONCE: Final = 4096
"""Pairs whose evidence is computed together, in some megabytes."""


class ClientSums(NamedTuple):
    """Sums over the clients of each pair (i, j); all of one shape.

    With w = min(1, m / n) for a client with n duels, of which the wins of i less n / 2 are s:

    Attributes:
        lead: Σ w s, so positive where clients prefer i.
        duels: Σ w n.
        lead_squares: Σ w² s².
        products: Σ w² s n.
        duel_squares: Σ w² n².
        most: m.
    """

    lead: Floats
    duels: Floats
    lead_squares: Floats
    products: Floats
    duel_squares: Floats
    most: float

    @classmethod
    def none(cls, n_arms: int, most: float) -> ClientSums:
        """The sums of K arms without a duel."""
        return cls._make([*np.zeros((5, n_arms, n_arms)), most])

    def at(self, pairs: tuple[Sequence[int], Sequence[int]]) -> ClientSums:
        """The sums of these pairs."""
        return ClientSums._make([*(each[pairs] for each in self[:-1]), self.most])


def log_evidence_of_clients(sums: ClientSums) -> Floats:
    """The evidence for "i beats j" with clients as the unit, in nats; 0 if there is none.

    >>> one = np.ones(1)
    >>> apart = ClientSums(lead=60 * one, duels=1000 * one, lead_squares=250 * one,
    ...                    products=60 * one, duel_squares=1000 * one, most=1)
    >>> log_evidence_of_clients(apart).round(1).tolist()  # 560 of 1,000 clients with one duel each
    [5.3]
    >>> together = apart._replace(lead_squares=2500 * one, most=10)  # ten equal duels each
    >>> log_evidence_of_clients(together).round(1).tolist()
    [0.0]
    """
    evidence = np.zeros(sums.lead.shape)
    ahead = np.flatnonzero(sums.lead > 0)  # without a lead there is no evidence
    for start in range(0, len(ahead), AT_ONCE):
        cells = ahead[start : start + AT_ONCE]
        lead, squares = (each.reshape(-1)[cells] for each in (sums.lead, sums.lead_squares))
        wealth = _log_wealth(lead, squares, np.full(len(cells), sums.most / 2))
        evidence.reshape(-1)[cells] = np.maximum(wealth, 0.0)
    return evidence


def _log_wealth(lead: Floats, squares: Floats, bound: Floats) -> Floats:
    """The logarithm of the mean over λ of exp(λ lead - ψ(λ c) squares / c²).

    Args:
        lead: S, of any shape.
        squares: Q, of the same shape.
        bound: c, so that each y is at least -c; of the same shape.
    """
    bound = bound[..., None]
    scaled, spread = lead[..., None] / bound, squares[..., None] / bound**2
    psi = -np.log1p(-_STAKES) - _STAKES
    density = _STAKES * np.exp(-RHO / 2 * np.square(_STAKES / bound))  # closer where smaller
    exponents = scaled * _STAKES - spread * psi
    largest = exponents.max(axis=-1)
    wealth: Floats = largest + np.log(
        (np.exp(exponents - largest[..., None]) * density).sum(-1) / density.sum(-1)
    )
    return wealth


def sure_of_clients(evidence: Floats, champion: int, seeks: Winner) -> float:
    """The evidence that the champion is the winner, in nats: `evidence.sure_at` of a matrix.

    Args:
        evidence: (K, K), [i, j] for "i beats j".
        champion: an arm.
        seeks: which winner.
    """
    if seeks == "condorcet":
        return float(np.delete(evidence[champion], champion).min())
    against = copeland_comparisons(evidence, champion)[:, 0]
    return float(np.delete(against, champion).min())


def confidence_of_clients(evidence: Floats, champion: int, seeks: Winner) -> float:
    """A lower bound of the probability that the champion is the winner, at the end of the data.

    Wagers of one client on several pairs are not independent, so the errors of all comparisons are
    added: a wrong Condorcet winner needs one of K false claims, a wrong Copeland winner one of
    K (K - 1).

    Args:
        evidence: (K, K), [i, j] for "i beats j".
        champion: an arm.
        seeks: which winner.

    >>> evidence = np.array([[0.0, 4.0], [0.0, 0.0]])
    >>> round(confidence_of_clients(evidence, 0, "condorcet"), 3)
    0.963
    """
    n_arms = len(evidence)
    claims = n_arms if seeks == "condorcet" else n_arms * (n_arms - 1)
    return max(0.0, 1 - exp(log(claims) - sure_of_clients(evidence, champion, seeks)))


def intervals_of_clients(sums: ClientSums, evidence: float) -> tuple[Floats, Floats]:
    """The preferences of each pair that the clients do not contradict.

    Each end may be wrong, so it takes ln 2 more nats than one direction does.

    Args:
        sums: of P pairs, each (P,).
        evidence: in nats: -ln of the probability that the preference is outside.

    Returns:
        (P,) each: the lower and the upper ends.

    >>> lead, duels, squares = (np.array([each]) for each in (60.0, 1000.0, 250.0))
    >>> apart = ClientSums(lead, duels, squares, products=lead, duel_squares=duels, most=1)
    >>> low, high = intervals_of_clients(apart, evidence=3.0)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.509], [0.611])
    """
    mirrored = sums._replace(lead=-sums.lead, products=-sums.products)
    of_each_end = evidence + log(2)
    return _lower(sums, of_each_end), 1 - _lower(mirrored, of_each_end)


def _lower(sums: ClientSums, evidence: float) -> Floats:
    """The lower ends, by halves: the evidence against p falls as p rises to the mean."""
    met = sums.duels > 0
    low = np.zeros(len(sums.duels))
    high = np.where(met, 0.5 + sums.lead / np.where(met, sums.duels, 1.0), 0.0)
    for _ in range(40):
        middle = (low + high) / 2
        shift = 0.5 - middle
        lead = sums.lead + shift * sums.duels
        squares = sums.lead_squares + 2 * shift * sums.products + shift**2 * sums.duel_squares
        against = _log_wealth(lead, squares, sums.most * np.maximum(middle, 0.05))
        low = np.where(against >= evidence, middle, low)
        high = np.where(against >= evidence, high, middle)
    return low

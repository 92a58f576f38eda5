"""A prior: what is known before the first duel, and when a policy ignores it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from streamduel.errors import ParameterError
from streamduel.policies.base.parameter import Parameter
from streamduel.policies.base.state import Wins
from streamduel.preference.array_logarithm import ln_each
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.counts import FromCounts

MAX_WINS: Final = 1e6
"""Pseudo-wins of one arm over another: far more than any duels of an experiment can outweigh."""

MOST: Final = 2.0
"""The most wins that a lead counts for: more would keep a favoured arm in the lead, or the best one
out of all duels, for long before duels contradict it."""

EDGE: Final = 0.05
"""The largest lead over 1/2 that the wager on a prior bets on. So a prior with the right order of
arms wins the wager, even if it exaggerates the preferences."""

UNITS: Final = 1024
"""Units per nat and half duel: the wealth of 2**51 duels fits 64 bits, and sums are exact."""

FEE: Final = UNITS // 128
"""The fee for each duel of any pair: a prior is abandoned after 128 duels that do not support it.
Otherwise a prior that keeps the best arm out of all duels would never be tested."""

LOST: Final = -2 * UNITS
"""The wealth below which a prior is not believed: 1 nat lost."""


class ArmWins(Parameter[Wins]):
    """Wins of each arm over each other one; off unless they are given.

    Args:
        most: the largest number of wins.
        **declaration: as for every parameter.
    """

    def __init__(self, most: float, **declaration: Any) -> None:
        super().__init__(optional=True, **declaration)
        self._most = most
        self.kind = f"K lists of K numbers from 0 to {most:.0f}, 0 for an arm and itself"

    def for_arms(self, value: Wins, kept: Sequence[int | None]) -> Wins:
        """The pseudo-wins among the arms that stay; a new arm has none."""
        return [
            [0.0 if one is None or other is None else value[one][other] for other in kept]
            for one in kept
        ]

    def check(self, value: object) -> Wins:
        """The matrix as K lists."""
        checked = self._typed(value)
        if checked is None:
            raise ParameterError(self.name, f"must be {self.kind}.")
        return checked

    def _typed(self, value: object) -> Wins | None:
        try:
            matrix = np.asarray(value)
        except ValueError:  # lists of different lengths
            return None
        if matrix.dtype.kind not in "iuf" or matrix.ndim != 2 or len(set(matrix.shape)) != 1:
            return None
        allowed = (matrix >= 0) & (matrix <= self._most)
        if not allowed.all() or np.diag(matrix).any():
            return None
        wins: Wins = matrix.astype(np.float64).tolist()
        return wins


class Belief(FromCounts):
    """The leads of a prior, as long as the duels do not contradict it.

    A pair's lead is its surplus of pseudo-wins: a prior that calls two arms equal says nothing. It
    counts as so many wins of the arm that leads, at most `MOST`.

    A wrong prior is abandoned for all pairs together. In each duel, a bettor bets that the arm that
    leads wins with the probability q = 1/2 + min(l / (2 (l + 2)), `EDGE`), l being the lead, and
    pays a fee f of `FEE`, also in duels of pairs of which the prior says nothing. His log wealth is
    Σ_ij W_ij (ln(2 q_ij) - f), W the wins. The prior is believed while it is at least -1. It
    follows from the counts alone: a prior may be believed again.

    Args:
        wins: (K, K) the pseudo-wins.
        duels: (K, K), live: the wins in duels. The caller that adds to them calls `refresh`.
        before: (K, K) the wins in duels before the prior was stated, which do not count; by
            default none.

    Attributes:
        stated: (K, K): [i, j] is what the lead of i over j counts for, from 0.
        leads: (K, K), live: `stated`, or zeros when the prior is not believed.
        bets: (K, K): [i, j] is what a win of i over j adds to the log wealth, in units.
        wealth: the log wealth in half units.

    >>> duels = np.zeros((2, 2))
    >>> belief = Belief([[0, 20], [10, 0]], duels)
    >>> belief.leads.tolist(), belief.bets.tolist()
    ([[0.0, 2.0], [0.0, 0.0]], [[0, 90], [-116, 0]])
    >>> duels[1, 0] = 10
    >>> belief.refresh(0, 1)
    >>> belief.wealth, belief.leads.tolist()
    (-2320, [[0.0, 0.0], [0.0, 0.0]])
    """

    def __init__(self, wins: Wins, duels: Floats, before: Wins | None = None) -> None:
        given = np.array(wins)
        if given.shape != duels.shape:
            raise ParameterError(
                "prior",
                f"must be for {len(duels)} arms, as many as there are (found {len(given)}).",
            )
        self._wins = duels
        self._before: Floats = np.zeros_like(duels) if before is None else np.array(before)
        if self._before.shape != duels.shape:
            raise ParameterError(
                "prior_from",
                f"must be for {len(duels)} arms, as many as there are (found {len(self._before)}).",
            )
        lead = given - given.T
        self.stated: Floats = np.clip(lead, 0.0, MOST)
        size = np.abs(lead)
        edge = np.sign(lead) * np.minimum(size / (2 * (size + 2)), EDGE)
        self.bets: Integers = np.rint(ln_each(1 + 2 * edge) * UNITS).astype(np.int64) - FEE
        np.fill_diagonal(self.bets, 0)
        self.refresh_all()

    @property
    def holds(self) -> bool:
        """Whether the prior is believed."""
        return self.wealth >= LOST

    def refresh_all(self) -> None:
        """Compute everything from the counts."""
        self._terms: Integers = (2 * (self._wins - self._before)).astype(np.int64) * self.bets
        self.wealth = int(self._terms.sum())
        self.leads: Floats = self.stated if self.holds else np.zeros_like(self.stated)

    def refresh(self, first: int, second: int) -> None:
        """Update what depends on the counts of one pair."""
        held = self.holds
        for winner, loser in ((first, second), (second, first)):
            wins = self._wins.item(winner, loser) - self._before.item(winner, loser)
            term = int(2 * wins) * self.bets.item(winner, loser)
            self.wealth += term - self._terms.item(winner, loser)
            self._terms[winner, loser] = term
        if self.holds != held:
            self.leads = self.stated if self.holds else np.zeros_like(self.stated)

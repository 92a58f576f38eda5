"""Preferences that duels leave possible: a normal model of their logits.

The logit of the probability that arm i beats arm j is θ_ij = u_i - u_j + e_ij: the arms have
utilities u, as in the model of Bradley and Terry, from which each pair deviates by e. A pair with w
wins and l losses tells y = ln((w + ½) / (l + ½)) with a variance of about 1/(w + ½) + 1/(l + ½). If
u and e are normal, so are u given all y, and e given u and y.

How much arms differ, and how far pairs deviate, the duels say, too: each combination of `SPREADS`
is as probable as it makes the duels.

Source: R. A. Bradley and M. E. Terry, "Rank analysis of incomplete block designs", Biometrika 39,
1952; A. Gelman et al., "Bayesian Data Analysis", 3rd edition, section 4.1 for the approximation and
chapter 5 for the spreads.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from streamduel.preference.arrays import Floats

SPREADS: Final = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Standard deviations of utilities and of deviations: from rankers that win 53 % of their duels
with each other, which are worth an experiment, to those that win 88 %."""


class Fit(NamedTuple):
    """The posterior for one combination of spreads.

    Attributes:
        evidence: the logarithm of the density of the duels, but for a constant.
        utilities: (K,), the mean of u.
        root: (K, K), whose product with standard normal numbers has the covariance of u.
        deviation: the spread of e.
    """

    evidence: float
    utilities: Floats
    root: Floats
    deviation: float


class Logits(NamedTuple):
    """What the duels of each pair tell.

    Attributes:
        seen: (K, K), y; 0 for pairs without duels.
        variances: (K, K), of y given θ; infinite for pairs without duels.
    """

    seen: Floats
    variances: Floats

    @classmethod
    def of(cls, wins: Floats) -> Logits:
        """From wins without ties, (K, K), [i, j] of i against j.

        >>> Logits.of(np.array([[0.0, 9.5], [4.5, 0.0]])).seen.round(3).tolist()
        [[0.0, 0.693], [-0.693, 0.0]]
        """
        met = wins + wins.T > 0
        np.fill_diagonal(met, val=False)
        won, lost = wins + 0.5, wins.T + 0.5
        seen = np.where(met, np.log(won / lost), 0.0)
        return cls(seen, np.where(met, 1 / won + 1 / lost, np.inf))

    def fit(self, spread: float, deviation: float) -> Fit:
        """The posterior if these are the standard deviations of u and e."""
        n_arms = len(self.seen)
        weights = 1 / (self.variances + deviation**2)
        precision = np.diag(weights.sum(axis=1) + spread**-2) - weights
        root = np.linalg.cholesky(precision)
        told = (weights * self.seen).sum(axis=1)
        half = np.linalg.solve(root, told)
        ln_weights = np.log(weights[weights > 0]).sum() / 2  # each pair is twice in the matrices
        ln_determinant = 2 * np.log(np.diag(root)).sum() + 2 * n_arms * math.log(spread)
        misfit = (weights * self.seen**2).sum() / 2 - half @ half
        inverse = np.linalg.inv(root).T
        evidence = float(ln_weights - ln_determinant - misfit) / 2
        return Fit(evidence, inverse @ half, inverse, deviation)

    def draw(self, fits: list[Fit], rng: np.random.Generator) -> Floats:
        """Draw preferences (K, K) from the posterior.

        Args:
            fits: of all combinations of spreads; one is drawn by its evidence.
            rng: of the draws.
        """
        evidence = np.array([fit.evidence for fit in fits])
        chances = np.exp(evidence - evidence.max())
        fit = fits[rng.choice(len(fits), p=chances / chances.sum())]
        utilities = fit.utilities + fit.root @ rng.standard_normal(len(fit.utilities))
        expected = utilities[:, None] - utilities
        share = 1 / (1 + self.variances / fit.deviation**2)  # of y in the posterior of e
        means = expected + share * (self.seen - expected)
        noise = np.triu(rng.standard_normal(means.shape), 1)
        logits = means + fit.deviation * np.sqrt(1 - share) * (noise - noise.T)
        preferences: Floats = 1 / (1 + np.exp(-logits))
        return preferences

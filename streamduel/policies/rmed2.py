"""RMED2: Relative Minimum Empirical Divergence with the cheapest opponents."""

from __future__ import annotations

from math import ceil

import numpy as np

from streamduel.policies.base.parameter import Real
from streamduel.policies.rmed1 import RMED1
from streamduel.preference.logarithm import ln


class RMED2(RMED1):
    """RMED1 with opponents chosen for their cost: the regret is optimal, constant included.

    To rule out arm l, evidence may come from any arm that beats it; a nat of it costs
    (Δ_*l + Δ_*j) / d⁺(μ_lj, 1/2) against arm j, where Δ_*j is the gap of j to i*, and d⁺ the
    divergence if l is behind, else 0. l duels with the cheapest opponent, b(l); and with i* itself,
    so as not to rely on b alone, if it has duelled with i* fewer than 1 / ln ln t times as often.
    For accurate means, every pair must have duelled α ln ln t times before each pass.

    Better than RMED1 only for a very large T: this exploration costs K² ln ln T.

    Where the paper leaves something open: α ln ln t and 1 / ln ln t are taken as they are; so
    before t = 16 (α = 3) every pair duels at most three times, and for ln ln t < 0, b(l) is the
    opponent. The exploration comes before a pass, not within it. If no arm is ahead of l, Algorithm
    2 chooses. Negative costs stay negative.

    Draws from the generator, each only if there is more than one choice: i*; then b(l), and if it
    is not the opponent, as RMED1.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = RMED2(n_arms=3, seed=7), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 141)

    Source: as for RMED1; Algorithms 1 and 3.
    """

    name = "rmed2"
    summary = "RMED1 with the cheapest opponents, optimal for very large T; needs no horizon"
    paper = "Komiyama et al., Regret Lower Bound and Optimal Algorithm, COLT 2015 (RMED2)"

    alpha = Real(
        symbol="α",
        default=3.0,
        above=0,
        meaning="every pair must meet α ln ln t times; larger explores more",
        reason="the paper requires α > 0",
    )

    def _needed(self, t: int) -> int:
        return max(1, ceil(self.alpha * ln(ln(t)))) if t > 1 else 1

    def _opponent(self, arm: int, t: int) -> int:
        likeliest = self._likeliest()
        cheapest = self._cheapest_opponent(arm, likeliest)
        if cheapest is not None and self._suffices(arm, likeliest, cheapest, t):
            return cheapest
        return self._strongest_opponent(arm, likeliest)

    def _suffices(self, arm: int, likeliest: int, cheapest: int, t: int) -> bool:
        """Algorithm 3: N_l,i* ≥ N_l,b / ln ln t."""
        wins = self.wins
        met = wins.item(arm, likeliest) + wins.item(likeliest, arm)
        return bool(met >= (wins.item(arm, cheapest) + wins.item(cheapest, arm)) / ln(ln(t)))

    def _cheapest_opponent(self, arm: int, likeliest: int) -> int | None:
        """b(l), equation (6), or None if no arm is ahead of l."""
        terms = self._divergence.terms[arm]
        ahead = terms > 0
        if not ahead.any():
            return None
        wins = self.wins
        lead = self._means(likeliest) - 0.5
        costs = np.full(self.n_arms, np.inf)
        met = wins[arm] + wins[:, arm]
        np.divide(lead + lead[arm], terms / np.maximum(met, 1.0), out=costs, where=ahead)
        return self._generator.choose_index(costs == costs[costs.argmin()])

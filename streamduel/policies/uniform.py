"""Uniform: every pair of arms equally often, whatever the outcomes."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamduel.policies.base.policy import Policy
from streamduel.preference.arrays import Integers

_BLOCK: Final = 1 << 16
"""The most duels proposed ahead: no outcome changes them, and their arrays take 2 MB."""


class Uniform(Policy):
    """Proposes two different arms, each pair with the same probability, whatever the outcomes.

    This is an A/B test of all pairs, and the baseline of every other policy: its regret is that of
    a random pair, at every step. Its counts are an unbiased sample of all pairs, so it is also the
    policy to measure the preference matrix.

    Draws from the generator: one number below K(K - 1) per duel. Outcomes of unproposed duels count
    like all others.

    >>> policy = Uniform(n_arms=4, seed=7)
    >>> policy.propose(3).tolist()
    [[0, 3], [1, 0], [3, 1]]
    >>> policy.observe([0, 1, 3], [3, 0, 1], [0, 0, 1])
    >>> policy.champion(), policy.candidates()
    (3, 4)

    Source: the baseline of Yue, Broder, Kleinberg and Joachims, "The K-armed dueling bandits
    problem", JCSS 78(5), 2012.
    """

    name = "uniform"
    summary = "every pair equally often: the baseline, and the way to measure all preferences"
    paper = "the baseline of Yue et al., The K-armed dueling bandits problem, JCSS 2012"
    seeks = "copeland"
    adaptive = False

    def _choose(self, t: int) -> tuple[int, int]:  # noqa: ARG002 - all steps are alike
        first, other = divmod(
            self._generator.below(self.n_arms * (self.n_arms - 1)), self.n_arms - 1
        )
        return first, other + (other >= first)

    def _choose_ahead(self, t: int, limit: int) -> tuple[Integers, Integers]:  # noqa: ARG002
        n_duels, n_others = min(limit, _BLOCK), self.n_arms - 1
        drawn = self._generator.below_each(self.n_arms * n_others, n_duels)
        first, other = np.divmod(drawn, n_others)
        pairs = np.stack([first, other + (other >= first)], axis=1)
        return pairs, np.ones(n_duels, dtype=np.int64)

    def candidates(self) -> int:
        """K: no arm is ever ruled out."""
        return self.n_arms

"""PCOMP: Pairwise comparisons of all active arms, in batches."""

from __future__ import annotations

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.batched_policy import BatchedPolicy, BatchedState, estimates
from streamduel.policies.base.parameter import Flag
from streamduel.policies.base.state import Wins
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.logarithm import ln


class PCompState(BatchedState):
    """The wins before the round."""

    before: Wins


class PComp(BatchedPolicy):
    """Compares every pair of active arms in growing rounds; O(K² ln T) regret in O(ln T) rounds.

    In round r each active pair duels q_r times. Then every arm is eliminated that lost to another
    by more than the radius γ_r, which shrinks from round to round; the Condorcet winner stays with
    probability 1 - 1/T. It is the simplest batched policy, and the baseline of the others: C2B,
    which compares beaten arms with its candidate only, has the better bound.

    Assumed where the paper was not available: q = T^(1/B), q_r = ⌊q^r⌋,
    γ_r = sqrt(ln(1/δ) / 2 q_r), δ = 1 / (6 T K² B), B = ⌊ln T⌋ when left out. Estimates are those
    of the round alone, since γ_r is the radius for q_r duels; all beaten arms are eliminated
    together, and none if all were beaten.

    Delayed outcomes: duels of a pair that the open batch lacks count towards it, and all duels
    observed while a round is open are in its estimates, whether proposed or not. More than q_r
    duels of a pair narrow its estimate, but not γ_r; with `accumulate`, all observed duels narrow
    both. A round ends when the next pair is asked for after its last quota is filled. If it was
    closed before, γ_r is the radius for the number of duels of each pair.

    Draws from the generator: for each duel, one of those that the batch lacks.

    Args:
        accumulate: estimate from all duels so far, with N_ij instead of q_r.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = PComp(n_arms=3, seed=7, horizon=9000), np.random.RandomState(7)
    >>> for _ in range(9000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), policy.rounds, int(policy.wins.sum())
    (0, 1, 9, 729)

    Source: Agarwal, Ghuge and Nagarajan, "Batched Dueling Bandits", ICML 2022, algorithm PCOMP.
    """

    name = "pcomp"
    summary = "all pairs of active arms in few growing rounds; the simplest batched policy"
    paper = "Agarwal et al., Batched Dueling Bandits, ICML 2022"

    state_type = PCompState

    accumulate = Flag(
        symbol="p̂",
        default=False,
        meaning="estimate from all duels so far, not only from those of the round",
    )

    def _begin(self) -> None:
        super()._begin()
        self._before: Floats = np.zeros((self.n_arms, self.n_arms))  # wins before this round

    def _end_round(self) -> Booleans:
        played, means = estimates(self.wins if self.accumulate else self.wins - self._before)
        # A round that was closed early has fewer than q_r duels of some pairs.
        trials = played if self.accumulate else np.minimum(played, self._repeats(self._round))
        gaps = np.maximum(means - 0.5, 0.0)
        width = ln(6) + ln(self.horizon) + 2 * ln(self.n_arms) + ln(self.rounds)  # ln(1/δ)
        beats = (trials * (gaps * gaps) > width / 2) & self._active[:, None]
        beaten: Booleans = np.logical_or.reduce(beats, axis=0)
        return beaten

    def _begin_round(self) -> Integers:
        self._before = self.wins.copy()
        return np.where(self._active_pairs(), self._repeats(self._round), 0)

    def _restored(self) -> None:
        super()._restored()
        if (self._before > self.wins).any():
            raise PolicyError("the wins before the round must not be above the wins.")

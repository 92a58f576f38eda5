"""Relative Confidence Sampling: a champion by a sampled tournament, a challenger by its bound."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamduel.policies.base.beta import BetaPosterior, beats
from streamduel.policies.base.parameter import Real
from streamduel.policies.base.policy import Policy
from streamduel.policies.base.reasons import ByUpperBounds
from streamduel.policies.base.state import Count, State
from streamduel.preference.arrays import Booleans, Integers
from streamduel.preference.bounds import UpperBounds
from streamduel.preference.logarithm import ln

_BLOCK: Final = 4096
"""The largest number of duels proposed ahead; it bounds the memory."""


class RelativeConfidenceSamplingState(State):
    """`reigns`: how often each arm was the champion of a proposed pair."""

    reigns: list[Count]


class RelativeConfidenceSampling(ByUpperBounds, Policy):
    """Less cautious than RUCB: the winner of a sampled tournament is the champion.

    For every pair a preference is drawn from its posterior, θ_ij ~ Beta(w_ij + 1, w_ji + 1) and
    θ_ji = 1 - θ_ij. The arm c that beats all others in this sample is the champion: an arm is
    champion as often as it may be the best. If there is none, it is the arm that has been champion
    least often. The challenger d is, as in RUCB, the arm with the largest upper bound u_jc, and may
    be c itself. When the best arm is known, it is nearly always champion, and duels with itself.
    Needs no T; no bound on its regret is proved. Its regret is below RUCB's, its step costs more.

    Where the paper leaves something open: both ways to be champion count; t is the number of duels
    seen plus 1; x/0 := 1, so an unseen pair's bound is 2. Ties are broken at random, c giving way
    to another arm.

    Of the sample only the arm that beats all others matters, and its θ are independent. So only the
    θ that decide are drawn: an arm, first the leader, is compared with all others; of those that
    beat it, the one that beats the most arms in the counts is compared with the rest; and so on,
    until an arm has beaten all that were left, and is then compared with those that it has not been
    compared with yet. This takes K - 1 draws if the leader wins, and 2 to 3 K without any duels,
    from ten arms on, instead of the K (K - 1) / 2 of a whole sample, and each result has the same
    probability.

    Delayed and unproposed duels count like all others. Duels in flight narrow the bounds by which d
    is chosen, but not the posterior; every proposed c counts as champion.

    Draws from the generator: θ, in the order described, as in `BetaPosterior`; c among ties if no
    arm wins the tournament; d among ties.

    Args:
        alpha: α, above 1/2: the bonus is sqrt(α ln t / n). Larger explores more.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = RelativeConfidenceSampling(3, seed=7), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 93)

    Source: Zoghi, Whiteson, de Rijke and Munos, "Relative Confidence Sampling for Efficient On-line
    Ranker Evaluation", WSDM 2014, Algorithm 1; after accounts of it by others.
    """

    name = "relative_confidence_sampling"
    summary = "champion by a sampled tournament, challenger as in RUCB; needs no horizon"
    paper = "Zoghi et al., Relative Confidence Sampling, WSDM 2014"

    state_type = RelativeConfidenceSamplingState

    alpha = Real(
        symbol="α",
        default=0.51,
        above=0.5,
        meaning="width of the confidence bounds; larger explores more",
        reason="below it the bounds fail too often",
    )

    def _begin(self) -> None:
        self._bounds = self._track(UpperBounds(self._counts))
        self._posterior = self._track(BetaPosterior(self._counts))
        self._reigns: Integers = np.zeros(self.n_arms, dtype=np.int64)

    def _choose(self, t: int) -> tuple[int, int]:
        champion = self._victor()
        if champion is None:
            champion = self._generator.choose_index(self._reigns == self._reigns.min())
        self._reigns[champion] += 1
        challengers = self._bounds.challengers(champion, self.alpha * ln(t))
        return champion, self._generator.choose(challengers)

    def _victor(self) -> int | None:
        """The arm that beats all others in the sample, if there is one."""
        arm, contenders = self._leader(), np.arange(self.n_arms)
        met = np.zeros(self.n_arms, dtype=np.bool_)  # arms that the arm has beaten
        while True:
            rivals = contenders[contenders != arm]
            beaten_by = rivals[~self._beats(arm, rivals)]
            if not len(beaten_by):
                break
            # An arm that beats this one has beaten all arms before it, too.
            met[arm] = True
            contenders = beaten_by
            arm = contenders.item(self._rank()[contenders].argmax())
        met[contenders] = True
        rest = (~met).nonzero()[0]
        return arm if self._beats(arm, rest).all() else None

    def _beats(self, arm: int, rivals: Integers) -> Booleans:
        """Which of its rivals an arm beats in the sample."""
        if not len(rivals):
            return np.empty(0, dtype=np.bool_)
        return beats(self._posterior, np.full_like(rivals, arm), rivals, self._generator)

    def _choose_ahead(self, t: int, limit: int) -> tuple[Integers, Integers]:
        """Champions against themselves, and the first duel of two different arms."""
        pairs = [self._choose(t)]
        while pairs[-1][0] == pairs[-1][1] and len(pairs) < min(limit, _BLOCK):
            pairs.append(self._choose(t + len(pairs)))
        return np.array(pairs, dtype=np.int64), np.ones(len(pairs), dtype=np.int64)

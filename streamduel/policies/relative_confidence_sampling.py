"""Relative Confidence Sampling: a champion by a sampled tournament, a challenger by its bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.beta import BetaPosterior, beats
from streamduel.policies.base.parameter import Real
from streamduel.policies.base.policy import Policy
from streamduel.preference.arrays import Booleans, Integers
from streamduel.preference.bounds import UpperBounds
from streamduel.preference.logarithm import ln

_BLOCK: Final = 4096
"""As many duels are foreseen at once; it bounds the memory that takes."""


class RelativeConfidenceSampling(Policy):
    """Less cautious than RUCB in dropping arms: a sampled tournament names the champion.

    For every pair a chance is drawn from what its duels leave open, θ_ij ~ Beta(w_ij + 1, w_ji + 1)
    and θ_ji = 1 - θ_ij. The arm c that beats all others in this sample is the champion: an arm is
    it as often as it may be the best. If there is none, it is the arm that has been champion least
    often. The challenger d is, as in RUCB, the arm with the largest upper bound u_jc, and may be c
    itself. When the best arm is known, it is drawn nearly always, and meets itself. Needs no T; no
    bound on its regret is proved. Its regret is below RUCB's, its step dearer.

    Where the paper leaves something open: both ways to be champion count; t is the number of duels
    seen plus 1; x/0 := 1, so an unseen pair's bound is 2. Ties are broken at random, c giving way
    to another arm.

    The sample decides by nothing but who beats all others, and its θ are independent. So only
    those are drawn that matter: an arm, the leader to begin with, meets all others; of those that
    beat it, the one that beats the most arms by the counts meets the rest; and so on, until an arm
    has beaten all who were left, and then meets those it has not met yet. This takes K - 1 draws if
    the leader wins, and about 3 K if nothing is known yet, for the K (K - 1) / 2 of a whole sample,
    and ends the same way with the same probability.

    Late and unasked duels count like all others. Duels in flight narrow the bounds by which d is
    chosen, and not the posterior; every c proposed counts as having been champion.

    Draws from the generator: θ, as `BetaPosterior` says, as described; c if nobody wins the
    tournament, among ties; d among ties.

    Args:
        n_arms: K, at least 2.
        seed: of the policy's generator.
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

    alpha = Real(
        symbol="α",
        default=0.51,
        above=0.5,
        meaning="width of the confidence bounds; larger explores more",
        reason="below it the bounds fail too often",
    )

    def _begin(self) -> None:
        self._bounds = UpperBounds(self._counts)
        self._posterior = BetaPosterior(self._counts)
        self._reigns: Integers = np.zeros(self.n_arms, dtype=np.int64)

    def _choose(self, t: int) -> tuple[int, int]:
        champion = self._victor()
        if champion is None:
            champion = self._one_of(self._reigns == self._reigns.min())
        self._reigns[champion] += 1
        return champion, self._challenger(champion, self.alpha * ln(t))

    def _victor(self) -> int | None:
        """The arm that beats all others in the sample, if there is one."""
        arm, contenders = self._leader(), np.arange(self.n_arms)
        met = np.zeros(self.n_arms, dtype=np.bool_)  # by the arm: those it has beaten
        while True:
            rivals = contenders[contenders != arm]
            beaten_by = rivals[~self._beats(arm, rivals)]
            if not len(beaten_by):
                break
            # Who beats the arm has beaten all arms before it, too.
            met[arm] = True
            contenders = beaten_by
            rank = self._counts.beats[contenders] * self.n_arms + self._standing[contenders]
            arm = contenders.item(rank.argmax())
        met[contenders] = True
        rest = (~met).nonzero()[0]
        return arm if self._beats(arm, rest).all() else None

    def _beats(self, arm: int, rivals: Integers) -> Booleans:
        """Which of its rivals an arm beats in the sample."""
        if not len(rivals):
            return np.empty(0, dtype=np.bool_)
        return beats(self._posterior, np.full_like(rivals, arm), rivals, self._generator)

    def _challenger(self, champion: int, scale: float) -> int:
        """The d with the largest u_jc."""
        bounds = self._bounds.against(champion, scale)
        best = bounds == bounds[bounds.argmax()]
        if best[champion] and np.count_nonzero(best) > 1:
            best[champion] = False
        return self._one_of(best)

    def _one_of(self, chosen: Booleans) -> int:
        """A random arm of those marked."""
        arms = chosen.nonzero()[0]
        return int(arms[self._generator.below(len(arms))])

    def _foresee(self, t: int, most: int) -> tuple[Integers, Integers]:
        """Champions alone, one after the other, and the first duel that has an outcome."""
        pairs = [self._choose(t)]
        while pairs[-1][0] == pairs[-1][1] and len(pairs) < min(most, _BLOCK):
            pairs.append(self._choose(t + len(pairs)))
        return np.array(pairs, dtype=np.int64), np.ones(len(pairs), dtype=np.int64)

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        self._bounds.refresh(first, second, in_flight)

    def _take_up(self, first: int, second: int) -> None:
        self._bounds.refresh(first, second)
        self._posterior.refresh(first, second)

    def _take_up_many(self, first: Integers, second: Integers) -> None:
        self._bounds.refresh_many(first, second)
        self._posterior.refresh_many(first, second)

    def candidates(self) -> int:
        """How many arms may still be the Condorcet winner; 0 when none can be, as in a cycle."""
        scale = self.alpha * ln(self._counts.duels + 1)
        return len(self._bounds.possible_winners(scale))

    def _own_state(self) -> dict[str, Any]:
        return {"reigns": self._reigns.tolist()}

    def _restore(self, own: Mapping[str, Any]) -> None:
        reigns = own["reigns"]
        if (
            not isinstance(reigns, list)
            or len(reigns) != self.n_arms
            or any(type(one) is not int or one < 0 for one in reigns)
        ):
            raise PolicyError("reigns must hold an integer from 0 for each arm.")
        self._reigns = np.array(reigns, dtype=np.int64)

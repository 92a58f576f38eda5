"""Interleaved Filter 1 and 2: a candidate plays all others until it is beaten or has won."""

from __future__ import annotations

from math import sqrt
from typing import Annotated, Final

import numpy as np
from msgspec import Meta

from streamduel.errors import PolicyError
from streamduel.policies.base.parameter import Horizon, Real
from streamduel.policies.base.policy import Policy
from streamduel.policies.base.state import Arm, Count, State
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.logarithm import ln

_FAR: Final = 2**60
"""More duels than any pair can have: the sort key of arms that cannot be chosen."""


class InterleavedFilterState(State):
    """The candidate, its rivals, and the wins and losses of its arm before it became one."""

    candidate: Annotated[int, Meta(ge=-1)]
    rivals: list[Arm]
    passes: Count
    won_before: list[float]
    lost_before: list[float]


class InterleavedFilter1(Policy):
    """Finds the best arm with probability 1 - 1/T if the arms have a total order; needs T.

    One arm is the candidate. It duels with every remaining arm once per pass. After a pass, arms
    that it has beaten with confidence 1 - δ, δ = 1/(T K²), are eliminated; when an arm has beaten
    it with that confidence, the candidate is eliminated instead, and the winner is the next
    candidate, with empty statistics. The last arm is then served alone.

    Where the paper leaves something open: beaten arms are eliminated first, then the candidate is
    examined; of several arms that beat it, the one with the lowest estimate follows it. A pass is
    complete when every remaining arm has duelled once more with the candidate since it became one;
    in a pass, the arms come in an order drawn once.

    Delayed outcomes and unproposed duels count if they are of the candidate and a remaining arm,
    and are observed while it is the candidate. All others are in the counts only.

    It explores first and then exploits, so it is the choice for short experiments with a planned
    end and well-ordered arms; RUCB and RMED have less regret in the long run.

    Draws from the generator: the first candidate; then only ties.

    Args:
        confidence_scale: the radius after n duels is sqrt(confidence_scale ln(1/δ) / n). 1 is the
            paper's; 4, in its journal version, has three to four times the regret.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = InterleavedFilter1(3, seed=7, horizon=1000), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 503)

    Source: Yue, Broder, Kleinberg and Joachims, "The K-armed Dueling Bandits Problem", COLT 2009,
    Algorithm 2; line numbers are its. `confidence_scale=4`: JCSS 78(5), 2012.
    """

    name = "interleaved_filter_1"
    summary = "a candidate plays all others in turn; explores first, then exploits"
    paper = "Yue et al., The K-armed Dueling Bandits Problem, COLT 2009 (IF1)"

    state_type = InterleavedFilterState

    horizon = Horizon()
    confidence_scale = Real(
        symbol="c",
        default=1.0,
        above=0,
        meaning="factor of ln(1/δ) in the confidence radius; 4 in the journal version",
    )

    def _begin(self) -> None:
        # Line 2: ln(1/δ) = ln(T K²), and what n (p - 1/2)² must reach for confidence 1 - δ.
        self._decisive = self.confidence_scale * ln(self.horizon * self.n_arms**2)
        self._in_flight: Integers = np.zeros(self.n_arms, dtype=np.int64)
        self._rivals = np.ones(self.n_arms, dtype=bool)  # line 4: W
        self._candidate = -1  # drawn when the first pair is asked for
        self._passes = 0
        self._won_before: Floats = np.zeros(self.n_arms)
        self._lost_before: Floats = np.zeros(self.n_arms)

    def _choose(self, t: int) -> tuple[int, int]:  # noqa: ARG002 - confidence depends on T alone
        if self._candidate < 0:
            self._promote(self._generator.below(self.n_arms))  # line 3
        while self._rivals.any():  # line 7
            played = self._won() + self._lost()
            fewest = int(played[self._rivals].min())
            if fewest <= self._passes:  # lines 8 and 9: continue this pass
                return self._candidate, self._least_played(played)
            self._passes = fewest
            self._judge(played)
        return self._candidate, self._candidate  # line 21, and Algorithm 1, line 4

    def _choose_ahead(self, t: int, limit: int) -> tuple[Integers, Integers]:
        """The rest of the pass, and the passes after which no arm can be decided."""
        pair, times = super()._choose_ahead(t, limit)
        if self._winner() is not None:
            return pair, times
        played = self._won() + self._lost()
        rivals = self._rivals.nonzero()[0]
        rivals = rivals[np.lexsort((self._priority[rivals], played[rivals]))]
        due = rivals[played[rivals] <= self._passes]
        if len(due) == len(rivals) and (played[rivals] == played[rivals[0]]).all():
            passes = min(self._idle_passes(played[rivals[0]]), limit // len(rivals) + 1)
            due = np.tile(due, passes)[:limit]
            # No arm can be decided at the end of the passes before the last one.
            self._passes = int(played[rivals[0]]) + (len(due) - 1) // len(rivals)
        due = due[:limit]
        return np.stack((np.full(len(due), self._candidate), due), axis=1), np.ones_like(due)

    def _idle_passes(self, played: float) -> int:
        """How many passes end without a decision, for any outcomes, plus one.

        All rivals have the same number n of duels with the candidate. With s wins more on one side
        than on the other, k duels all won by that side make
        n (p - 1/2)² = (s + k)² / (4 (n + k)), which reaches D at
        k = 2D - s + 2 sqrt(D² + D (n - s)).
        """
        decisive = self._decisive
        lead = float(np.abs(self._won() - self._lost())[self._rivals].max())
        enough = 2 * decisive - lead + 2 * sqrt(decisive * decisive + decisive * (played - lead))
        return max(1, int(enough * (1 - 1e-9)))  # rounding is far smaller

    def _won(self) -> Floats:
        """(K,): the candidate's wins over each arm since it became the candidate."""
        won: Floats = self.wins[self._candidate] - self._won_before
        return won

    def _lost(self) -> Floats:
        lost: Floats = self.wins[:, self._candidate] - self._lost_before
        return lost

    def _least_played(self, played: Floats) -> int:
        """The rival with the fewest duels, those in flight included; among equals by priority."""
        order = (played + self._in_flight) * self.n_arms + self._priority
        return int(np.where(self._rivals, order, _FAR).argmin())

    def _judge(self, played: Floats) -> None:
        """Lines 10 to 18, at the end of a pass: every rival has been played."""
        gaps = np.zeros(self.n_arms)
        np.divide(self._won(), played, out=gaps, where=played > 0)
        gaps -= 0.5
        sure = played * (gaps * gaps) >= self._decisive  # 1/2 is outside of the open interval
        self._rivals &= ~(sure & (gaps > 0))  # lines 12 and 13
        victors = self._rivals & sure & (gaps < 0)  # line 15
        if victors.any():
            lowest = victors & (gaps == gaps[victors].min())
            self._prune(gaps)
            self._promote(self._generator.choose_index(lowest))

    def _prune(self, gaps: Floats) -> None:
        """Eliminate arms by the estimates of the beaten candidate; none in IF1."""

    def _promote(self, arm: int) -> None:
        """Lines 16 and 17: a new candidate starts from empty statistics."""
        self._candidate = arm
        self._rivals[arm] = False
        self._passes = 0
        self._won_before = self.wins[arm].copy()
        self._lost_before = self.wins[:, arm].copy()

    def _winner(self) -> int | None:
        return None if self._rivals.any() else self._candidate

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        self._in_flight[second if first == self._candidate else first] = in_flight

    def candidates(self) -> int:
        """How many arms are left, the candidate included, as of the last proposal."""
        return int(self._rivals.sum()) + (self._candidate >= 0)

    def _restored(self) -> None:
        candidate = self._candidate
        fits = candidate < 0 or (
            candidate < self.n_arms
            and not self._rivals[candidate]
            and min(self._won().min(), self._lost().min()) >= 0
        )
        if not fits:
            raise PolicyError(f"a state of policy '{self.name}' does not fit its counts.")


class InterleavedFilter2(InterleavedFilter1):
    """Interleaved Filter 1 with pruning: plays fewer matches, and has the optimal regret bound.

    When the candidate is beaten, every arm that is worse than the candidate by its estimate is
    eliminated with it, confident or not: an arm that lost to the loser hardly beats the winner.
    Under strong stochastic transitivity the winner is better than such an arm with confidence
    1 - δ, which saves the factor log K of IF1. The rest is as in `InterleavedFilter1`.

    >>> import numpy as np
    >>> preferences = np.array([[0.5, 0.7, 0.8], [0.3, 0.5, 0.6], [0.2, 0.4, 0.5]])
    >>> policy, users = InterleavedFilter2(3, seed=3, horizon=1000), np.random.RandomState(7)
    >>> for _ in range(1000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < preferences[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (0, 1, 503)

    Source: as for IF1; Algorithm 3.
    """

    name = "interleaved_filter_2"
    summary = "Interleaved Filter with pruning: fewer matches; explores first, then exploits"
    paper = "Yue et al., The K-armed Dueling Bandits Problem, COLT 2009 (IF2)"

    def _prune(self, gaps: Floats) -> None:
        self._rivals &= ~(gaps > 0)  # lines 16 and 17

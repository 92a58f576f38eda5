"""Copeland PBR: preference-based racing for an arm that beats the most others."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta

from streamduel.errors import PolicyError
from streamduel.policies.base.least_played import EvenPolicy, Pass
from streamduel.policies.base.state import Arm, Count, State
from streamduel.preference.arrays import Booleans, Integers
from streamduel.preference.hoeffding import duels_until_sure, surely_beats
from streamduel.preference.logarithm import ln
from streamduel.preference.winners import score_bounds


class CopelandPBRState(State):
    """The active pairs, their pass, the number of the round, and the arm found."""

    turns: Pass
    active: list[Count]  # i K + j for pairs i < j
    round: Annotated[int, Meta(ge=1)]
    best: Arm | None


class CopelandPBR(EvenPolicy):
    """Races all pairs until an arm surely beats the most others, then serves it; needs T.

    In each round every active pair duels once. After the round, the intervals p̂_ij ± c(n_ij), c(n)
    = sqrt(ln(2 K² n_max / δ) / 2n), give the sure winners, and so how many arms an arm beats at
    least and at most. Arm i is surely better than j when it beats more than j can. An arm is
    settled when another one is surely better, or when it is surely better than all others. A pair
    is closed once it is decided, or both of its arms are settled. With no pair left, the arm that
    surely beats the most is served. It is right with probability 1 - δ, needs no arm that beats all
    others, and explores O(K² ln(KT)) duels; CCB and SCB explore less. It is included for
    comparison.

    The paper's algorithm selects the k best arms and ends; it has no regret. It is followed for k =
    1, with n_max = T and δ = 1/T, so that the sampling ends with a sure result or with the horizon.
    Where the paper leaves something open: one duel serves p̂_ij and p̂_ji; the pairs of a round
    come in random order; "K - k arms surely worse" and "k surely better" mean at least as many
    (with the printed "more" the best arm could not be selected for k = 1); among arms that surely
    beat equally many, one is drawn once.

    Rounds are counted by n_ij: round r is complete when every active pair has duelled r times. So
    delayed and unproposed duels count towards the next rounds; conclusions are drawn when the next
    pair is asked for after a round is complete. A closed pair is not opened again; its further
    duels may still change the sure winners.

    Draws from the generator: at the beginning of a round, one word for each active pair if there
    are several; the arm to be served, if several are equal.

    >>> import numpy as np
    >>> cycle = np.array([[0.5, 0.8, 0.2, 0.8], [0.2, 0.5, 0.8, 0.8], [0.8, 0.2, 0.5, 0.2],
    ...                   [0.2, 0.2, 0.8, 0.5]])  # 0 and 1 beat two others each
    >>> policy, users = CopelandPBR(n_arms=4, seed=7, horizon=2000), np.random.RandomState(7)
    >>> for _ in range(2000):
    ...     first, second = policy.propose()[0]
    ...     policy.observe(first, second, int(users.random_sample() < cycle[first, second]))
    >>> policy.champion(), policy.candidates(), int(policy.wins.sum())
    (1, 1, 624)

    Source: Busa-Fekete, Szörényi, Weng, Cheng and Hüllermeier, "Top-k Selection based on Adaptive
    Sampling of Noisy Preferences", ICML 2013, Algorithm 1 with the sampling strategy for Copeland's
    ranking; after accounts of it by others.
    """

    name = "copeland_pbr"
    summary = "races all pairs until an arm surely beats the most others; then serves it"
    paper = "Busa-Fekete et al., Top-k Selection based on Adaptive Sampling, ICML 2013"
    seeks = "copeland"

    state_type = CopelandPBRState

    def _begin(self) -> None:
        super()._begin()
        # ln(2 K² n_max / δ), n_max = 1 / δ = T; as a sum, since the product is large.
        self._width = ln(2 * self.n_arms**2) + 2 * ln(self.horizon)
        self._active = np.triu(self._turns.pairs).reshape(-1)  # by i K + j, for pairs i < j
        self._round = 1
        self._best: int | None = None
        self._any_in_flight = False

    def _choose(self, t: int) -> tuple[int, int]:  # noqa: ARG002 - radii depend on T alone
        while self._best is None:
            first, second = self._turns.next()
            wins = self._counts.wins
            played = int(wins.item(first, second) + wins.item(second, first))
            if played < self._round or self._any_in_flight:
                return first, second
            # No active pair has duelled less often: the round is complete, and so are further ones
            # of unproposed duels.
            self._round = played + 1
            if self._may_conclude():
                self._conclude()
        return self._best, self._best

    def _choose_ahead(self, t: int, limit: int) -> tuple[Integers, Integers]:
        """Round after round, up to the first duel that could decide a pair, and its round's end."""
        pair = self._choose(t)
        if self._best is not None:
            return np.array([pair], dtype=np.int64), np.array([limit], dtype=np.int64)
        active = self._turns.pairs
        if not np.array_equal(self._remaining(surely_beats(self.wins, self._width)), active):
            # The conclusions of this round close a pair.
            limit = min(limit, int((active & (self._counts.plays < self._round)).sum()) // 2)
        pairs = self._turns.ahead(duels_until_sure(self.wins, self._width), limit)
        # The rounds before that of the last duel end without conclusions.
        again = int((pairs == pairs[-1]).all(axis=1).sum())
        self._round = int(self._counts.plays[tuple(pairs[-1])]) + again
        return pairs, np.ones(len(pairs), dtype=np.int64)

    def _conclude(self) -> None:
        """Close pairs; if none is left, find the winner."""
        beats = surely_beats(self.wins, self._width)
        active = self._remaining(beats)
        self._turns.keep(active)
        self._active = np.triu(active, k=1).reshape(-1)
        if not active.any():
            least, _ = score_bounds(beats)
            self._best = self._generator.choose_index(least == least.max())

    def _remaining(self, beats: Booleans) -> Booleans:
        """The active pairs that are undecided and have an arm that is not settled."""
        least, most = score_bounds(beats)
        better = least[:, np.newaxis] > most  # [i, j]: i is surely better than j
        settled = better.any(axis=0) | (np.count_nonzero(better, axis=1) == self.n_arms - 1)
        remaining: Booleans = self._turns.pairs & ~(
            beats | beats.T | np.logical_and.outer(settled, settled)
        )
        return remaining

    def _winner(self) -> int | None:
        return self._best

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        super()._mark_in_flight(first, second, in_flight)
        self._any_in_flight = in_flight > 0

    def candidates(self) -> int:
        """How many arms have no surely better one; 1 when the winner is found."""
        if self._best is not None:
            return 1
        least, most = score_bounds(surely_beats(self.wins, self._width))
        return int((most >= least.max()).sum())

    def _restored(self) -> None:
        pairs = self._active.reshape(self.n_arms, self.n_arms)
        if np.tril(pairs).any():
            raise PolicyError("active must be a list of pairs, i K + j for arms i < j.")
        if self._active.any() != (self._best is None):
            raise PolicyError("best must be an arm if no pair is active, else null.")
        self._turns.keep(pairs)

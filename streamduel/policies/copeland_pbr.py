"""Copeland PBR: preference-based racing for an arm that beats the most others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.least_played import LeastPlayed
from streamduel.policies.base.parameter import Horizon
from streamduel.policies.base.policy import Policy
from streamduel.preference.arrays import Booleans, Integers
from streamduel.preference.intervals import duels_until_sure, is_sure, surely_beats
from streamduel.preference.logarithm import ln


class CopelandPBR(Policy):
    """Races all pairs until it is sure who beats the most arms, then serves that one; needs T.

    In each round every active pair meets once. After it, the intervals p̂_ij ± c(n_ij),
    c(n) = sqrt(ln(2 K² n_max / δ) / 2n), say who surely beats whom, and so how many arms an arm
    beats at least and at most. Arm i is surely better than j when it beats more than j can. An arm
    is settled when another one is surely better, or when it is surely better than all others. A
    pair is not played any more once it is decided, or both of its arms are settled. With no pair
    left, the arm that surely beats the most is served. It is right with probability 1 - δ, needs no
    arm that beats all others, and explores O(K² ln(KT)) duels; CCB and SCB explore less. It is here
    to be compared with.

    The paper's algorithm selects the k best arms and ends; it has no regret. It is followed for
    k = 1, with n_max = T and δ = 1/T, so that the sampling ends by being sure or with the horizon.
    Where the paper leaves something open: one duel serves p̂_ij and p̂_ji; the pairs of a round come
    in random order; "K - k arms surely worse" and "k surely better" mean at least as many (with the
    printed "more" the best arm could not be selected for k = 1); among arms that surely beat
    equally many, one is drawn once.

    Rounds are counted by n_ij: round r is complete when every active pair has met r times. So duels
    that come late, or unasked, count towards the rounds to come; conclusions are drawn when, a
    round complete, the next pair is asked for. A pair that has left does not come back; more duels
    of it may still change who surely beats whom.

    Draws from the generator: at the beginning of a round, one word for each active pair if there
    are several; the arm to be served, if it is not the only one.

    Args:
        n_arms: K, at least 2.
        seed: of the policy's generator.
        horizon: T, at least K.

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
    summary = "races all pairs until it is sure who beats the most arms; then serves that one"
    paper = "Busa-Fekete et al., Top-k Selection based on Adaptive Sampling, ICML 2013"
    seeks = "copeland"

    horizon = Horizon()

    def _begin(self) -> None:
        # ln(2 K² n_max / δ), n_max = 1 / δ = T; as a sum, since the product is large.
        self._width = ln(2 * self.n_arms**2) + 2 * ln(self.horizon)
        self._turns = LeastPlayed(self._counts, self._generator)
        self._round = 1
        self._best: int | None = None
        self._waiting = False  # whether duels are in flight
        # Pairs with duels since the last conclusions; None: perhaps all.
        self._news: set[tuple[int, int]] | None = None

    def _choose(self, t: int) -> tuple[int, int]:  # noqa: ARG002 - radii depend on T alone
        while self._best is None:
            first, second = self._turns.next()
            wins = self._counts.wins
            played = int(wins.item(first, second) + wins.item(second, first))
            if played < self._round or self._waiting:
                return first, second
            # No active pair has met less often: the round is complete, and so are the next ones
            # that nobody has asked for.
            self._round = played + 1
            if self._news is None or any(self._is_sure(*pair) for pair in self._news):
                self._conclude()
            self._news = set()
        return self._best, self._best

    def _foresee(self, t: int, most: int) -> tuple[Integers, Integers]:
        """Round after round, up to the first duel that could decide a pair, and its round's end."""
        if t > self.horizon:
            return super()._foresee(t, most)
        pair = self._choose(t)
        if self._best is not None:
            return np.array([pair], dtype=np.int64), np.array([most], dtype=np.int64)
        most = min(most, self.horizon - t + 1)
        active = self._turns.pairs
        if not np.array_equal(self._remaining(surely_beats(self.wins, self._width)), active):
            # This round's conclusions will close a pair already.
            most = min(most, int((active & (self._counts.plays < self._round)).sum()) // 2)
        pairs = self._turns.foresee(duels_until_sure(self.wins, self._width), most)
        # The rounds that end on the way end without conclusions; in this one the last duel is.
        again = int((pairs == pairs[-1]).all(axis=1).sum())
        self._round = int(self._counts.plays[tuple(pairs[-1])]) + again
        return pairs, np.ones(len(pairs), dtype=np.int64)

    def _is_sure(self, first: int, second: int) -> bool:
        wins = self._counts.wins
        return is_sure(wins.item(first, second), wins.item(second, first), self._width)

    def _conclude(self) -> None:
        """Find out which pairs stay active; if none does, who has won."""
        beats = surely_beats(self.wins, self._width)
        active = self._remaining(beats)
        self._turns.keep(active)
        if not active.any():
            least, _ = _scores(beats)
            best = (least == least.max()).nonzero()[0]
            self._best = best.item(self._generator.below(len(best)))

    def _remaining(self, beats: Booleans) -> Booleans:
        """The active pairs that are undecided, and of which an arm is not settled."""
        least, most = _scores(beats)
        better = least[:, np.newaxis] > most  # [i, j]: i is surely better than j
        settled = better.any(axis=0) | (np.count_nonzero(better, axis=1) == self.n_arms - 1)
        remaining: Booleans = self._turns.pairs & ~(
            beats | beats.T | np.logical_and.outer(settled, settled)
        )
        return remaining

    def _winner(self) -> int | None:
        return self._best

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        self._waiting = in_flight > 0
        self._turns.mark_in_flight(first, second, in_flight)

    def _take_up(self, first: int, second: int) -> None:
        if self._news is not None:
            self._news.add((first, second))

    def _take_up_many(self, first: Integers, second: Integers) -> None:  # noqa: ARG002
        self._news = None

    def candidates(self) -> int:
        """How many arms no other one is surely better than; 1 when the winner is found."""
        if self._best is not None:
            return 1
        least, most = _scores(surely_beats(self.wins, self._width))
        return int((most >= least.max()).sum())

    def _own_state(self) -> dict[str, Any]:
        return {
            **self._turns.state_dict(),
            "active": np.triu(self._turns.pairs).reshape(-1).nonzero()[0].tolist(),
            "round": self._round,
            "best": self._best,
        }

    def _restore(self, own: Mapping[str, Any]) -> None:
        self._turns.restore(own)
        active, round_, best = own["active"], own["round"], own["best"]
        known = np.triu(np.ones((self.n_arms, self.n_arms)), k=1).reshape(-1).nonzero()[0].tolist()
        if (
            not isinstance(active, list)
            or any(type(slot) is not int for slot in active)
            or active != sorted(set(active).intersection(known))
        ):
            raise PolicyError("active must be a list of pairs, i K + j for arms i < j, ascending.")
        is_arm = type(best) is int and 0 <= best < self.n_arms
        if not (best is None if active else is_arm):
            raise PolicyError(
                f"best must be an arm if no pair is active, else null (found {best!r})."
            )
        if type(round_) is not int or round_ < 1:
            raise PolicyError(f"round must be an integer from 1 (found {round_!r}).")
        pairs = np.zeros((self.n_arms, self.n_arms), dtype=np.bool_)
        pairs.reshape(-1)[active] = True
        self._turns.keep(pairs | pairs.T)
        self._round, self._best = round_, best


def _scores(beats: Booleans) -> tuple[Integers, Integers]:
    """How many arms each arm beats at least, and at most, when [i, j] says that i surely does."""
    beaten: Integers = np.count_nonzero(beats, axis=1)
    return beaten, len(beats) - 1 - np.count_nonzero(beats, axis=0)

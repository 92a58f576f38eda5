"""Policies that duel in rounds: growing batches, and arms that are eliminated between them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Any, ClassVar, Final

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.batch import Batch, Targets
from streamduel.policies.base.parameter import Horizon, Whole
from streamduel.policies.base.policy import Policy
from streamduel.policies.base.state import Arm, Count, State
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.counts import MAX_DUELS
from streamduel.preference.logarithm import ln
from streamduel.preference.power import power

_ABOVE_ONE: Final = 1 + Fraction(1, 10**40)
"""A power that is an integer must not be rounded down to the one below it."""


def _default_rounds(values: Mapping[str, Any]) -> int:
    """⌊ln T⌋, or 1 for T below e."""
    return max(1, int(ln(values["horizon"])))


class BatchedState(State):
    """The arms that are not eliminated, the number of the round, and its batch."""

    active: list[Arm]
    round: Count
    batch: Targets


class BatchedPolicy(Policy):
    """Plans T duels in at most B rounds, and adapts only between them.

    A round is one `Batch`: certain pairs of arms, mostly each q_r = ⌊q^r⌋ times, q = T^(1/B). When
    it is complete, beaten arms are eliminated, and the others play the next round. The last round
    alone would take T duels, so B rounds are never exceeded.

    The first round compares all pairs. A complete round ends, and the next begins, when the next
    pair is asked for: with the counts at that time, including late and unproposed duels. If all
    arms were beaten, none is eliminated.

    A policy of this family says which arms are beaten at the end of a round (`_end_round`), and
    how often the next round compares each pair (`_begin_round`).
    """

    state_type: ClassVar[type[State]] = BatchedState

    horizon = Horizon()
    rounds = Whole(
        symbol="B",
        at_least=1,
        derived=("⌊ln T⌋", _default_rounds),
        meaning="number of rounds; the batches grow by the factor T^(1/B)",
        reason="a batched policy needs at least one round",
    )

    def _begin(self) -> None:
        self._active: Booleans = np.ones(self.n_arms, dtype=np.bool_)
        self._last: int | None = None  # the only arm left
        self._round = 1
        self._batch = self._track(Batch(self._counts))
        self._batch.open(np.full((self.n_arms, self.n_arms), self._repeats(1)))

    def _restored(self) -> None:
        if not self._active.any():
            raise PolicyError("active must hold at least one arm.")
        if not 1 <= self._round <= self.rounds:
            raise PolicyError(f"round must be from 1 to {self.rounds} (found {self._round}).")
        self._last = self._only_arm()

    @abstractmethod
    def _end_round(self) -> Booleans:
        """(K,): which arms are beaten, by the counts at the end of the round."""

    @abstractmethod
    def _begin_round(self) -> Integers:
        """(K, K), symmetric: how often the round that begins compares each pair."""

    def _active_pairs(self) -> Booleans:
        """(K, K), symmetric: the pairs of active arms, with the diagonal."""
        return np.logical_and.outer(self._active, self._active)

    def _repeats(self, round_: int) -> int:
        """q_r: how often a round compares each of its pairs."""
        grown = Fraction(power(self.horizon, Fraction(round_, self.rounds)))
        return min(int(grown * _ABOVE_ONE), MAX_DUELS)

    def _advance(self) -> int | None:
        """End the round if it is complete, and begin the next; returns the only arm left."""
        if self._last is None and not self._batch.lacking:
            remaining = self._active & ~self._end_round()
            if remaining.any():
                self._active = remaining
                self._last = self._only_arm()
            if self._last is None and self._round == self.rounds:
                self._last = self._best_active()  # rounds that were closed early are rounds, too
            if self._last is None:
                self._round += 1
                self._batch.open(self._begin_round())
        return self._last

    def _best_active(self) -> int:
        """The active arm that beats the most; all others are eliminated."""
        best = int(np.where(self._active, self._rank(), -1).argmax())
        self._active[:] = False
        self._active[best] = True
        return best

    def _only_arm(self) -> int | None:
        arms = self._active.nonzero()[0]
        return arms.item() if len(arms) == 1 else None

    def _choose(self, t: int) -> tuple[int, int]:  # noqa: ARG002 - rounds depend on T alone
        arm = self._advance()
        return self._batch.draw(self._generator) if arm is None else (arm, arm)

    def _choose_ahead(self, t: int, limit: int) -> tuple[Integers, Integers]:
        """The duels that the open batch lacks."""
        if self._advance() is not None:
            return super()._choose_ahead(t, limit)
        pairs = self._batch.draw_many(self._generator, limit)
        return pairs, np.ones(len(pairs), dtype=np.int64)

    def remaining(self) -> Integers:
        """(K, K), symmetric: how many duels of each pair the open batch lacks."""
        return self._batch.remaining()

    def open_batch(self) -> None:
        """End a complete round and begin the next one; to be called before `remaining`."""
        if self._counts.duels < self.horizon:
            self._advance()

    def lacking(self, fill: float = 1.0) -> int:
        """How many duels the open batch lacks until each pair has this share of its quota.

        Args:
            fill: above 0, up to 1.
        """
        if fill == 1.0:
            return self._batch.lacking
        share = Fraction(str(fill))  # 0.07 of 100 are 7, not one more
        spare = [
            [quota - ceil(share * quota) for quota in row] for row in self._open_quotas().tolist()
        ]
        return int(np.maximum(self._batch.remaining() - spare, 0).sum()) // 2

    def _open_quotas(self) -> Integers:
        """(K, K): the quotas of the open batch; (1, 1): that of all its pairs, q_r."""
        return np.array([[self._repeats(self._round)]])

    def close_batch(self) -> None:
        """Close the open batch as it is; `open_batch` then ends its round."""
        self._batch.close()

    @property
    def round(self) -> int:
        """The number of the open round, from 1 to B; that of the last one if one arm is left."""
        return self._round

    def candidates(self) -> int:
        """How many arms no round has eliminated."""
        return int(self._active.sum())

    def _winner(self) -> int | None:
        return self._last


def estimates(wins: Floats) -> tuple[Floats, Floats]:
    """N_ij, the number of duels of each pair, and p̂_ij; 1/2 for pairs without duels.

    Args:
        wins: (K, K).

    >>> played, means = estimates(np.array([[0.0, 3.0], [1.0, 0.0]]))
    >>> played.tolist(), means.tolist()
    ([[0.0, 4.0], [4.0, 0.0]], [[0.5, 0.75], [0.25, 0.5]])
    """
    played = wins + wins.T
    means = np.full(wins.shape, 0.5)
    np.divide(wins, played, out=means, where=played > 0)
    return played, means

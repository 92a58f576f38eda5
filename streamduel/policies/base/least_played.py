"""Policies that compare all pairs evenly, and the least played pair."""

from __future__ import annotations

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.duels import Duels
from streamduel.policies.base.generator import Generator
from streamduel.policies.base.parameter import Horizon
from streamduel.policies.base.policy import Policy
from streamduel.policies.base.state import Count, State
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.counts import FromCounts, WinCounts
from streamduel.preference.hoeffding import is_sure


class Pass(State):
    """The state of `LeastPlayed`."""

    order: list[Count]
    level: Count


class LeastPlayed(FromCounts):
    """The least played of the open pairs, ties uniformly at random: pass after pass.

    A pass goes through the pairs that have been played least, all equally often, in an order that
    is drawn when it begins. That is as random as a draw among the ties at every duel, but costs one
    sort per pass, and many passes can be drawn together.

    A pair that is closed, or played without having been proposed, drops out of the pass. A duel in
    flight counts as played; a pass begun because of that is discarded when none is in flight.

    Args:
        counts: how often each pair has been played.
        generator: draws one word for each pair of a pass, none if there is only one.

    Attributes:
        pairs: (K, K), symmetric, read-only: which pairs are open.

    >>> counts = WinCounts(3)
    >>> turns = LeastPlayed(counts, Generator(seed=7))
    >>> turns.ahead(np.full((3, 3), 100), limit=7).tolist()
    [[0, 1], [1, 2], [0, 2], [0, 1], [0, 2], [1, 2], [0, 1]]
    >>> counts.add_one(0, 1, first_wins=1, count=9)
    >>> turns.keep(np.array([[False, True, True], [True, False, False], [True, False, False]]))
    >>> turns.next()
    (0, 2)
    """

    pairs: Booleans
    _slots: Integers  # of open pairs, ascending; a pair i < j has the slot i K + j
    _open: list[bool]  # by slot

    def __init__(self, counts: WinCounts, generator: Generator) -> None:
        self._wins = counts.wins
        self._n_arms = len(counts.wins)
        self._generator = generator
        # The pass: its pairs in order, how often each had been played when it began, and the place
        # before which no pair is due.
        self._order: Integers = np.empty(0, dtype=np.int64)
        self._level = 0
        self._next = 0
        self._in_flight: dict[int, int] = {}  # by slot
        self._resumed: tuple[Integers, int, int] | None = None  # the pass before those in flight
        self.keep(np.ones((self._n_arms, self._n_arms), dtype=np.bool_))

    def keep(self, pairs: Booleans) -> None:
        """Set which pairs are open.

        Args:
            pairs: (K, K), symmetric. The diagonal is ignored.
        """
        upper = np.triu(pairs, k=1)
        self.pairs = upper | upper.T
        self._slots = upper.reshape(-1).nonzero()[0]
        self._open = upper.reshape(-1).tolist()

    def next(self) -> tuple[int, int]:
        """The next pair; at least one must be open."""
        while True:
            for place in range(self._next, len(self._order)):
                slot = self._order.item(place)
                if self._open[slot] and self._played(slot) <= self._level:
                    self._next = place
                    return divmod(slot, self._n_arms)
            self._begin_pass()

    def ahead(self, decisive: Integers, limit: int) -> Integers:
        """The next pairs, as if each had been played before the next, while no pair can close.

        Args:
            decisive: (K, K), symmetric: the number of the first duel of a pair, from 1, after which
                the open pairs may change. The result ends with such a duel.
            limit: the largest number of pairs, at least 1.

        Returns:
            (m, 2) arms, at least one pair.
        """
        rest = self._rest()
        if not len(rest):
            self._begin_pass()
            rest = self._order
        decisive = decisive.reshape(-1)
        ends = (decisive[rest] <= 1).nonzero()[0]
        if len(ends):
            rest = rest[: ends[0] + 1]
        elif limit > len(rest):
            rest = np.concatenate((rest, self._passes(decisive, limit - len(rest))))
        return np.stack(np.divmod(rest[:limit], self._n_arms), axis=1)

    def _passes(self, decisive: Integers, limit: int) -> Integers:
        """Whole passes after this one, the last of them up to the first decisive duel."""
        played = self._plays()
        joined = played <= self._level + 1  # equally often after this pass
        slots, due = self._slots[joined], played[joined] <= self._level
        until = np.maximum(decisive[slots] - due, 1)  # the number of the decisive pass of each pair
        soonest = int(until.min())
        passes = min(soonest, -(-limit // len(slots)))
        if not joined.all():  # others join later
            passes = min(passes, int(played[~joined].min()) - self._level - 1)
        orders = self._drawn(slots, passes)
        self._order, self._level, self._next = orders[-1], self._level + passes, 0
        length = orders.size
        if passes == soonest:
            ends = np.zeros(len(self._open), dtype=np.bool_)
            ends[slots[until == soonest]] = True
            length += int(ends[self._order].argmax()) + 1 - len(slots)
        return orders.reshape(-1)[:length]

    def mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        """Note how many duels of a pair are in flight; 0 clears those of all pairs."""
        if first == second:
            return
        if in_flight:
            self._resumed = self._resumed or (self._order, self._level, self._next)
            self._in_flight[self._slot(first, second)] = in_flight
        elif self._resumed is not None:
            self._order, self._level, self._next = self._resumed
            self._resumed = None
            self._in_flight.clear()

    def save(self) -> dict[str, object]:
        """The pass, as JSON can hold it; the owner keeps the open pairs."""
        return {"order": self._order.tolist(), "level": self._level}

    def restore(self, saved: Pass) -> None:
        """Set what `save` returned.

        Raises:
            PolicyError: it is not a pass of pairs of K arms.
        """
        first, second = np.triu_indices(self._n_arms, k=1)
        slots = set((first * self._n_arms + second).tolist())
        if len(slots.intersection(saved.order)) != len(saved.order):
            raise PolicyError("the order of a pass must be a list of different pairs.")
        self._order, self._level = np.array(saved.order, dtype=np.int64), saved.level
        self._next = 0

    def _begin_pass(self) -> None:
        played = self._plays()
        if self._in_flight:
            played += [self._in_flight.get(slot, 0) for slot in self._slots.tolist()]
        self._level = int(played.min())
        self._order = self._drawn(self._slots[played == self._level], passes=1)[0]
        self._next = 0

    def _drawn(self, slots: Integers, passes: int) -> Integers:
        """(passes, m): the slots in random orders, independent of each other."""
        if len(slots) == 1:
            return np.full((passes, 1), slots[0])
        # By sorting random words. Two words are equal, which favours the lower slot, with a
        # probability below m² / 2**65 per pass.
        words = self._generator.words(passes * len(slots)).reshape(passes, len(slots))
        order: Integers = slots[words.argsort(axis=1, kind="stable")]
        return order

    def _rest(self) -> Integers:
        """The pairs of the pass that are still due, in order."""
        order = self._order[self._next :]
        first, second = np.divmod(order, self._n_arms)
        due = self._wins[first, second] + self._wins[second, first] <= self._level
        return order[due & self.pairs[first, second]]

    def _plays(self) -> Floats:
        """How often each open pair has been played."""
        first, second = np.divmod(self._slots, self._n_arms)
        played: Floats = self._wins[first, second] + self._wins[second, first]
        return played

    def _played(self, slot: int) -> float:
        first, second = divmod(slot, self._n_arms)
        played = self._wins.item(first, second) + self._wins.item(second, first)
        return played + self._in_flight.get(slot, 0)

    def _slot(self, first: int, second: int) -> int:
        return first * self._n_arms + second if first < second else second * self._n_arms + first


class EvenPolicy(Policy):
    """Plans T duels, and compares all open pairs evenly until their better arms are sure.

    A policy of this family closes pairs, and sets `_width` of `surely_beats` in `_begin`.
    """

    horizon = Horizon()
    _width: float

    def _begin(self) -> None:
        self._turns = LeastPlayed(self._counts, self._generator)
        # Pairs with duels since the last conclusions; None: possibly all.
        self._changed: set[tuple[int, int]] | None = None

    def _may_conclude(self) -> bool:
        """Whether the duels since the last call may have decided a pair."""
        changed, self._changed = self._changed, set()
        wins, width = self._counts.wins, self._width
        return changed is None or any(
            is_sure(wins.item(i, j), wins.item(j, i), width) for i, j in changed
        )

    def _mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        self._turns.mark_in_flight(first, second, in_flight)

    def _learned(self, first: int, second: int, first_wins: float, count: int) -> None:  # noqa: ARG002
        if self._changed is not None:
            self._changed.add((first, second))

    def _learned_many(self, duels: Duels) -> None:  # noqa: ARG002
        self._changed = None

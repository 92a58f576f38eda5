"""Which pair is next, for policies that always compare the pair they have compared least."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.counts import WinCounts


class LeastPlayed:
    """The least played of the open pairs, ties uniformly at random: pass after pass.

    A pass goes through the pairs that have been played least, all equally often, in an order that
    is drawn when it begins. That is as random as a fresh draw among the ties at every duel, but
    costs one sorting per pass, and many passes can be drawn at once.

    A pair that is closed, or played by somebody else's wish, drops out of the pass. A duel in
    flight counts as played; a pass begun because of that is forgotten when none is in flight.

    Args:
        counts: how often each pair has been played.
        generator: gives one word for each pair of a pass, none if there is only one.

    Attributes:
        pairs: (K, K), symmetric: which are open; not to be written to.

    >>> counts = WinCounts(3)
    >>> turns = LeastPlayed(counts, Generator(seed=7))
    >>> turns.foresee(np.full((3, 3), 100), most=7).tolist()
    [[0, 1], [1, 2], [0, 2], [0, 1], [0, 2], [1, 2], [0, 1]]
    >>> counts.add_one(0, 1, first_wins=1, count=9)
    >>> turns.keep(np.array([[False, True, True], [True, False, False], [True, False, False]]))
    >>> turns.next()
    (0, 2)
    """

    __slots__ = (
        "_generator",
        "_in_flight",
        "_level",
        "_n_arms",
        "_next",
        "_open",
        "_order",
        "_resumed",
        "_slots",
        "_wins",
        "pairs",
    )

    pairs: Booleans
    _slots: Integers  # the open ones, ascending; a pair i < j has the slot i K + j
    _open: list[bool]  # by slot

    def __init__(self, counts: WinCounts, generator: Generator) -> None:
        self._wins = counts.wins
        self._n_arms = len(counts.wins)
        self._generator = generator
        # The pass: its pairs in their order, how often each had been played when it began, and
        # the place before which none is due any more.
        self._order: Integers = np.empty(0, dtype=np.int64)
        self._level = 0
        self._next = 0
        self._in_flight: dict[int, int] = {}  # by slot
        self._resumed: tuple[Integers, int, int] | None = None  # the pass, without those in flight
        self.keep(np.ones((self._n_arms, self._n_arms), dtype=np.bool_))

    def keep(self, pairs: Booleans) -> None:
        """Say which pairs are open from now on.

        Args:
            pairs: (K, K), symmetric; true for those that are. The diagonal is ignored.
        """
        upper = np.triu(pairs, k=1)
        self.pairs = upper | upper.T
        self._slots = upper.reshape(-1).nonzero()[0]
        self._open = upper.reshape(-1).tolist()

    def next(self) -> tuple[int, int]:
        """The pair whose turn it is; at least one must be open."""
        while True:
            for place in range(self._next, len(self._order)):
                slot = self._order.item(place)
                if self._open[slot] and self._played(slot) <= self._level:
                    self._next = place
                    return divmod(slot, self._n_arms)
            self._begin_pass()

    def foresee(self, fewest: Integers, most: int) -> Integers:
        """The next pairs, as if each had been played before the next, as far as can be known.

        Args:
            fewest: (K, K), symmetric: with this duel of a pair from now, the first being 1, the
                open pairs may change at the earliest. What is foreseen ends with such a duel.
            most: as many at most, at least 1.

        Returns:
            (m, 2) arms, at least one pair.
        """
        rest = self._rest()
        if not len(rest):
            self._begin_pass()
            rest = self._order
        fewest = fewest.reshape(-1)
        decisive = (fewest[rest] <= 1).nonzero()[0]
        if len(decisive):
            rest = rest[: decisive[0] + 1]
        elif most > len(rest):
            rest = np.concatenate((rest, self._passes(fewest, most - len(rest))))
        return np.stack(np.divmod(rest[:most], self._n_arms), axis=1)

    def _passes(self, fewest: Integers, most: int) -> Integers:
        """Whole passes after this one, the last of them up to the first decisive duel."""
        played = self._plays()
        joined = played <= self._level + 1  # those who will have been played equally often then
        slots, due = self._slots[joined], played[joined] <= self._level
        until = np.maximum(fewest[slots] - due, 1)  # the number of the pass where it is decisive
        soonest = int(until.min())
        passes = min(soonest, -(-most // len(slots)))
        if not joined.all():  # others join later
            passes = min(passes, int(played[~joined].min()) - self._level - 1)
        orders = self._drawn(slots, passes)
        self._order, self._level, self._next = orders[-1], self._level + passes, 0
        length = orders.size
        if passes == soonest:
            decisive = np.isin(self._order, slots[until == soonest])
            length += int(decisive.argmax()) + 1 - len(slots)
        return orders.reshape(-1)[:length]

    def mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        """Take note of how many duels of a pair are in flight; 0 clears those of all pairs."""
        if first == second:
            return
        if in_flight:
            self._resumed = self._resumed or (self._order, self._level, self._next)
            self._in_flight[self._slot(first, second)] = in_flight
        elif self._resumed is not None:
            self._order, self._level, self._next = self._resumed
            self._resumed = None
            self._in_flight.clear()

    def state_dict(self) -> dict[str, Any]:
        """The pass, as JSON can hold it; the open pairs are for the owner to keep."""
        return {"order": self._order.tolist(), "level": self._level}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state_dict` gave.

        Raises:
            PolicyError: it is no pass of pairs of so many arms.
        """
        order, level = state["order"], state["level"]
        slots = np.triu_indices(self._n_arms, k=1)
        known = set((slots[0] * self._n_arms + slots[1]).tolist())
        if (
            not isinstance(order, list)
            or any(type(slot) is not int for slot in order)
            or len(known.intersection(order)) != len(order)
            or type(level) is not int
            or level < 0
        ):
            raise PolicyError("a pass must be a list of different pairs, and its level from 0.")
        self._order, self._level, self._next = np.array(order, dtype=np.int64), level, 0

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
        # By sorting random words. That two words are equal, and the lower slot comes first, has
        # a probability below m² / 2**65 per pass.
        words = self._generator.words(passes * len(slots)).reshape(passes, len(slots))
        order: Integers = slots[words.argsort(axis=1, kind="stable")]
        return order

    def _rest(self) -> Integers:
        """What is still due of the pass, in its order."""
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

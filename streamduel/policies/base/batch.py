"""An open batch: how many duels of each pair are still wanted, and a random order of them."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamduel.errors import PolicyError
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Integers
from streamduel.preference.counts import MAX_DUELS, WinCounts

_LARGEST: Final = 2**62
"""No batch is larger, so that its sums fit into 64 bits; no policy counts as many duels."""


class Batch:
    """The pairs that a round compares, and how often.

    A batch is opened with a quota for each pair. From then on every duel of a pair counts towards
    its quota, in whichever order duels come, whether they were proposed by this batch, by an
    earlier one or by nobody; what a pair lacks follows from the counts alone. Duels beyond a quota
    do not stand in for those of another pair. The batch is complete when no pair lacks a duel.

    The order is that of draws without replacement: a pair is drawn in proportion to the duels that
    it still lacks. So a batch that is cut off when the time is up has favoured no pair.

    A duel in flight is not drawn again. When all that is lacking is in flight, the draws begin
    anew with what is lacking: should some of those duels be lost, it is these pairs that the batch
    still waits for. Pairs that have their quota are not drawn.

    The weights of the pairs stand in a Fenwick tree, so a draw takes log2 K² steps and so does a
    duel that is seen; all pairs are gone through only when a batch is opened, or many duels have
    been counted at once.

    Args:
        counts: the duels seen. Whoever adds to them calls `refresh` or `refresh_all`.

    >>> counts = WinCounts(3)
    >>> batch = Batch(counts)
    >>> batch.open(np.full((3, 3), 2))
    >>> counts.add_one(0, 1, first_wins=1, count=5)
    >>> batch.refresh(0, 1)
    >>> batch.lacking, batch.remaining().tolist()
    (4, [[0, 0, 2], [0, 0, 2], [2, 2, 0]])
    >>> batch.draw_many(Generator(seed=7), most=10).tolist()
    [[1, 2], [1, 2], [0, 2], [0, 2]]

    Source: P. M. Fenwick, "A new data structure for cumulative frequency tables", Software:
    Practice and Experience 24(3), 1994.
    """

    __slots__ = ("_lacks", "_n_arms", "_stale", "_taken", "_targets", "_total", "_tree", "_wins")

    # By slot, and of all slots: what `refresh` keeps up to date, unless it is stale.
    _lacks: list[int]
    _total: int
    _tree: _Tree
    _stale: bool

    def __init__(self, counts: WinCounts) -> None:
        self._wins = counts.wins
        self._n_arms = len(counts.wins)
        # A pair i < j has the slot i K + j. Its target is the number of duels at which it lacks
        # nothing; a slot of no pair has the target 0, which was reached before.
        self._targets: Integers = np.zeros((self._n_arms, self._n_arms), dtype=np.int64)
        self._taken: dict[int, int] = {}  # by slot: duels in flight, since all were drawn last
        self._count_all()

    def open(self, quotas: Integers) -> None:
        """Begin a batch; what an earlier one lacked is forgotten.

        Args:
            quotas: (K, K), symmetric: how many duels of each pair, from now on. The diagonal is
                ignored.
        """
        highest = min(MAX_DUELS, _LARGEST // self._n_arms**2)
        self._targets = np.triu(np.minimum(quotas, highest), k=1)
        played = (self._wins + self._wins.T).astype(np.int64)
        np.add(self._targets, played, out=self._targets, where=self._targets > 0)
        self._stale = True

    def close(self) -> None:
        """End the batch early: from now on no pair lacks anything."""
        self._targets[:] = 0
        self._stale = True

    @property
    def lacking(self) -> int:
        """How many duels all pairs together lack; 0 when the batch is complete."""
        if self._stale:
            self._count_all()
        return self._total

    def remaining(self) -> Integers:
        """(K, K), symmetric, a new array: how many duels each pair lacks."""
        lacks = self._lacks_by_slot().reshape(self._n_arms, self._n_arms)
        return lacks + lacks.T

    def draw(self, generator: Generator) -> tuple[int, int]:
        """One of the lacking duels at random; the batch must not be complete.

        Args:
            generator: gives one draw below the number of lacking duels not in flight.
        """
        if self._stale:
            self._count_all()
        slot = self._tree.find(generator.below(self._tree.total))
        return divmod(slot, self._n_arms)

    def draw_many(self, generator: Generator, most: int) -> Integers:
        """As many lacking duels at most, as if each had been drawn and seen before the next.

        Args:
            generator: as for `draw`, once for each duel.
            most: from 1; fewer are drawn if no more are lacking.

        Returns:
            (m, 2) arms.
        """
        lacks = self._lacks_by_slot()
        wanted = lacks.nonzero()[0]  # a tree of these alone has fewer levels, and equal sums
        places = _Tree(lacks[wanted]).take_many(generator, most)
        return np.stack(np.divmod(wanted[places], self._n_arms), axis=1)

    def refresh(self, first: int, second: int) -> None:
        """Take up the counts of one pair as they are now."""
        if self._stale or first == second:
            return
        slot = self._slot(first, second)
        had = self._lacks[slot]
        if had:
            played = int(self._wins.item(first, second) + self._wins.item(second, first))
            has = max(0, self._targets.item(slot) - played)
            self._lacks[slot] = has
            self._total += has - had
            self._tree.add(slot, has - had)

    def refresh_all(self) -> None:
        """Take up the counts of all pairs, as they will be when somebody asks."""
        self._stale = True

    def mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        """Take note of one duel of a pair more in flight, or that there is none any more.

        Args:
            first: an arm.
            second: an arm; the same arm is in no batch.
            in_flight: 0 to clear; any other number stands for one more.
        """
        if first == second:
            return
        slot = self._slot(first, second)
        if not in_flight:
            self._tree.add(slot, self._taken.pop(slot, 0))
            return
        self._taken[slot] = self._taken.get(slot, 0) + 1
        self._tree.add(slot, -1)
        if not self._tree.total:
            self._tree = _Tree(np.array(self._lacks))
            self._taken.clear()

    def own_state(self) -> list[list[int]]:
        """The targets, all that the batch knows besides the counts, as JSON can hold them."""
        return [row[place:] for place, row in enumerate(self._targets.tolist())]

    def restore(self, targets: object) -> None:
        """Take up what `own_state` gave.

        Raises:
            PolicyError: these are no targets of so many arms.
        """
        rows = targets if isinstance(targets, list) else []
        n_arms = self._n_arms
        read = np.zeros((n_arms, n_arms), dtype=np.int64)
        lengths = [len(row) if isinstance(row, list) else 0 for row in rows]
        flat = [target for row in rows if isinstance(row, list) for target in row]
        if lengths != list(range(n_arms, 0, -1)) or not all(
            type(target) is int and 0 <= target <= 2 * MAX_DUELS for target in flat
        ):
            raise PolicyError("a batch's targets must be integers from 0 for each pair of arms.")
        read[np.triu_indices(n_arms)] = flat
        self._targets = read
        self._stale = True

    def _slot(self, first: int, second: int) -> int:
        return first * self._n_arms + second if first < second else second * self._n_arms + first

    def _lacks_by_slot(self) -> Integers:
        """(K²,): what each pair lacks, computed from the counts."""
        lacks = np.maximum(self._targets - (self._wins + self._wins.T), 0.0)
        return lacks.astype(np.int64).reshape(-1)

    def _count_all(self) -> None:
        """Compute everything that is kept up to date by `refresh` anew."""
        lacks = self._lacks_by_slot()
        self._lacks = lacks.tolist()
        self._tree = _Tree(lacks)
        self._total = self._tree.total
        self._stale = False


class _Tree:
    """Whole weights by place, their sum, and the place at which the sum of those before reaches x.

    The node n, counting from 1, holds the sum of the weights of as many places, up to the n-th, as
    the lowest bit of n says (Fenwick).
    """

    __slots__ = ("_nodes", "_steps", "total")

    def __init__(self, weights: Integers) -> None:
        size = 1 << (len(weights) - 1).bit_length()
        sums = np.zeros(size + 1, dtype=np.int64)
        np.cumsum(weights, out=sums[1 : len(weights) + 1])
        sums[len(weights) + 1 :] = sums[len(weights)]
        nodes = np.arange(size + 1)
        self._nodes: list[int] = (sums - sums[nodes - (nodes & -nodes)]).tolist()
        self._steps = [size >> level for level in range(1, size.bit_length())]
        self.total: int = sums.item(size)

    def add(self, place: int, more: int) -> None:
        """Change the weight of a place."""
        nodes, node = self._nodes, place + 1
        while node < len(nodes):
            nodes[node] += more
            node += node & -node
        self.total += more

    def find(self, x: int) -> int:
        """The place at which the sum of all weights up to it exceeds x, from 0 to `total` - 1."""
        nodes, place = self._nodes, 0
        for step in self._steps:
            before = nodes[place + step]
            if before <= x:
                x -= before
                place += step
        return place

    def take_many(self, generator: Generator, most: int) -> list[int]:
        """The places found for draws below the total, each taking away 1 before the next."""
        nodes, steps, below = self._nodes, self._steps, generator.below
        places = []
        last = max(self.total - most, 0)
        for total in range(self.total, last, -1):
            x, place = below(total), 0
            for step in steps:
                node = place + step
                before = nodes[node]
                if before <= x:
                    x -= before
                    place = node
                else:
                    nodes[node] = before - 1
            places.append(place)
        self.total = last
        return places

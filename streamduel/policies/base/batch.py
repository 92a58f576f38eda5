"""An open batch: how many duels of each pair remain, and a random order of them."""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import numpy as np
from msgspec import Meta

from streamduel.errors import PolicyError
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Integers
from streamduel.preference.counts import MAX_DUELS, FromCounts, WinCounts

_MAX_SIZE: Final = 2**62
"""The largest batch: its sums fit into 64 bits, and no policy counts as many duels."""

Targets: TypeAlias = list[list[Annotated[int, Meta(ge=0, le=2 * MAX_DUELS)]]]
"""(K, K): the number of duels of each pair i < j at which a batch lacks none; otherwise 0."""


class Batch(FromCounts):
    """The pairs that a round compares, and how often.

    A batch is opened with a quota for each pair. From then on every duel of a pair counts towards
    its quota, in any order, also duels of an earlier batch and unproposed ones: what a pair lacks
    follows from the counts alone. Duels beyond the quota of a pair do not count for other pairs.
    The batch is complete when no pair lacks a duel.

    The order is that of draws without replacement: a pair is drawn in proportion to the duels that
    it lacks. So a batch that is closed early has favoured no pair.

    A duel in flight is not drawn again. When all missing duels are in flight, the draws start again
    with all of them, since some may be lost.

    The weights of the pairs are in a Fenwick tree: a draw takes log2 K² steps, and so does an
    observed duel. Only opening a batch and counting many duels together process all pairs.

    Args:
        counts: the duels seen. The caller that adds to them calls `refresh`.

    >>> counts = WinCounts(3)
    >>> batch = Batch(counts)
    >>> batch.open(np.full((3, 3), 2))
    >>> counts.add_one(0, 1, first_wins=1, count=5)
    >>> batch.refresh(0, 1)
    >>> batch.lacking, batch.remaining().tolist()
    (4, [[0, 0, 2], [0, 0, 2], [2, 2, 0]])
    >>> batch.draw_many(Generator(seed=7), limit=10).tolist()
    [[1, 2], [1, 2], [0, 2], [0, 2]]

    Source: P. M. Fenwick, "A new data structure for cumulative frequency tables", Software:
    Practice and Experience 24(3), 1994.
    """

    # By slot, and in total; up to date unless `_stale`.
    _lacks: list[int]
    _total: int
    _tree: _Tree
    _stale: bool

    def __init__(self, counts: WinCounts) -> None:
        self._wins = counts.wins
        self._n_arms = len(counts.wins)
        # A pair i < j has the slot i K + j. Its target is the number of duels at which it lacks
        # nothing; the target of all other slots is 0.
        self._targets: Integers = np.zeros((self._n_arms, self._n_arms), dtype=np.int64)
        self._taken: dict[int, int] = {}  # by slot: duels in flight since the draws started
        self._count_all()

    def open(self, quotas: Integers) -> None:
        """Open a batch; what an earlier one lacked is forgotten.

        Args:
            quotas: (K, K), symmetric: the number of duels of each pair from now on. The diagonal
                is ignored.
        """
        highest = min(MAX_DUELS, _MAX_SIZE // self._n_arms**2)
        self._targets = np.triu(np.minimum(quotas, highest), k=1)
        played = (self._wins + self._wins.T).astype(np.int64)
        np.add(self._targets, played, out=self._targets, where=self._targets > 0)
        self._stale = True

    def close(self) -> None:
        """Close the batch: from now on no pair lacks a duel."""
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
        """One of the missing duels at random; the batch must not be complete.

        Args:
            generator: gives one draw below the number of lacking duels not in flight.
        """
        if self._stale:
            self._count_all()
        slot = self._tree.find(generator.below(self._tree.total))
        return divmod(slot, self._n_arms)

    def draw_many(self, generator: Generator, limit: int) -> Integers:
        """Missing duels, as if each had been drawn and observed before the next.

        Args:
            generator: as for `draw`, once for each duel.
            limit: the largest number, from 1; all that are lacking if they are fewer.

        Returns:
            (m, 2) arms.
        """
        lacks = self._lacks_by_slot()
        wanted = lacks.nonzero()[0]  # a tree of these alone has fewer levels, and equal sums
        places = _Tree(lacks[wanted]).take_many(generator, limit)
        return np.stack(np.divmod(wanted[places], self._n_arms), axis=1)

    def refresh(self, first: int, second: int) -> None:
        """Update what one pair lacks."""
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

    def refresh_many(self, first: Integers, second: Integers) -> None:  # noqa: ARG002
        """Have everything updated at the next use."""
        self._stale = True

    def mark_in_flight(self, first: int, second: int, in_flight: int) -> None:
        """Note that one more duel of a pair is in flight, or with 0 that none is."""
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

    def save(self) -> Targets:
        """The targets, (K, K): all that does not follow from the counts."""
        targets: Targets = self._targets.tolist()
        return targets

    def restore(self, saved: Targets) -> None:
        """Set what `save` returned.

        Raises:
            PolicyError: these are not targets of K arms.
        """
        square = [len(row) for row in saved] == [self._n_arms] * self._n_arms
        targets = np.array(saved if square else 0, dtype=np.int64)
        if targets.shape != self._targets.shape or np.tril(targets).any():
            raise PolicyError("a batch's targets must be K lists of K numbers, for pairs i < j.")
        self._targets = targets
        self._stale = True

    def _slot(self, first: int, second: int) -> int:
        return first * self._n_arms + second if first < second else second * self._n_arms + first

    def _lacks_by_slot(self) -> Integers:
        """(K²,): what each pair lacks, computed from the counts."""
        lacks = np.maximum(self._targets - (self._wins + self._wins.T), 0.0)
        return lacks.astype(np.int64).reshape(-1)

    def _count_all(self) -> None:
        """Recompute everything from the counts."""
        lacks = self._lacks_by_slot()
        self._lacks = lacks.tolist()
        self._tree = _Tree(lacks)
        self._total = self._tree.total
        self._stale = False


class _Tree:
    """Integer weights by place, with fast sums (Fenwick).

    The node n, from 1, holds the sum of the weights of the n & -n places up to the n-th.
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

    def take_many(self, generator: Generator, limit: int) -> list[int]:
        """The places found for draws below the total, each reduced by 1 before the next."""
        nodes, steps, below = self._nodes, self._steps, generator.below
        places = []
        last = max(self.total - limit, 0)
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

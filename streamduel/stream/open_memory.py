"""The memory of open impressions and pending clicks of a partition, and their eviction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush, heapreplace


class OpenMemory:
    """The bound on open impressions and pending clicks, shared by a partition's experiments.

    Every impression and every click adds its memory to one count, which never decreases: also late
    ones and those that have closed. Whatever was added before the count reached its present value
    minus `max_bytes` is evicted. So the same stretch of the click log determines what is evicted.

    Args:
        max_bytes: the bound.

    Attributes:
        taken: bytes of all impressions and clicks so far, or since a restart.
        evicted: the offset of the last record that was evicted; -1 if none was. Records of an
            earlier offset are evicted, too.

    >>> memory, oldest = OpenMemory(1000), {"ads": 0, "search": 300}
    >>> memory.watch("ads", memory.take(300))
    >>> memory.watch("search", memory.take(900))
    >>> [(name, oldest.pop(name)) for name in memory.overdue(oldest.get)]
    [('ads', 0)]
    """

    __slots__ = ("_oldest", "_watched", "evicted", "max_bytes", "taken")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.taken = 0
        self.evicted = -1
        # For each experiment with anything open, a lower bound of the bytes before its oldest.
        self._oldest: list[tuple[int, str]] = []
        self._watched: set[str] = set()

    @property
    def floor(self) -> int:
        """The bytes before which everything is evicted."""
        return self.taken - self.max_bytes

    @property
    def exceeded(self) -> bool:
        """Whether something may have to be evicted."""
        return bool(self._oldest) and self._oldest[0][0] < self.floor

    def take(self, size: int) -> int:
        """Count an impression or a click; returns the bytes before it."""
        since = self.taken
        self.taken += size
        return since

    def watch(self, name: str, since: int) -> None:
        """Note what an experiment opens first, with this many bytes before it."""
        if name not in self._watched:
            self._watched.add(name)
            heappush(self._oldest, (since, name))

    def overdue(self, oldest: Callable[[str], int | None]) -> Iterator[str]:
        """The experiments with something to evict, the one with the oldest first.

        The caller evicts it before it requests the next.

        Args:
            oldest: the bytes before the oldest that an experiment has open; None if nothing is.
        """
        while self.exceeded:
            since, name = self._oldest[0]
            found = oldest(name)
            if found == since:
                yield name
                found = oldest(name)
            if found is None:
                heappop(self._oldest)
                self._watched.discard(name)
            else:
                heapreplace(self._oldest, (found, name))

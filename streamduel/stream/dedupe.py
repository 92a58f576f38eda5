"""The dedupe window: which record ids were seen lately, bounded by count and by stream time."""

from __future__ import annotations

from array import array
from collections import deque
from typing import Final, NamedTuple

import mmh3

BLOCK_BITS: Final = 12
"""A stretch ends at the latest with its block of 4096 offsets, even if time stands still: a
window over a log without timestamps is then rebuilt from near its oldest sighting, not from the
log's beginning. Blocks are aligned, so that a rebuilt window has the same stretches."""


def record_key(experiment_salt: int, record_id: str) -> int:
    """The 128-bit key under which a record's id is remembered, equal on every machine.

    Python's own `hash` differs from process to process and has 64 bits, of which a collision
    would once in a while drop a vote. `experiment_salt` keeps one id in two experiments apart.

    >>> hex(record_key(0, "click-1"))
    '0x44ee4f56db1a72e8ca4dacff129bc71d'
    """
    return mmh3.hash128(record_id) ^ experiment_salt


def experiment_salt(experiment: str) -> int:
    """What sets an experiment's record keys apart: 128 bits made of its name."""
    return mmh3.hash128(experiment, seed=1)


class WindowStart(NamedTuple):
    """Where the window begins: rebuilding it from here gives the same window.

    Attributes:
        offset: of the record with which the oldest remembered stretch begins.
        stream_time: after that record, in milliseconds.
    """

    offset: int
    stream_time: int


class DedupeWindow:
    """Remembers the ids of the last `max_records` valid records that are at most `max_ms` old.

    The log may deliver a record twice: a producer retried, a ranker service was restarted. A
    record whose id is still remembered is a duplicate. Every sighting counts, a duplicate's too,
    so the window is a function of the last stretch of the log alone; that is why it need not be
    stored and can be rebuilt exactly by reading that stretch again.

    An id is remembered as a 128-bit key (see `record_key`): 1 million take about 100 MB.

    Args:
        max_records: how many sightings are remembered at most.
        max_ms: for how much stream time a sighting is remembered, in milliseconds.

    >>> window = DedupeWindow(max_records=2, max_ms=1000)
    >>> window.advance(stream_time=0, offset=0)
    >>> [window.sight(key, offset) for offset, key in enumerate((1, 1, 2, 3, 1))]
    [False, True, False, False, False]
    """

    __slots__ = (
        "_again", "_block", "_firsts", "_forgotten", "_head", "_keys", "_max_ms", "_max_records",
        "_offsets", "_order", "_times",
    )  # fmt: skip

    def __init__(self, max_records: int, max_ms: int) -> None:
        self._max_records = max_records
        self._max_ms = max_ms
        self._keys: set[int] = set()
        self._again: dict[int, int] = {}  # further sightings of a key that is remembered already
        self._order: deque[int] = deque()
        self._forgotten = 0
        # Stretches of one stream time and one block each, in three plain arrays, as a busy log
        # starts a stretch with nearly every record: the time, the offset with which it begins,
        # the number of its first sighting. `_head` is the oldest that still counts.
        self._times = array("q")
        self._offsets = array("q")
        self._firsts = array("q")
        self._head = 0
        self._block = -1

    def __len__(self) -> int:
        """How many sightings are remembered."""
        return len(self._order)

    @property
    def start(self) -> WindowStart | None:
        """Where to start reading to rebuild this window; None when it is empty."""
        if not self._order:
            return None
        return WindowStart(self._offsets[self._head], self._times[self._head])

    def advance(self, stream_time: int, offset: int) -> None:
        """Stream time moves on to `stream_time` with the record at `offset`."""
        oldest = stream_time - self._max_ms
        stretches = len(self._times)
        while self._head < stretches and self._times[self._head] < oldest:
            self._head += 1
            last = self._firsts[self._head] if self._head < stretches else self._sighted
            for _ in range(last - self._forgotten):
                self._forget()
        self._begin_stretch(stream_time, offset)

    def sight(self, key: int, offset: int) -> bool:
        """Remember a sighting of a key at an offset; True when it was remembered already."""
        if offset >> BLOCK_BITS != self._block:
            self._begin_stretch(self._times[-1], offset)
        keys = self._keys
        duplicate = key in keys
        if duplicate:
            self._again[key] = self._again.get(key, 0) + 1
        else:
            keys.add(key)
        order = self._order
        order.append(key)
        if len(order) > self._max_records:
            self._forget()
            following = self._head + 1
            while following < len(self._firsts) and self._firsts[following] <= self._forgotten:
                self._head = following
                following += 1
        return duplicate

    @property
    def _sighted(self) -> int:
        return self._forgotten + len(self._order)

    def _begin_stretch(self, stream_time: int, offset: int) -> None:
        self._block = offset >> BLOCK_BITS
        sighted = self._sighted
        if self._head < len(self._firsts) and self._firsts[-1] == sighted:
            self._times[-1], self._offsets[-1] = stream_time, offset  # nothing was seen in it
            return
        self._times.append(stream_time)
        self._offsets.append(offset)
        self._firsts.append(sighted)
        if self._head > 1 << BLOCK_BITS and 2 * self._head > len(self._times):
            for column in (self._times, self._offsets, self._firsts):
                del column[: self._head]  # give the dead heads back once they are the larger half
            self._head = 0

    def _forget(self) -> None:
        self._forgotten += 1
        key = self._order.popleft()
        further = self._again.get(key)
        if further is None:
            self._keys.discard(key)
        elif further == 1:
            del self._again[key]
        else:
            self._again[key] = further - 1

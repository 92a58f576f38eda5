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


record_key: Final = mmh3.hash128
"""The 128-bit key under which a record's id is remembered, `record_key(id, seed)`, MurmurHash3.

It is equal in every process, unlike Python's `hash`, and so long that no two ids collide; each
experiment has a seed of its own, as an id is unique within its experiment only.
"""


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

    An id is remembered as a 128-bit key (see `record_key`): 1 million take about 110 MB.

    The fold's inner loop does by itself what `sight` does for a fresh key: add it to `keys` and
    `order`, and `forget_oldest` beyond `max_records`.

    Attributes:
        keys: those remembered.
        order: the sightings, oldest first.
        block_end: from this offset on, `sight` must be called also for a fresh key.

    Args:
        max_records: how many sightings are remembered at most.
        max_ms: for how much stream time a sighting is remembered, in milliseconds.

    >>> window = DedupeWindow(max_records=2, max_ms=1000)
    >>> window.advance(stream_time=0, offset=0)
    >>> [window.sight(key, offset) for offset, key in enumerate((1, 1, 2, 3, 1))]
    [False, True, False, False, False]
    """

    __slots__ = (
        "_again", "_firsts", "_forgotten", "_head", "_max_ms", "_offsets", "_times", "block_end",
        "keys", "max_records", "order",
    )  # fmt: skip

    def __init__(self, max_records: int, max_ms: int) -> None:
        self.max_records = max_records
        self._max_ms = max_ms
        self.keys: set[int] = set()
        self._again: dict[int, int] = {}  # further sightings of a key that is remembered already
        self.order: deque[int] = deque()
        self._forgotten = 0
        # Stretches of one stream time and one block each, in three plain arrays, as a busy log
        # starts a stretch with nearly every record: the time, the offset with which it begins,
        # the number of its first sighting. `_head` is the oldest that still counts.
        self._times = array("q")
        self._offsets = array("q")
        self._firsts = array("q")
        self._head = 0
        self.block_end = 0

    def __len__(self) -> int:
        """How many sightings are remembered."""
        return len(self.order)

    @property
    def start(self) -> WindowStart | None:
        """Where to start reading to rebuild this window; None when it is empty."""
        if not self.order:
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
        if offset >= self.block_end:
            self._begin_stretch(self._times[-1], offset)
        keys = self.keys
        duplicate = key in keys
        if duplicate:
            self._again[key] = self._again.get(key, 0) + 1
        else:
            keys.add(key)
        self.order.append(key)
        if len(self.order) > self.max_records:
            self.forget_oldest()
        return duplicate

    def forget_oldest(self) -> None:
        """Give up the oldest sighting because there are more than `max_records`."""
        self._forget()
        following = self._head + 1
        while following < len(self._firsts) and self._firsts[following] <= self._forgotten:
            self._head = following
            following += 1

    @property
    def _sighted(self) -> int:
        return self._forgotten + len(self.order)

    def _begin_stretch(self, stream_time: int, offset: int) -> None:
        self.block_end = ((offset >> BLOCK_BITS) + 1) << BLOCK_BITS
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
        key = self.order.popleft()
        further = self._again.get(key)
        if further is None:
            self.keys.discard(key)
        elif further == 1:
            del self._again[key]
        else:
            self._again[key] = further - 1

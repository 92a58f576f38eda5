"""The dedupe window: recent record ids, bounded by number and by stream time."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import mmh3

BLOCK_BITS: Final = 12
"""A stretch is a run of entries with one stream time. It ends at the latest with its block of
4096 offsets, even if stream time does not advance: a window over a click log without timestamps is
then rebuilt from near its oldest entry, not from the beginning. Blocks are aligned, so that a
rebuilt window has the same stretches."""


record_key: Final = mmh3.hash128
"""The 128-bit key of a record's id, `record_key(id, seed)`, MurmurHash3.

It is equal in every process, unlike Python's `hash`, and long enough that no two ids collide. Each
experiment has its own seed, because an id is unique within its experiment only.
"""


class WindowStart(NamedTuple):
    """Where the window begins: reading from here rebuilds the same window.

    Attributes:
        offset: of the record with which the oldest remembered stretch begins.
        stream_time: after that record, in milliseconds.
    """

    offset: int
    stream_time: int


class Mark(NamedTuple):
    """Where re-reading begins if what is open began with a certain block.

    Attributes:
        offset: the first record of the block.
        start: the beginning of the block in which the dedupe window began then.
    """

    offset: int
    start: WindowStart


class DedupeWindow:
    """Remembers the ids of the last `max_records` valid records that are at most `max_ms` old.

    A click log may contain a record twice: a producer retried, a ranker service restarted. A record
    whose id is still remembered is a duplicate. A duplicate is an entry, too, so the
    window is a function of the last stretch of the click log. It need not be stored, because
    reading that stretch again rebuilds it exactly.

    An id is remembered as a 128-bit key (see `record_key`): 1 million take about 150 MB of
    resident memory.

    The caller advances stream time and offsets (`advance`, and `begin_block` before the first
    record at or after `block_end`).

    Attributes:
        keys: remembered keys; expired ones may not be removed yet.
        order: the keys of the entries, oldest first.
        block_end: the offset at which a new block must begin.

    Args:
        max_records: the most entries that are remembered.
        max_ms: how long an entry is remembered, in stream time, in milliseconds.
        per_record: the most entries of one record of the click log.

    >>> window = DedupeWindow(max_records=2, max_ms=1000)
    >>> window.advance(stream_time=0, offset=0)
    >>> [window.add(key) for key in (1, 1, 2, 3, 1)]
    [False, True, False, False, False]
    """

    __slots__ = (
        "_again", "_firsts", "_forgotten", "_head", "_offsets", "_times", "block_end", "keys",
        "max_ms", "max_records", "order", "per_record",
    )  # fmt: skip

    def __init__(self, max_records: int, max_ms: int, per_record: int = 1) -> None:
        self.max_records = max_records
        self.max_ms = max_ms
        self.per_record = per_record
        self.keys: set[int] = set()
        self._again: dict[int, int] = {}  # further entries of a key that is remembered already
        self.order: deque[int] = deque()
        self._forgotten = 0
        # Stretches of one stream time and one block each, in three plain arrays, because a busy
        # click log starts a stretch with nearly every record: the time, the first offset, the
        # number of the first entry. `_head` is the oldest stretch that still counts.
        self._times = array("q")
        self._offsets = array("q")
        self._firsts = array("q")
        self._head = 0
        self.block_end = 0

    def __len__(self) -> int:
        """The number of entries that are remembered."""
        self.trim()
        return len(self.order)

    def __contains__(self, key: object) -> bool:
        """Whether a key is remembered."""
        self.trim()
        return key in self.keys

    @property
    def offsets(self) -> int:
        """The number of offsets for which an id is remembered, unless it becomes too old."""
        return self.max_records // self.per_record

    @property
    def start(self) -> WindowStart:
        """Where to start reading to rebuild this window; defined for an empty window, too."""
        self.trim()
        return WindowStart(self._offsets[self._head], self._times[self._head])

    def advance(self, stream_time: int, offset: int) -> None:
        """Stream time advances to `stream_time` with the record at `offset`."""
        oldest = stream_time - self.max_ms
        stretches = len(self._times)
        while self._head < stretches and self._times[self._head] < oldest:
            self._head += 1
            last = self._firsts[self._head] if self._head < stretches else self.added
            for _ in range(last - self._forgotten):
                self._forget()
        self._begin_stretch(stream_time, offset, self.added)

    def begin_block(self, offset: int) -> None:
        """The record at `offset`, the first at or after `block_end`, is next."""
        self.trim()
        self._begin_stretch(self._times[-1], offset, self.added)

    def retime(self, since: int, now: int) -> None:
        """Date entries at `now` that are dated later, or whose record is at or after `since`.

        Entries without a stretch of their own since `since` keep their time, so `advance` must
        have been called with that record.
        """
        for index in range(len(self._times) - 1, self._head - 1, -1):
            if self._offsets[index] < since and self._times[index] <= now:
                break
            self._times[index] = now

    def add(self, key: int) -> bool:
        """Add an entry; True if its key was remembered already, so that it is a duplicate."""
        duplicate = key in self.keys
        if duplicate:
            self.trim()
            duplicate = key in self.keys
        if duplicate:
            self._again[key] = self._again.get(key, 0) + 1
        else:
            self.keys.add(key)
        self.order.append(key)
        return duplicate

    def add_new(self, keys: Sequence[int], advances: Sequence[tuple[int, int, int]]) -> bool:
        """`advance` and `add` for several records of a block, if no key is forgotten or repeated.

        Args:
            keys: of the records.
            advances: for each record with which stream time advances, in their order: its index
                in `keys`, stream time, and its offset.

        Returns:
            False if a key may be remembered already, or one would be forgotten; then nothing has
            changed.
        """
        if advances and self._times[self._head] < advances[-1][1] - self.max_ms:
            return False
        before = len(self.keys)
        if not self.keys.isdisjoint(keys):
            return False
        self.keys.update(keys)
        if len(self.keys) < before + len(keys):  # one is repeated among them
            self.keys.difference_update(keys)
            return False
        added = self.added
        self.order.extend(keys)
        for index, stream_time, offset in advances:
            self._begin_stretch(stream_time, offset, added + index)
        return True

    def trim(self) -> None:
        """Forget the entries beyond `max_records`: before each answer, not with each record."""
        while len(self.order) > self.max_records:
            self._forget()
        following = self._head + 1
        while following < len(self._firsts) and self._firsts[following] <= self._forgotten:
            self._head = following
            following += 1

    @property
    def added(self) -> int:
        """The number of entries so far, which is the number of the next one."""
        return self._forgotten + len(self.order)

    @property
    def oldest(self) -> int:
        """The number of the oldest entry that is remembered."""
        self.trim()
        return self._forgotten

    def _begin_stretch(self, stream_time: int, offset: int, added: int) -> None:
        self.block_end = ((offset >> BLOCK_BITS) + 1) << BLOCK_BITS
        if self._head < len(self._firsts) and self._firsts[-1] == added:
            self._times[-1], self._offsets[-1] = stream_time, offset  # it has no entries
            return
        self._times.append(stream_time)
        self._offsets.append(offset)
        self._firsts.append(added)
        if self._head > 1 << BLOCK_BITS and 8 * self._head > len(self._times):
            for column in (self._times, self._offsets, self._firsts):
                del column[: self._head]  # free forgotten stretches before they take much memory
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

"""Stream time: the time of a partition, from the timestamps of its records.

Producers set timestamps, and a clock may be wrong by a century. So one record alone moves stream
time by a few minutes at most; whatever is further ahead needs a majority of the recent records.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec

from streamduel.records import MAX_TIME

RECENT: Final = 31
"""Records whose timestamps are compared. Up to 15 of them may have wrong clocks, and stream time
passes a gap in traffic with the 16th record after it. Odd, so that the median is one of them."""

_LOW, _MIDDLE, _HIGH = 7, 15, 23
"""Quartiles and median of the recent timestamps, by rank."""

_REACH: Final = 3
"""How many times the distance from the median to the nearer quartile traffic may be ahead. The
newest record of even traffic is ahead by less than twice as much; half as much again is for traffic
that is not even. In a busy log that is nothing; with a record a minute, 24 minutes."""


class ClockState(msgspec.Struct, frozen=True, array_like=True):
    """The state of a `StreamClock`.

    Attributes:
        now: stream time.
        limit: stream time follows timestamps up to it; None before there are `RECENT` records.
        recent: timestamps of the last valid records, the oldest first.
        ahead: timestamps and offsets of those records that are ahead of stream time.
        passed_over: records that were ahead when they arrived and were not reached since, those
            of `ahead` included.
    """

    now: int
    limit: int | None
    recent: tuple[int, ...]
    ahead: tuple[tuple[int, int], ...]
    passed_over: int


class ClockReset(msgspec.Struct, frozen=True, array_like=True):
    """A place where stream time was set, instead of following from the records before.

    Attributes:
        offset: of the first record after it.
        clock: the state of the clock from there on.
    """

    offset: int
    clock: ClockState


class StreamClock:
    """Derives stream time from the timestamps of valid records.

    Stream time is the largest timestamp so far that was within the limit: at most `max_advance_ms`
    ahead of what the last `RECENT` timestamps make plausible, which is their median, and beyond
    it `_REACH` times the distance to the nearer quartile. The limit is computed again with each
    timestamp beyond it, and stream time then advances to the largest of the last timestamps within.

    Stream time follows all of the first records of a partition, because there is nothing to compare
    them with. The last of `RECENT` records allows the comparison; stream time may decrease then,
    and only then.

    The state is a function of the records alone. Records without a timestamp do not take part.

    Args:
        max_advance_ms: how far ahead of what is plausible stream time follows a timestamp.
        state: a former `state()`; None for a new partition.

    Attributes:
        max_advance_ms: the argument; a changed one holds for the timestamps from then on.
        now: stream time.
        recent: the last timestamps.
        newest_ahead: timestamp and offset of the newest record that was beyond the limit since the
            process began; until there is one, of the newest that was so shortly before.

    >>> clock = StreamClock(max_advance_ms=1000)
    >>> for offset in range(31):
    ...     since = clock.add(5000 + offset, offset)
    >>> clock.add(9000, 31), clock.now  # beyond the limit: 5016 + 3 * 8 + 1000
    (31, 5030)
    >>> clock.add(6040, 32), clock.now
    (32, 6040)
    """

    __slots__ = (
        "_ahead",
        "_limit",
        "_passed_over",
        "max_advance_ms",
        "newest_ahead",
        "now",
        "recent",
    )

    def __init__(self, max_advance_ms: int, state: ClockState | None = None) -> None:
        self.max_advance_ms = max_advance_ms
        self.recent: deque[int] = deque(maxlen=RECENT)
        self.newest_ahead: tuple[int, int] | None = None
        self.now = 0
        self._limit: int | None = None
        self._ahead: deque[tuple[int, int]] = deque()
        self._passed_over = 0
        if state is not None:
            self.restore(state)

    @property
    def outliers(self) -> int:
        """Records that were beyond the limit until they left `recent`."""
        return self._passed_over - self._count_ahead()

    def advances(self, timestamps: Sequence[int]) -> list[int] | None:
        """The indexes of the records with which stream time would advance to their timestamps.

        None if one of them has no timestamp, or one beyond the limit.
        """
        if self._limit is None or min(timestamps) < 0:
            return None
        found, now = [], self.now
        for index, timestamp in enumerate(timestamps):
            if timestamp > now:
                found.append(index)
                now = timestamp
        return found if now <= self._limit else None

    def add_plain(self, timestamps: Sequence[int], advances: Sequence[int]) -> None:
        """`add` each of some timestamps, for which `advances` has returned these indexes."""
        self.recent.extend(timestamps[-RECENT:])
        if advances:
            self.now = timestamps[advances[-1]]

    def _count_ahead(self) -> int:
        if self._limit is None:
            return len(self._ahead)
        return sum(timestamp > self.now for timestamp in self.recent)

    def add(self, timestamp: int, offset: int) -> int | None:
        """Process the timestamp of the valid record at an offset; a negative one is none.

        Returns:
            The offset from which on records have the present stream time as their own, if the
            record is ahead of stream time or has changed it. It is the record's own offset; but
            when stream time has passed a gap, that of the first record after the gap.
        """
        if timestamp < 0:
            return None
        self.recent.append(timestamp)
        if self._limit is None:
            return self._add_early(timestamp, offset)
        if timestamp <= self.now:
            return None
        if timestamp <= self._limit:
            self.now = timestamp
            return offset
        return self._compare(timestamp, offset)

    def _add_early(self, timestamp: int, offset: int) -> int | None:
        if len(self.recent) == RECENT:
            return self._compare(timestamp, offset)
        self._ahead.append((timestamp, offset))
        self._passed_over += 1
        if not self.now < timestamp <= MAX_TIME:
            return None
        self.now = timestamp
        return offset

    def _compare(self, timestamp: int, offset: int) -> int:
        """Compare a timestamp that is beyond the limit with the recent ones, of which it is one."""
        ordered = sorted(self.recent)
        ahead = list(self._ahead)
        if self._limit is not None:  # those that have left `recent` are too late to be reached
            still = len(ordered) - bisect_right(ordered, self.now) - 1
            ahead = ahead[len(ahead) - still :]
        ahead.append((timestamp, offset))
        limit = self._plausible(ordered)
        within = bisect_right(ordered, limit)
        largest = ordered[within - 1] if within else 0
        first, self._limit = self._limit is None, limit
        self.now = largest if first else max(self.now, largest)
        reached = [place for time, place in ahead if time <= self.now]
        self._ahead = deque(pair for pair in ahead if pair[0] > self.now)
        self._passed_over += 1 - len(reached)
        if self._ahead:
            self.newest_ahead = self._ahead[-1]
        return reached[0] if reached and not first else offset

    def _plausible(self, ordered: Sequence[int]) -> int:
        """The limit, by the recent timestamps in order."""
        middle = ordered[_MIDDLE]
        spread = min(middle - ordered[_LOW], ordered[_HIGH] - middle)
        return min(middle + _REACH * spread + self.max_advance_ms, MAX_TIME)

    def set(self, now: int) -> None:
        """Set stream time, as if all recent timestamps agreed with it."""
        self._passed_over = self.outliers
        self._ahead.clear()
        self.now, self._limit = now, min(now + self.max_advance_ms, MAX_TIME)
        self.recent.extend([now] * RECENT)

    def state(self) -> ClockState:
        """What restores the clock."""
        count = self._count_ahead()
        ahead = tuple(self._ahead)[len(self._ahead) - count :]
        return ClockState(self.now, self._limit, tuple(self.recent), ahead, self._passed_over)

    def restore(self, state: ClockState) -> None:
        """Continue with a former `state()`."""
        self.now, self._limit, self._passed_over = state.now, state.limit, state.passed_over
        self.recent.clear()
        self.recent.extend(state.recent)
        self._ahead = deque(state.ahead)
        if self._ahead:  # it may become an outlier after the restart
            self.newest_ahead = self._ahead[-1]


class LargestTimestamp:
    """Stream time before timestamps were compared: the largest timestamp of any record.

    State of format 6 followed it. A restart re-reads a stretch of the click log with the stream
    time that it had when it was folded.

    Args:
        now: stream time.

    Attributes:
        now: stream time.
    """

    __slots__ = ("now",)

    def __init__(self, now: int) -> None:
        self.now = now

    def add(self, timestamp: int, offset: int) -> int | None:
        """Process the timestamp of the record at an offset; see `StreamClock.add`."""
        if timestamp <= self.now:
            return None
        self.now = timestamp
        return offset

    def state(self) -> None:
        """None: there is no state besides stream time."""

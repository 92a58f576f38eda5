"""Repairs of a partition, as the fold applies them.

`streamduel repair` writes them into the partition's snapshot entry, so a replay applies the same
ones at the same offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import structs

from streamduel.connector import ControlMarker, LogRecord

Action = Literal["skip", "time", "new_log", "repartition"]


class Repair(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One repair.

    Attributes:
        action: `skip` ignores the record at the offset, `time` sets stream time before it;
            `new_log` and `repartition` made the state continue there in another click log.
        at: the offset.
        to: the stream time that `time` sets, in milliseconds.
        done: whether `time` has been applied.
        note: when and by whom it was written; the fold does not use it.
    """

    action: Action
    at: int
    to: int | None = None
    done: bool = False
    note: str = ""


class Repairs:
    """The repairs of one partition.

    Args:
        written: all of them, as the snapshot has them.

    Attributes:
        written: all of them, with what has been applied marked as done.
    """

    __slots__ = ("_last_skipped", "_skipped", "_time", "written")

    def __init__(self, written: Sequence[Repair] = ()) -> None:
        self.written = list(written)
        self._skipped = {repair.at for repair in written if repair.action == "skip"}
        self._last_skipped = max(self._skipped, default=-1)
        self._time = self._next_time()

    def _next_time(self) -> Repair | None:
        waiting = (it for it in self.written if it.action == "time" and not it.done)
        return min(waiting, key=lambda repair: repair.at, default=None)

    def waiting(self, offset: int) -> list[Repair]:
        """The repairs that take effect at or after the next offset."""
        return [
            it
            for it in self.written
            if (it.action == "time" and not it.done) or (it.action == "skip" and it.at >= offset)
        ]

    def without_skipped(self, records: Sequence[LogRecord]) -> Sequence[LogRecord]:
        """Leave out the records to be skipped; re-reading them leaves them out as well.

        A marker of control records stays, and says that they have no effect: otherwise they would
        be forwarded again after a restart.
        """
        if not records or records[0].offset > self._last_skipped:
            return records
        kept: list[LogRecord] = []
        for record in records:
            if record.offset not in self._skipped:
                kept.append(record)
            elif isinstance(record, ControlMarker):
                kept.append(record._replace(skipped=True))
        return kept

    def due(self, offset: int) -> Repair | None:
        """The next change of stream time, if it comes before the record at an offset."""
        return self._time if self._time is not None and self._time.at <= offset else None

    def done(self, repair: Repair) -> None:
        """A change of stream time has been applied."""
        self.written[self.written.index(repair)] = structs.replace(repair, done=True)
        self._time = self._next_time()

"""Recovery: rebuild the dedupe window and open impressions by re-reading the click log."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from streamduel.connector import LogRecord
from streamduel.formats import Ignored
from streamduel.records import Click, Impression, Rejected
from streamduel.stream.dedupe import DedupeWindow, WindowStart, record_key

if TYPE_CHECKING:
    from streamduel.stream.experiment import Experiment
    from streamduel.stream.routing import Router
    from streamduel.stream.snapshot import PartitionEntry


class Mark(NamedTuple):
    """Where the dedupe window began when a certain record arrived.

    Attributes:
        offset: the record's, the first of a block.
        start: the beginning of the window.
    """

    offset: int
    start: WindowStart


class Marks:
    """Finds the offset from which a restart must re-read the click log.

    The dedupe window alone needs the records since its beginning. Open impressions and pending
    clicks need their own records again, and what the dedupe window answered when they first
    arrived: was it a duplicate, was its impression known? So the window must be exact from their
    first record on, and re-reading starts where the window began *then*. That is kept for every
    block.

    Args:
        window: the dedupe window.
    """

    __slots__ = ("_marks", "_window")

    def __init__(self, window: DedupeWindow) -> None:
        self._window = window
        self._marks: deque[Mark] = deque()  # the oldest first

    def restore(self, mark: Mark) -> None:
        """Continue with the mark of a snapshot."""
        self._marks.append(mark)

    def add(self, offset: int) -> None:
        """A block begins with the record at this offset."""
        if not self._marks or offset > self._marks[-1].offset:
            self._marks.append(Mark(offset, self._window.start))

    def last(self, since: int | None) -> Mark:
        """The last mark not after an offset; earlier ones are dropped.

        Args:
            since: the first record of anything that is open; None if nothing is. `since` never
                decreases between calls.
        """
        while len(self._marks) > 1 and (since is None or self._marks[1].offset <= since):
            self._marks.popleft()
        return self._marks[0]


class Recovery:
    """Re-applies records from before the snapshot, without counting them or emitting outputs.

    Args:
        entry: the snapshot's partition entry, which holds until something new is folded.
        window: the dedupe window, still empty.
        router: decodes the partition's records.
    """

    def __init__(self, entry: PartitionEntry, window: DedupeWindow, router: Router) -> None:
        self.entry = entry
        self._window = window
        self._router = router
        self._time = entry.window.stream_time
        window.advance(entry.window.stream_time, entry.window.offset)

    def read(self, records: Sequence[LogRecord]) -> None:
        """Re-apply records, in the order of their offsets."""
        for record in records:
            self._advance(record.timestamp, record.offset)
            try:
                events = self._router.events(record)
                for event, experiment in events:
                    experiment.check_at(event, record.offset)
            except (Ignored, Rejected):
                continue
            for event, experiment in events:
                if experiment.started_at > record.offset:
                    continue
                if record.timestamp is None:
                    self._advance(event.ts, record.offset)
                key = record_key(event.id, experiment.seed)
                duplicate, since = self._window.sight(key), self.entry.open_since
                if duplicate or since is None or record.offset < since:
                    continue
                restore = _RESTORE.get(type(event))
                if restore is not None:
                    experiment.attribution.close(record.offset, self._time)
                    restore(experiment, event, key, record, self._time)

    def _advance(self, timestamp: int | None, offset: int) -> None:
        if timestamp is not None and timestamp > self._time:
            self._time = timestamp
            self._window.advance(timestamp, offset)

    def finish(self, experiments: Iterable[Experiment]) -> None:
        """All records have been re-applied."""
        for experiment in experiments:
            experiment.attribution.close(0, self.entry.stream_time)


def _open(experiment: Experiment, event: Impression, key: int, record: LogRecord, now: int) -> None:
    experiment.attribution.open(key, event, record.offset, now)


def _click(experiment: Experiment, event: Click, _key: int, record: LogRecord, now: int) -> None:
    impression = record_key(event.impression, experiment.seed)
    with suppress(Rejected):
        experiment.attribution.click(impression, event, record, now)


_RESTORE: dict[type, Callable[[Experiment, Any, int, LogRecord, int], None]] = {
    Impression: _open,
    Click: _click,
}

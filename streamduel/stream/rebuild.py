"""After a restart: making anew, from the log's last stretch, what is only kept in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamduel.connector import LogRecord
from streamduel.formats import Ignored
from streamduel.records import Click, Impression, Rejected
from streamduel.stream.dedupe import DedupeWindow, record_key
from streamduel.stream.experiment import Experiment
from streamduel.stream.reading import RecordReader
from streamduel.stream.snapshot import PartitionEntry


class Rebuild:
    """Reads once more what was folded in an earlier life: for its ids, and for what is open.

    Nothing is counted, nothing put out, and no alarm rings.

    Args:
        entry: of the snapshot.
        window: the dedupe window, still empty.
        reader: of the partition's records.

    Attributes:
        entry: of the snapshot; until something new is folded, it holds.
    """

    def __init__(self, entry: PartitionEntry, window: DedupeWindow, reader: RecordReader) -> None:
        self.entry = entry
        self._window = window
        self._reader = reader
        self._time = entry.window.stream_time
        window.advance(entry.window.stream_time, entry.window.offset)

    def read(self, records: Sequence[LogRecord]) -> None:
        """Take in records from before the snapshot, in their order."""
        for record in records:
            self._pass(record.timestamp, record.offset)
            try:
                events = self._reader.events(record)
                for event, experiment in events:
                    experiment.check_at(event, record.offset)
            except (Ignored, Rejected):
                continue
            for event, experiment in events:
                if experiment.started_at > record.offset:
                    continue
                if record.timestamp is None:
                    self._pass(event.ts, record.offset)
                key = record_key(event.id, experiment.seed)
                again, since = self._window.sight(key), self.entry.open_since
                if again or since is None or record.offset < since:
                    continue
                if isinstance(event, Impression | Click):
                    experiment.remember(event, key, record, self._time, self._window)

    def _pass(self, timestamp: int | None, offset: int) -> None:
        if timestamp is not None and timestamp > self._time:
            self._time = timestamp
            self._window.advance(timestamp, offset)

    def end(self, experiments: Iterable[Experiment]) -> None:
        """All has been read: what is open is known again."""
        for experiment in experiments:
            experiment.end_remembering(self.entry.stream_time)

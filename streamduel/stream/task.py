"""The fold of one partition: records in; assignments, dead letters and snapshot entries out."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import structs

from streamduel.config import Config
from streamduel.config.experiment import ExperimentSettings
from streamduel.connector import LogRecord, PartitionCommit
from streamduel.formats import Ignored
from streamduel.records import Duel, InputEvent, Reason, Rejected
from streamduel.stream import snapshot
from streamduel.stream.decode import REFUSED
from streamduel.stream.dedupe import DedupeWindow, record_key
from streamduel.stream.experiment import Experiment, Shared
from streamduel.stream.outputs import Outputs
from streamduel.stream.recovery import Marks, Recovery
from streamduel.stream.routing import ClickLog, Router
from streamduel.stream.snapshot import PartitionEntry
from streamduel.stream.timers import Timers


class PartitionTask:
    """The state of one partition, as a pure fold over its records.

    No clock, no I/O and no process-wide randomness: two tasks that were given the same records,
    however cut into batches and however often restored from a snapshot in between, hold the same
    state and have produced the same bytes.

    A task restored from a snapshot needs the click log from `resume_offset` on, which may be before
    the snapshot's own offset: the records in between only rebuild the dedupe window and open
    impressions.

    Args:
        config: the configuration; its experiments whose home is this partition are folded.
        log: the click log.
        partition: the partition.
        entries: the snapshot entries to restore; empty for a new partition.

    Raises:
        SnapshotError: the entries contradict the configuration or the click log.
    """

    def __init__(
        self,
        config: Config,
        log: ClickLog,
        partition: int,
        entries: Mapping[str, bytes] | None = None,
    ) -> None:
        self.partition = partition
        self._log = log
        self._window = DedupeWindow(config.dedupe.window_records, config.dedupe.window_ms)
        self._timers = Timers()
        self._outputs = Outputs(log.topic, partition)
        self._shared = Shared(
            partition, config.dedupe.window_ms, self._window, self._timers, self._outputs
        )
        self.experiments: dict[str, Experiment] = {}
        self._router = Router(config, log, partition, self.experiments)
        self._new: dict[str, ExperimentSettings] = {
            name: settings
            for name, settings in config.experiments.items()
            if self._router.is_here(name)
        }
        self.stream_time = 0
        self.next_offset = 0
        self.resume_offset: int | None = None
        self._marks = Marks(self._window)
        self._recovery: Recovery | None = None
        self._ended: dict[str, bytes] = {}
        self._snapshot_offset = 0
        self._saved: dict[str, int] = {}  # the versions of the experiments in the snapshot
        self._committed_offset = -1
        if entries:
            self._restore(entries)

    def _restore(self, entries: Mapping[str, bytes]) -> None:
        entry = snapshot.partition_entry(entries, self.partition)
        snapshot.check_log(entry, self._log.topic, self.partition, self._log.partitions)
        snapshot.check_format(entry, self._router.log_format)
        self.next_offset = self._committed_offset = self._snapshot_offset = entry.next
        self.stream_time = entry.stream_time
        self.dead_letters.update(entry.dead_letters)
        self.ignored.update(entry.ignored)
        self.resume_offset = entry.window.offset
        self._recovery = Recovery(entry, self._window, self._router)
        self._marks.restore(entry.mark)
        for name, saved in snapshot.experiment_entries(entries).items():
            settings = self._new.pop(name, None)
            if settings is None:
                if saved.ended_at is None:
                    key, ended = snapshot.encode_ended(saved, self.next_offset)
                    self._ended[key] = ended
                continue
            snapshot.check_settings(saved, settings)
            experiment = self._add(name, settings, saved.started_at, saved.state)
            experiment.set_timer()
            self._saved[name] = experiment.version

    def open(self, offset: int) -> None:
        """The click log will be delivered from this offset on."""
        if self.resume_offset is None:
            self.next_offset = offset
            self._window.advance(self.stream_time, offset)
            self._marks.add(offset)
        elif offset > self.next_offset:
            self.next_offset = offset  # the click log has lost the records in between

    def begin(self, offset: int) -> None:
        """Open the click log at this offset and start every experiment that has no snapshot yet.

        Each new experiment publishes its first assignment here, before any record.
        """
        self.open(offset)
        for name in list(self._new):
            self.start(name)

    def start(self, name: str) -> None:
        """Start a configured experiment at the present offset."""
        experiment = self._add(name, self._new.pop(name), self.next_offset)
        experiment.decide(self.next_offset - 1, self.stream_time)

    def _add(
        self,
        name: str,
        settings: ExperimentSettings,
        started_at: int,
        state: Mapping[str, Any] | None = None,
    ) -> Experiment:
        # Any seed that no other experiment of the partition has: keys are never stored.
        seed = len(self.experiments)
        experiment = Experiment(name, settings, self._shared, seed, started_at, state)
        self.experiments[name] = experiment
        return experiment

    def fold(self, records: Sequence[LogRecord]) -> None:
        """Fold records, in the order of their offsets, each exactly once."""
        for block in self._blocks(records):
            if self._recovery is not None and block[0].offset < self._snapshot_offset:
                self._recovery.read(block)
            else:
                self._end_recovery()
                if self._router.log_format is None:
                    self._fold(block)
                else:
                    self._fold_foreign(block)
                self.next_offset = block[-1].offset + 1

    def _end_recovery(self) -> None:
        if self._recovery is not None:
            self._recovery.finish(self.experiments.values())
            self._recovery = None
            for experiment in self.experiments.values():
                experiment.set_timer()

    def _blocks(self, records: Sequence[LogRecord]) -> Iterator[Sequence[LogRecord]]:
        """Cut records at the blocks of the dedupe window and at the snapshot's offset."""
        while records:
            if records[0].offset >= self._window.block_end:
                self._window.begin_block(records[0].offset)
                self._marks.add(records[0].offset)
            end = self._window.block_end
            if records[0].offset < self._snapshot_offset:
                end = min(end, self._snapshot_offset)
            cut = bisect_left(records, end, key=lambda record: record.offset)
            yield records[:cut]
            records = records[cut:]

    def _fold(self, records: Sequence[LogRecord]) -> None:
        """The inner loop: a duel of a known pair, the most frequent record, needs no call."""
        decode, window = self._router.decode, self._window
        plain, plain_bytes = decode.plain, decode.plain_bytes
        keys, order, key_of = window.keys, window.order, record_key
        experiments, latest, name = self.experiments, None, None
        for record in records:
            timestamp = record.timestamp
            if timestamp != latest:
                latest = timestamp
                self._advance(timestamp, record.offset)
            value: Any = record.value
            try:
                event = (
                    plain(value) if len(value) <= plain_bytes and value.isascii() else decode(value)
                )
                if event.experiment != name:
                    if event.experiment not in experiments:
                        raise self._router.unknown(event)
                    experiment, name = experiments[event.experiment], event.experiment
                    codes, buffer, seed = experiment.codes, experiment.buffer, experiment.seed
            except REFUSED as error:
                self._reject(record, decode.verdict(value, error))
                continue
            try:
                code = codes[event.a][event.b][event.winner] if type(event) is Duel else -1
            except KeyError:
                code = -1
            if code < 0:
                self._fold_event(event, experiment, record)
                continue
            if timestamp is None:
                self._advance(event.ts, record.offset)
            key = key_of(event.id, seed)
            if key not in keys:
                keys.add(key)
                order.append(key)
            elif window.sight(key):
                experiment.outcomes.duplicate += 1
                continue
            buffer.append(code)
            if len(buffer) >= experiment.due:
                experiment.decide(record.offset, self.stream_time)

    def _fold_event(self, event: InputEvent, experiment: Experiment, record: LogRecord) -> None:
        """Fold a record that is not a duel of a known pair."""
        try:
            code = experiment.code(event)
        except Rejected as verdict:
            self._reject(record, verdict)
        else:
            self._apply(event, experiment, code, record)

    def _fold_foreign(self, records: Sequence[LogRecord]) -> None:
        """Fold a click log in another format, whose records may contain several events each."""
        for record in records:
            self._advance(record.timestamp, record.offset)
            try:
                events = [(*it, it[1].code(it[0])) for it in self._router.events(record)]
            except Ignored as verdict:
                self._router.ignore(verdict)
            except Rejected as verdict:
                self._reject(record, verdict)
            else:
                for event, experiment, code in events:
                    self._apply(event, experiment, code, record)

    def _apply(
        self, event: InputEvent, experiment: Experiment, code: int, record: LogRecord
    ) -> None:
        if record.timestamp is None:
            self._advance(event.ts, record.offset)
        key = record_key(event.id, experiment.seed)
        if self._window.sight(key):
            experiment.outcomes.duplicate += 1
            return
        try:
            experiment.apply(event, code, key, record, self.stream_time)
        except Rejected as verdict:
            experiment.reject(record, verdict)

    def _reject(self, record: LogRecord, verdict: Rejected) -> None:
        experiment = self._router.experiment_of(record)
        if experiment is None:
            self._outputs.reject(record, verdict)
        else:
            experiment.reject(record, verdict)

    def _advance(self, timestamp: int | None, offset: int) -> None:
        """Advance stream time to that of the record at an offset."""
        if timestamp is not None and timestamp > self.stream_time:
            self.stream_time = timestamp
            self._window.advance(timestamp, offset)
            if timestamp >= self._timers.next:
                for name in self._timers.due(timestamp):
                    self.experiments[name].expire(offset - 1, timestamp)

    @property
    def dead_letters(self) -> Counter[Reason]:
        """The number of dead letters by reason, since the beginning of the click log."""
        return self._outputs.dead_letters

    @property
    def ignored(self) -> Counter[str]:
        """The number of ignored records of a foreign click log, by reason."""
        return self._router.ignored

    @property
    def outputs(self) -> int:
        """The number of outputs that wait to be committed."""
        return len(self._outputs)

    @property
    def changed(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.outputs or self._ended) or self.next_offset != self._committed_offset

    def take_commit(self) -> PartitionCommit:
        """Everything since the last commit, to become visible together."""
        entries, self._ended = self._ended, {}
        for name, experiment in self.experiments.items():
            if self._saved.get(name) != experiment.version:
                self._saved[name] = experiment.version
                key, entry = snapshot.encode_experiment(experiment)
                entries[key] = entry
        entries[snapshot.PARTITION_ENTRY] = snapshot.canonical(self._partition_entry())
        self._committed_offset = self.next_offset
        return PartitionCommit(self.partition, self.next_offset, *self._outputs.take(), entries)

    def _partition_entry(self) -> PartitionEntry:
        if self._recovery is not None:
            return structs.replace(self._recovery.entry, next=self.next_offset)
        opened = (experiment.attribution.open_since for experiment in self.experiments.values())
        open_since = min((offset for offset in opened if offset is not None), default=None)
        mark = self._marks.last(open_since)
        return PartitionEntry(
            topic=self._log.topic,
            partition=self.partition,
            partitions=self._log.partitions,
            next=self.next_offset,
            stream_time=self.stream_time,
            window=self._window.start if open_since is None else mark.start,
            open_since=open_since,
            mark=mark,
            dead_letters=dict(sorted(self.dead_letters.items())),
            ignored=dict(sorted(self.ignored.items())),
            log_format=snapshot.described(self._router.log_format),
        )

"""The fold of one partition: records in; assignments, dead letters and snapshot entries out."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import DecodeError, structs

from streamduel.config import Config
from streamduel.config.experiment import ExperimentSettings
from streamduel.connector import LogRecord, Message, PartitionCommit
from streamduel.formats import Ignored
from streamduel.records import (
    Click,
    Duel,
    Impression,
    InputEvent,
    Interleaving,
    Reason,
    Rejected,
)
from streamduel.stream import snapshot
from streamduel.stream.alarms import Alarms
from streamduel.stream.dead_letter import dead_letter
from streamduel.stream.decisions import Position
from streamduel.stream.dedupe import DedupeWindow, record_key
from streamduel.stream.experiment import Experiment
from streamduel.stream.homes import Homes, Log
from streamduel.stream.reading import RecordReader
from streamduel.stream.rebuild import Rebuild
from streamduel.stream.rescan import Rescan
from streamduel.stream.snapshot import PartitionEntry


class PartitionTask:
    """Everything that streamduel knows of one partition, as a pure fold over its records.

    No clock, no I/O and no process-wide randomness: two tasks that were given the same records,
    however cut into batches and however often restored from a snapshot in between, hold the
    same state and have put out the same bytes.

    A task made from a snapshot wants the log from `resume_offset` on, which may lie before the
    snapshot's own offset: the records in between only rebuild dedupe window and open impressions.

    Args:
        config: the configuration; its experiments whose home is this partition are folded.
        log: what the log is called and how its partitions are assigned.
        partition: the one that is folded.
        entries: the snapshot entries to go on from; empty for a fresh start.

    Raises:
        SnapshotError: the entries contradict the configuration or the log.
    """

    def __init__(
        self, config: Config, log: Log, partition: int, entries: Mapping[str, bytes] | None = None
    ) -> None:
        self.partition = partition
        self._log = log
        self._dedupe = config.dedupe
        self._window = DedupeWindow(config.dedupe.window_records, config.dedupe.window_ms)
        self._homes = Homes(config.experiments, log, partition)
        self._waiting: dict[str, ExperimentSettings] = {
            name: settings
            for name, settings in config.experiments.items()
            if self._homes.here(name)
        }
        self.experiments: dict[str, Experiment] = {}
        self._reader = RecordReader(config, self._homes, self.experiments)
        self.dead_letters: Counter[Reason] = Counter()
        self.stream_time = 0
        self.next_offset = 0
        self.resume_offset: int | None = None
        self._rescan = Rescan(self._window)
        self._rebuild: Rebuild | None = None
        self._ended: dict[str, bytes] = {}
        self._snapshot_offset = 0
        self._alarms = Alarms()
        self._assignments: list[Message] = []
        self._letters: list[Message] = []
        self._saved: dict[str, int] = {}
        self._committed_offset = -1
        if entries:
            self._restore(entries)

    def _restore(self, entries: Mapping[str, bytes]) -> None:
        entry = snapshot.partition_entry(entries, self.partition)
        snapshot.check_log(entry, self._log.topic, self.partition, self._log.partitions)
        snapshot.check_format(entry, self._reader.log_format)
        self.next_offset = self._committed_offset = self._snapshot_offset = entry.next
        self.stream_time = entry.stream_time
        self.dead_letters.update(entry.dead_letters)
        self._reader.ignored.update(entry.ignored)
        self.resume_offset = entry.window.offset
        self._rebuild = Rebuild(entry, self._window, self._reader)
        self._rescan.resume(entry.mark)
        for name, saved in snapshot.experiment_entries(entries).items():
            settings = self._waiting.pop(name, None)
            if settings is None:
                if saved.ended_at is None:
                    key, ended = snapshot.encode_ended(saved, self.next_offset)
                    self._ended[key] = ended
                continue
            snapshot.check_settings(saved, settings)
            experiment = self._experiment(name, settings, saved.started_at, saved.state)
            self.experiments[name] = experiment
            self._set_alarm(experiment)
            self._saved[name] = experiment.records

    def open(self, offset: int) -> None:
        """The log will be delivered from `offset` on."""
        if self.resume_offset is None:
            self.next_offset = offset
            self._window.advance(self.stream_time, offset)
            self._rescan.mark(offset)
        elif offset > self.next_offset:
            self.next_offset = offset  # the log has lost what lies between

    def begin(self, offset: int) -> None:
        """Open the log at `offset` and start every experiment that has no snapshot yet.

        Each fresh experiment publishes its first assignment here, before any record.
        """
        self.open(offset)
        for name in list(self._waiting):
            self.start(name)

    def start(self, name: str) -> None:
        """Start a configured experiment at the present offset."""
        experiment = self._experiment(name, self._waiting.pop(name), self.next_offset)
        self.experiments[name] = experiment
        self._decide(experiment, self._at(self.next_offset - 1))

    def _experiment(
        self,
        name: str,
        settings: ExperimentSettings,
        started_at: int,
        state: dict[str, Any] | None = None,
    ) -> Experiment:
        # Any seed will do that no other experiment of the partition has: keys are never stored.
        seed = len(self.experiments)
        return Experiment(name, settings, self._dedupe, seed, started_at, state)

    def fold(self, records: Sequence[LogRecord]) -> None:
        """Take in records, in the order of their offsets, each exactly once."""
        for block in self._blocks(records):
            if self._rebuild is not None and block[0].offset < self._snapshot_offset:
                self._rebuild.read(block)
            else:
                self._end_rebuild()
                foreign = self._reader.log_format is not None
                fold = self._fold_foreign if foreign else self._fold
                fold(block)
                self.next_offset = block[-1].offset + 1

    def _end_rebuild(self) -> None:
        if self._rebuild is not None:
            self._rebuild.end(self.experiments.values())
            self._rebuild = None
            for experiment in self.experiments.values():
                self._set_alarm(experiment)

    def _blocks(self, records: Sequence[LogRecord]) -> Iterator[Sequence[LogRecord]]:
        """Cut records where the window begins a new block, and at the snapshot's offset."""
        while records:
            if records[0].offset >= self._window.block_end:
                self._window.begin_block(records[0].offset)
                self._rescan.mark(records[0].offset)
            end = self._window.block_end
            if records[0].offset < self._snapshot_offset:
                end = min(end, self._snapshot_offset)
            cut = bisect_left(records, end, key=lambda record: record.offset)
            yield records[:cut]
            records = records[cut:]

    def _fold(self, records: Sequence[LogRecord]) -> None:  # noqa: C901, PLR0912 - see below
        """The inner loop: what it does by itself, it does to save a call for each record."""
        decode, window = self._reader.decode, self._window
        plain, plain_bytes = decode.plain, decode.plain_bytes
        keys, order, key_of = window.keys, window.order, record_key
        experiments, latest, name, shown = self.experiments, None, None, None
        for record in records:
            timestamp = record.timestamp
            if timestamp != latest:
                latest = timestamp
                self._advance(timestamp, record.offset)
            try:
                value: Any = record.value  # None has no length: a TypeError
                event = (
                    plain(value) if len(value) <= plain_bytes and value.isascii() else decode(value)
                )
                if event.experiment != name:
                    experiment, name = experiments[event.experiment], event.experiment
                    codes, pending, seed = experiment.codes, experiment.pending, experiment.seed
                if type(event) is Duel:
                    try:
                        code = codes[event.a][event.b][event.winner]
                    except KeyError:
                        code = experiment.code(event)
                else:
                    code = experiment.code(event)
                    shown = event if type(event) is Interleaving else None
            except (DecodeError, KeyError, TypeError, UnicodeDecodeError, Rejected):
                self._reject(record)
                continue
            if timestamp is None:
                self._advance(event.ts, record.offset)
            key = key_of(event.id, seed)
            if key not in keys:
                keys.add(key)
                order.append(key)
            elif window.sight(key):
                experiment.duplicates += 1
                shown = None
                continue
            if shown is not None:
                experiment.saw(shown, self.stream_time)
                shown = None
            if code >= 0:
                pending.append(code)
                if len(pending) < experiment.due:
                    continue
            elif not self._learn_special(experiment, event, record, key):
                continue
            self._decide(experiment, self._at(record.offset))

    def _fold_foreign(self, records: Sequence[LogRecord]) -> None:
        """The same for a log in another format, of whose records each may hold several events."""
        for record in records:
            self._advance(record.timestamp, record.offset)
            try:
                events = [(*it, it[1].code(it[0])) for it in self._reader.events(record)]
            except Ignored as verdict:
                self._reader.ignore(verdict)
                continue
            except Rejected:
                self._reject(record)
                continue
            for event, experiment, code in events:
                if record.timestamp is None:
                    self._advance(event.ts, record.offset)
                key = record_key(event.id, experiment.seed)
                if self._window.sight(key):
                    experiment.duplicates += 1
                    continue
                if type(event) is Interleaving:
                    experiment.saw(event, self.stream_time)
                if code >= 0:
                    experiment.pending.append(code)
                    due = len(experiment.pending) >= experiment.due
                else:
                    due = self._learn_special(experiment, event, record, key)
                if due:
                    self._decide(experiment, self._at(record.offset))

    def _at(self, offset: int) -> Position:
        return Position(self.partition, offset, self.stream_time)

    def _learn_special(
        self, experiment: Experiment, event: InputEvent, record: LogRecord, key: int
    ) -> bool:
        """Take in what is no plain duel; True when a decision is due."""
        try:
            if isinstance(event, Impression | Click):
                self._attribute(experiment, event, record, key)
                return False
            return experiment.learn_special(event, record.offset)
        except Rejected as verdict:  # what asks for what cannot be: a control record, a click
            self._dead_letter(record, verdict, experiment)
            return False

    def _attribute(
        self, experiment: Experiment, event: Impression | Click, record: LogRecord, key: int
    ) -> None:
        """Take in a part of an interleaved impression."""
        at = self._at(record.offset)
        self._close(experiment, at, record.offset)
        idle = not experiment.attribution
        if isinstance(event, Click):
            experiment.click(event, record, at.stream_time, self._window)
        else:
            for early, verdict in experiment.show(event, key, record.offset, at.stream_time):
                self._dead_letter(early, verdict, experiment)
        if idle:
            self._set_alarm(experiment)

    def _close(self, experiment: Experiment, at: Position, offset: int) -> None:
        """End the windows of impressions that are over, and decide whenever it is due.

        Those of which too many records have come since the offset end only when the next part of
        an impression comes, which a later life reads again, and not when time passes.
        """
        closed = False
        for due in experiment.close(offset, at.stream_time):
            closed = True
            if due:
                self._decide(experiment, at)
        if closed:
            self._set_alarm(experiment)

    def _advance(self, timestamp: int | None, offset: int) -> None:
        if timestamp is not None and timestamp > self.stream_time:
            self.stream_time = timestamp
            self._window.advance(timestamp, offset)
            if timestamp >= self._alarms.next:
                self._ring(self._at(offset - 1))

    def _ring(self, at: Position) -> None:
        """Let the experiments do what their time has come for."""
        for name in self._alarms.due(at.stream_time):
            experiment = self.experiments[name]
            self._close(experiment, at, 0)
            if experiment.alarm <= at.stream_time:
                self._publish(experiment, experiment.ring(at))
            self._set_alarm(experiment)

    def _decide(self, experiment: Experiment, at: Position) -> None:
        self._publish(experiment, experiment.decide(at))

    def _publish(self, experiment: Experiment, assignment: Message | None) -> None:
        if assignment is not None:
            self._assignments.append(assignment)
        self._set_alarm(experiment)

    def _set_alarm(self, experiment: Experiment) -> None:
        self._alarms.set(experiment.name, experiment.alarm)

    def _reject(self, record: LogRecord) -> None:
        """Make a dead letter of a record that the inner loop could not use."""
        try:
            for event, experiment in self._reader.events(record):
                experiment.code(event)
        except Rejected as verdict:
            self._dead_letter(record, verdict, self._reader.experiment_of(record))
        else:
            raise AssertionError(f"record {record.offset} was refused and then accepted")

    def _dead_letter(
        self, record: LogRecord, verdict: Rejected, experiment: Experiment | None
    ) -> None:
        self.dead_letters[verdict.reason] += 1
        if experiment is not None:
            experiment.dead_letters += 1
        self._letters.append(dead_letter(record, verdict, self._log.topic, self.partition))

    @property
    def outputs(self) -> int:
        """How many outputs wait to be committed."""
        return len(self._assignments) + len(self._letters)

    @property
    def changed(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.outputs) or bool(self._ended) or self.next_offset != self._committed_offset

    def take_commit(self) -> PartitionCommit:
        """Everything since the last time, to be made visible together."""
        entries, self._ended = self._ended, {}
        for name, experiment in self.experiments.items():
            records = experiment.records
            if self._saved.get(name) != records:
                self._saved[name] = records
                key, entry = snapshot.encode_experiment(experiment)
                entries[key] = entry
        entries[snapshot.PARTITION_ENTRY] = snapshot.encode_partition(self._partition_entry())
        commit = PartitionCommit(
            self.partition, self.next_offset, self._assignments, self._letters, entries
        )
        self._assignments, self._letters = [], []
        self._committed_offset = self.next_offset
        return commit

    def _partition_entry(self) -> PartitionEntry:
        if self._rebuild is not None:
            return structs.replace(self._rebuild.entry, next=self.next_offset)
        since = (experiment.attribution.since for experiment in self.experiments.values())
        open_since = min((it for it in since if it is not None), default=None)
        mark = self._rescan.last(open_since)
        window = self._window.start if open_since is None else mark.start
        return PartitionEntry(
            topic=self._log.topic,
            partition=self.partition,
            partitions=self._log.partitions,
            next=self.next_offset,
            stream_time=self.stream_time,
            window=window,
            open_since=open_since,
            mark=mark,
            dead_letters=dict(sorted(self.dead_letters.items())),
            ignored=dict(sorted(self._reader.ignored.items())),
            log_format=snapshot.described(self._reader.log_format),
        )

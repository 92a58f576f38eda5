"""The fold of one partition: records in; assignments, dead letters and snapshot entries out."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import DecodeError

from streamduel.config import Config
from streamduel.connector import LogRecord, Message, PartitionCommit
from streamduel.errors import nearest
from streamduel.experiment_settings import ExperimentSettings
from streamduel.records import Duel, InputEvent, Reason, Rejected
from streamduel.stream import snapshot
from streamduel.stream.batch_clock import NEVER
from streamduel.stream.dead_letter import dead_letter
from streamduel.stream.decisions import Position
from streamduel.stream.decode import RecordDecoder
from streamduel.stream.dedupe import DedupeWindow, WindowStart, record_key
from streamduel.stream.experiment import Experiment
from streamduel.stream.snapshot import PartitionEntry

MOST_COMPARED: Final = 50
"""Experiments that a mistaken name is compared with, some 10 µs each. If there are more, no name is
proposed: a service that logs under a wrong one must not take the others' time."""


class Log(NamedTuple):
    """The log that a task folds one partition of.

    Attributes:
        topic: its name.
        partitions: how many it has.
        home: the partition of an experiment, by the experiment's name.
    """

    topic: str
    partitions: int
    home: Callable[[str], int]


class PartitionTask:
    """Everything that streamduel knows of one partition, as a pure fold over its records.

    No clock, no I/O and no process-wide randomness: two tasks that were given the same records,
    however cut into batches and however often restored from a snapshot in between, hold the
    same state and have put out the same bytes.

    A task made from a snapshot wants the log from `resume_offset` on, which may lie before the
    snapshot's own offset: the records in between only rebuild the dedupe window.

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
        self._decode = RecordDecoder(config.limits.max_record_bytes)
        self._window = DedupeWindow(config.dedupe.window_records, config.dedupe.window_ms)
        self._homes = {name: log.home(name) for name in config.experiments}
        self._names = sorted(self._homes)
        self._waiting: dict[str, ExperimentSettings] = {
            name: settings
            for name, settings in config.experiments.items()
            if self._homes[name] == partition
        }
        self.experiments: dict[str, Experiment] = {}
        self.dead_letters: Counter[Reason] = Counter()
        self.stream_time = 0
        self.next_offset = 0
        self.resume_offset: int | None = None
        self._rebuilt_time = 0
        self._saved_window: WindowStart | None = None
        self._ended: dict[str, bytes] = {}
        self._snapshot_offset = 0
        self._alarms: dict[str, int] = {}
        self._alarm = NEVER
        self._assignments: list[Message] = []
        self._letters: list[Message] = []
        self._saved: dict[str, int] = {}
        self._committed_offset = -1
        if entries:
            self._restore(entries)

    def _restore(self, entries: Mapping[str, bytes]) -> None:
        entry = snapshot.partition_entry(entries, self.partition)
        snapshot.check_log(entry, self._log.topic, self.partition, self._log.partitions)
        self.next_offset = self._committed_offset = self._snapshot_offset = entry.next
        self.stream_time = entry.stream_time
        self.dead_letters.update(entry.dead_letters)
        self._saved_window = entry.window
        self._rebuilt_time = entry.window.stream_time
        self.resume_offset = entry.window.offset
        self._window.advance(entry.window.stream_time, entry.window.offset)
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
        return Experiment(name, settings, len(self.experiments), started_at, state)

    def fold(self, records: Sequence[LogRecord]) -> None:
        """Take in records, in the order of their offsets, each exactly once."""
        for block in self._blocks(records):
            if block[0].offset < self._snapshot_offset:
                self._remember(block)
            else:
                self._fold(block)
                self.next_offset = block[-1].offset + 1

    def _blocks(self, records: Sequence[LogRecord]) -> Iterator[Sequence[LogRecord]]:
        """Cut records where the window begins a new block, and at the snapshot's offset."""
        while records:
            if records[0].offset >= self._window.block_end:
                self._window.begin_block(records[0].offset)
            end = self._window.block_end
            if records[0].offset < self._snapshot_offset:
                end = min(end, self._snapshot_offset)
            cut = bisect_left(records, end, key=lambda record: record.offset)
            yield records[:cut]
            records = records[cut:]

    def _fold(self, records: Sequence[LogRecord]) -> None:  # noqa: C901, PLR0912 - see below
        """The inner loop: what it does by itself, it does to save a call for each record."""
        plain, plain_bytes, window = self._decode.plain, self._decode.plain_bytes, self._window
        keys, order, key_of = window.keys, window.order, record_key
        experiments, latest, name = self.experiments, None, None
        for record in records:
            timestamp = record.timestamp
            if timestamp != latest:
                latest = timestamp
                self._advance(timestamp, record.offset)
            try:
                value: Any = record.value  # None has no length: a TypeError
                event = (
                    plain(value)
                    if len(value) <= plain_bytes and value.isascii()
                    else self._decode(value)
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
                continue
            if code >= 0:
                pending.append(code)
                if len(pending) < experiment.due:
                    continue
            elif not self._learn_special(experiment, event, record):
                continue
            self._decide(experiment, self._at(record.offset))

    def _at(self, offset: int) -> Position:
        return Position(self.partition, offset, self.stream_time)

    def _learn_special(self, experiment: Experiment, event: InputEvent, record: LogRecord) -> bool:
        """Take in what is no plain duel; True when a decision is due."""
        try:
            return experiment.learn_special(event, record.offset)
        except Rejected as verdict:  # a control record that asks for what cannot be
            self._dead_letter(record, verdict)
            experiment.dead_letters += 1
            return False

    def _event(self, record: LogRecord) -> tuple[InputEvent, Experiment]:
        """A record's event and its experiment.

        Raises:
            Rejected: the record is to become a dead letter.
        """
        event = self._decode(record.value)
        experiment = self.experiments.get(event.experiment)
        if experiment is None:
            raise self._stranger(event)
        return event, experiment

    def _remember(self, records: Sequence[LogRecord]) -> None:
        """Rebuild the dedupe window from records that were folded in an earlier life."""
        now, self.stream_time = self.stream_time, self._rebuilt_time
        for record in records:
            self._advance(record.timestamp, record.offset)
            try:
                event, experiment = self._event(record)
                experiment.check_at(event, record.offset)
            except Rejected:
                continue
            if experiment.started_at > record.offset:
                continue
            if record.timestamp is None:
                self._advance(event.ts, record.offset)
            self._window.sight(record_key(event.id, experiment.seed))
        self._rebuilt_time = self.stream_time
        self.stream_time = max(now, self.stream_time)

    def _advance(self, timestamp: int | None, offset: int) -> None:
        if timestamp is not None and timestamp > self.stream_time:
            self.stream_time = timestamp
            self._window.advance(timestamp, offset)
            if timestamp >= self._alarm:
                self._ring(Position(self.partition, offset - 1, timestamp))

    def _ring(self, at: Position) -> None:
        """Let the experiments decide whose time has come; by name, for equal bytes."""
        for name, alarm in sorted(self._alarms.items()):
            if alarm <= at.stream_time:
                experiment = self.experiments[name]
                self._publish(experiment, experiment.ring(at))

    def _decide(self, experiment: Experiment, at: Position) -> None:
        self._publish(experiment, experiment.decide(at))

    def _publish(self, experiment: Experiment, assignment: Message | None) -> None:
        if assignment is not None:
            self._assignments.append(assignment)
        self._set_alarm(experiment)

    def _set_alarm(self, experiment: Experiment) -> None:
        name, alarm = experiment.name, experiment.alarm
        if alarm != self._alarms.get(name, NEVER):
            self._alarms[name] = alarm
            self._alarm = min(self._alarms.values())

    def _stranger(self, event: InputEvent) -> Rejected:
        """The verdict on a record of an experiment that is not folded here."""
        name, home = event.experiment, self._homes.get(event.experiment)
        if home is None:
            known = ", ".join(f"'{known}'" for known in self._names[:10])
            more = ", …" if len(self._names) > 10 else ""
            hint = nearest(name, self._names) if len(self._names) <= MOST_COMPARED else ""
            return Rejected(
                "unknown_experiment",
                f"unknown experiment '{name[:80]}'"
                f"{f'{hint} Configured' if hint else '; configured'} are {known}{more}.",
            )
        return Rejected(
            "wrong_partition",
            f"experiment '{name}' belongs into partition {home} (found in {self.partition}); "
            f"the record's key must be the experiment's name, hashed as Kafka's default "
            f"partitioner does.",
        )

    def _reject(self, record: LogRecord) -> None:
        """Make a dead letter of a record that the inner loop could not use."""
        try:
            event, experiment = self._event(record)
            experiment.code(event)
        except Rejected as verdict:
            self._dead_letter(record, verdict)
        else:
            raise AssertionError(f"record {record.offset} was refused and then accepted")
        name = self._decode.named_experiment(record.value)
        named = self.experiments.get(name or (record.key or b"").decode(errors="replace"))
        if named is not None:
            named.dead_letters += 1

    def _dead_letter(self, record: LogRecord, verdict: Rejected) -> None:
        self.dead_letters[verdict.reason] += 1
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
        # Before anything new is folded, the window may still be on its way to be rebuilt.
        news = self.next_offset != self._snapshot_offset
        saved = None if news else self._saved_window
        return PartitionEntry(
            topic=self._log.topic,
            partition=self.partition,
            partitions=self._log.partitions,
            next=self.next_offset,
            stream_time=self.stream_time,
            window=saved or self._window.start,
            dead_letters=dict(sorted(self.dead_letters.items())),
        )

"""The state of one partition: restored from a snapshot, folded on, and committed."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from msgspec import UNSET, structs

from streamduel.config import Config
from streamduel.config.experiment import ExperimentSettings
from streamduel.connector import LogRecord, PartitionCommit
from streamduel.records import Reason
from streamduel.stream import continuity, record_limits, saved_state, snapshot, snapshot_reading
from streamduel.stream.control_order import ControlOrder
from streamduel.stream.dedupe import DedupeWindow
from streamduel.stream.experiment import Experiment
from streamduel.stream.fold import Fold
from streamduel.stream.output_buffer import OutputBuffer
from streamduel.stream.partition_context import PartitionContext
from streamduel.stream.recovery import Marks, Recovery
from streamduel.stream.repairs import Repairs
from streamduel.stream.routing import ClickLog, Router
from streamduel.stream.snapshot import Entries, ExperimentEntry, PartitionEntry
from streamduel.stream.stream_time import ClockReset, StreamClock
from streamduel.stream.timers import NEVER, Timers


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
        entries: the snapshot entries to restore; None for a new partition.
        place: where the entries are stored, for error messages.
        heartbeat: called from time to time in long work, so that the process keeps the partition.

    Attributes:
        experiments: those that run, by name. While a restart re-reads the click log, records of
            experiments that were removed from the configuration since are valid, too.
        repairs: what `streamduel repair` wrote; a replay sets it.
        window: the ids that are remembered.
        missed: offsets that the click log lost before this task folded them; not part of the state.

    Raises:
        SnapshotError: the entries are damaged, or contradict the configuration or the click log.
    """

    def __init__(
        self,
        config: Config,
        log: ClickLog,
        partition: int,
        entries: Mapping[str, bytes] | None = None,
        place: str = "",
        heartbeat: Callable[[], None] = lambda: None,
    ) -> None:
        self._config, self._log, self.topic, self.partition = config, log, log.topic, partition
        form, dedupe = config.log_format, config.dedupe
        most_events = 1 if form is None else form.most_events
        self.window = DedupeWindow(dedupe.window_records, dedupe.window_ms, most_events)
        self._outputs = OutputBuffer(log.topic, partition)
        tells_ranks = form is None or form.tells_ranks
        self._context = PartitionContext(
            partition, config.dedupe.window_ms, self.window, Timers(), self._outputs,
            config.limits, heartbeat, tells_ranks,
        )  # fmt: skip
        self.experiments: dict[str, Experiment] = {}
        self._seeds = count()
        self._router = Router(config, log, partition)
        self._valid = self._router.experiments
        self.clock = StreamClock(config.time.max_advance_ms)
        self._fold = Fold(self._router, self._context, self.clock)
        here = self._router.is_here
        self._new = {name: its for name, its in config.experiments.items() if here(name)}
        self._resets: list[ClockReset] = []
        self._limits = record_limits.continued(UNSET, config, 0)
        self.next_offset = self.missed = self._reread_to = 0
        self.resume_offset: int | None = None
        self._marks = Marks(self.window)
        self._recovery: Recovery | None = None
        self._entries = Entries()
        self._log_id = log.log_id(partition)
        self.repairs = Repairs()
        self._saved: dict[str, int] = {}  # the versions of the experiments in the snapshot
        self._committed_offset = -1
        if entries is not None:
            self._restore(entries, place)

    def _restore(self, entries: Mapping[str, bytes], place: str) -> None:
        entry, experiments, place = snapshot_reading.read(entries, self.partition, place)
        continuity.check_log(entry, self._log, self.partition)
        continuity.check_format(entry, self._router.log_format)
        older = entry.format != snapshot.FORMAT
        self._entries = Entries(snapshot.origin(entries) if older else entries)
        with snapshot_reading.restoring(snapshot.PARTITION_ENTRY, place):
            recovery = self._restore_partition(entry)
        for name, saved in experiments.items():
            settings = self._new.pop(name, None)
            removed = settings is None and saved.ended_at is None
            ended_at = self.next_offset if removed else saved.ended_at
            if older or removed:
                self._entries.put(structs.replace(saved, ended_at=ended_at))
            if settings is not None:
                with snapshot_reading.restoring(snapshot.EXPERIMENT_PREFIX + name, place):
                    self._restore_experiment(saved, settings, recovery)
            elif ended_at is not None and ended_at > entry.mark.start.offset:
                with suppress(*snapshot_reading.UNFIT):  # its policy may be gone, too
                    recovery.leave_out(self._restored(saved, recovery), ended_at)

    def _restore_partition(self, entry: PartitionEntry) -> Recovery:
        self._log_id = self._log_id or entry.log_id
        self.repairs = Repairs(entry.repairs)
        self.next_offset = self._committed_offset = entry.next
        if entry.clock is not None:
            self.clock.restore(entry.clock)
        elif entry.stream_time:  # format 6
            self.clock.set(entry.stream_time)
        self._resets = list(entry.resets)
        self.dead_letters.update(entry.dead_letters)
        self.ignored.update(entry.ignored)
        self.controls.restore(entry.control, entry.next)
        self.resume_offset = entry.mark.start.offset
        if entry.evicted is not UNSET:
            self._context.memory.evicted = entry.evicted
        self._marks.restore(entry.mark, entry.window_clock)
        self._recovery = Recovery(entry, self._context, self._router, self._config)
        self._limits = self._recovery.limits
        return self._recovery

    def _restore_experiment(
        self, saved: ExperimentEntry, settings: ExperimentSettings, recovery: Recovery
    ) -> None:
        experiment = self.experiments[saved.experiment] = self._restored(saved, recovery)
        experiment.configured = settings
        experiment.set_timer()
        if saved.ended_at is not None:  # it is configured again; what was open is forgotten
            experiment.saved_open = dict.fromkeys(saved.state["open"], 0)
            gap = saved.ended_at, self.next_offset
            if gap not in experiment.gaps[-1:]:
                experiment.gaps.append(gap)
                recovery.leave_out(experiment, *gap)
            self._entries.put(snapshot.experiment_entry(experiment))
        self._saved[saved.experiment] = experiment.version

    def _restored(self, saved: ExperimentEntry, recovery: Recovery) -> Experiment:
        """An experiment whose records are re-read as what they were: valid, but for gaps.

        That holds for a removed one, too: its records have moved stream time, and the dedupe window
        remembers them.
        """
        saved_state.check(saved.experiment, saved.state)
        begun = continuity.begun(saved)
        experiment = self._add(saved.experiment, begun, saved.started_at, saved.state)
        experiment.gaps = list(saved.gaps or ())
        for gap in experiment.gaps:
            recovery.leave_out(experiment, *gap)
        return experiment

    def open(self, offset: int) -> None:
        """The click log will be delivered from this offset on."""
        self._reread_to = max(offset, self._reread_to)
        if self.resume_offset is None:
            self.next_offset = offset
            self.window.advance(self.stream_time, offset)
            self._marks.add(offset, self.clock)
        else:
            self.miss(offset)

    def miss(self, offset: int) -> None:
        """The click log has lost what is before this offset."""
        self.missed += max(0, offset - self.next_offset)
        self.next_offset = max(offset, self.next_offset)
        self._reread_to = max(offset, self._reread_to)

    def begin(self, offset: int, *, again: bool = False) -> None:
        """Open the click log at this offset and start every experiment that has no snapshot yet.

        Each new experiment publishes its first assignment here, before any record; with `again`,
        each of the others its last one, as it is.
        """
        for experiment in self.experiments.values() if again else ():
            if experiment.decisions.assignment is not None:
                self._outputs.assign(experiment.decisions.assignment)
        self.open(offset)
        for name in list(self._new):
            self.start(name)

    def start(self, name: str) -> None:
        """Start a configured experiment at the present offset."""
        experiment = self._add(name, self._new.pop(name), self.next_offset)
        self.experiments[name] = experiment
        experiment.decide(self.next_offset - 1, self.stream_time)

    def leave(self, name: str) -> Experiment:
        """Stop folding an experiment, which was removed from the configuration at this offset."""
        self._end_recovery()
        self._context.timers.set(name, NEVER)
        self._valid.pop(name).leave()
        return self.experiments.pop(name)

    def rejoin(self, experiment: Experiment) -> None:
        """Continue with an experiment, which was configured again at this offset."""
        self.experiments[experiment.name] = self._valid[experiment.name] = experiment
        experiment.set_timer()

    def _add(
        self,
        name: str,
        settings: ExperimentSettings,
        started_at: int,
        state: Mapping[str, Any] | None = None,
    ) -> Experiment:
        seed = next(self._seeds)  # any that no other has or had: keys are never stored
        experiment = Experiment(name, settings, self._context, seed, started_at, state)
        self._valid[name] = experiment
        return experiment

    def set_stream_time(self, now: int) -> None:
        """Set stream time before the next record, as `streamduel repair` asks.

        Impressions and clicks that are dated later are dated at `now`, and assignments that were
        published later are published again. The click log must have been re-read up to the
        snapshot's offset.

        Args:
            now: milliseconds.
        """
        self._end_recovery()
        self._fold.set_stream_time(now, self.next_offset)
        self._resets.append(ClockReset(self.next_offset, self.clock.state()))

    def check_log(self) -> None:
        """Refuse another click log: some have an id only after the first line was read."""
        if self._recovery is not None:
            continuity.check_log(self._recovery.entry, self._log, self.partition)

    def fold(self, records: Sequence[LogRecord]) -> None:
        """Fold records, in the order of their offsets, each exactly once."""
        records = self.repairs.without_skipped(records)
        while records and (repair := self.repairs.due(records[-1].offset)) is not None:
            assert repair.to is not None, "checked when the snapshot is read"
            cut = bisect_left(records, repair.at, key=lambda record: record.offset)
            self._fold_all(records[:cut])
            self.set_stream_time(repair.to)
            self.repairs.done(repair)
            records = records[cut:]
        self._fold_all(records)

    def _fold_all(self, records: Sequence[LogRecord]) -> None:
        for block in self._blocks(records):
            if self._recovery is not None:
                self._recovery.read(block)
                self._reread_to = block[-1].offset + 1
                continue
            self._fold.apply(block)
            self.next_offset = block[-1].offset + 1

    @property
    def cut_off_at(self) -> int | None:
        """How far a restart has re-read the click log, while that is before the snapshot's offset.

        If the click log ends there, it was truncated.
        """
        recovery, offset = self._recovery, self._reread_to
        return offset if recovery is not None and offset < recovery.entry.next else None

    def _end_recovery(self) -> None:
        if self._recovery is not None:
            reset = self._recovery.finish(self.clock)
            self._resets += [] if reset is None else [reset]
            self._recovery = None
            for experiment in self.experiments.values():
                experiment.set_timer()

    def _blocks(self, records: Sequence[LogRecord]) -> Iterator[Sequence[LogRecord]]:
        """Cut records at the blocks of the dedupe window and at the snapshot's offset."""
        while records:
            offset, recovery = records[0].offset, self._recovery
            if recovery is not None and offset >= recovery.entry.next:
                self._end_recovery()
                recovery = None
            elif recovery is not None:
                recovery.reach(offset)
            if offset >= self.window.block_end:
                self.window.begin_block(offset)
                self._marks.add(offset, self.clock if recovery is None else recovery.clock)
            end = self.window.block_end
            if recovery is not None:
                end = min(end, recovery.entry.next)
            cut = bisect_left(records, end, key=lambda record: record.offset)
            yield records[:cut]
            records = records[cut:]

    @property
    def unstarted(self) -> Sequence[str]:
        """The experiments that `start` has not started yet."""
        return list(self._new)

    @property
    def stream_time(self) -> int:
        """In milliseconds; 0 before the first record with a timestamp."""
        return self.clock.now

    @property
    def time_outliers(self) -> int:
        """Valid records that stream time has not followed, since the beginning of the click log."""
        return self.clock.outliers

    @property
    def dead_letters(self) -> Counter[Reason]:
        """The number of dead letters by reason, since the beginning of the click log."""
        return self._outputs.dead_letters

    @property
    def controls(self) -> ControlOrder:
        """Which control records count, and which of the control topic are applied."""
        return self._router.controls

    @property
    def ignored(self) -> Counter[str]:
        """The number of ignored records of a foreign click log, by reason."""
        return self._router.ignored

    @property
    def outputs(self) -> int:
        """The number of outputs that wait to be committed."""
        return len(self._outputs)

    @property
    def output_bytes(self) -> int:
        """The bytes of the outputs that wait to be committed."""
        return self._outputs.bytes

    @property
    def changed(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.outputs or self._entries) or self.next_offset != self._committed_offset

    def take_commit(self) -> PartitionCommit:
        """Everything since the last commit, to become visible together."""
        for name, experiment in self.experiments.items():
            if self._saved.get(name) != experiment.version:
                self._saved[name] = experiment.version
                self._entries.put(snapshot.experiment_entry(experiment))
        entries = self._entries.take(self._partition_entry())
        self._committed_offset = self.next_offset
        assignments, letters, controls = self._outputs.take()
        return PartitionCommit(
            self.partition, self.next_offset, assignments, letters, entries, controls
        )

    def _partition_entry(self) -> PartitionEntry:
        if self._recovery is not None:
            return structs.replace(
                self._recovery.entry, next=self.next_offset, log_id=self._log_id,
                repairs=self.repairs.written, control=self.controls.entry(),
            )  # fmt: skip
        self._log_id = self._log_id or self._log.log_id(self.partition)
        self.window.trim()
        opened = (experiment.attribution.open_since for experiment in self.experiments.values())
        open_since = min((offset for offset in opened if offset is not None), default=None)
        mark, window_clock = self._marks.last(open_since)
        evicted = self._context.memory.evicted
        self._resets = [reset for reset in self._resets if reset.offset >= mark.start.offset]
        return PartitionEntry(
            topic=self._log.topic,
            partition=self.partition,
            partitions=self._log.partitions,
            next=self.next_offset,
            stream_time=self.stream_time,
            window=mark.start,
            open_since=open_since,
            mark=mark,
            dead_letters=dict(sorted(self.dead_letters.items())),
            ignored=dict(sorted(self.ignored.items())),
            log_format=continuity.described(self._router.log_format),
            log_id=self._log_id,
            repairs=self.repairs.written,
            control=self.controls.entry(),
            clock=self.clock.state(),
            window_clock=window_clock,
            resets=self._resets,
            limits=record_limits.held_since(self._limits, mark.start.offset),
            evicted=UNSET if open_since is None or evicted < open_since else evicted,
        )

"""The fold of records: what each record changes in the state of its partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from streamduel.connector import ControlMarker, LogRecord
from streamduel.formats import Ignored
from streamduel.records import Control, Duel, InputEvent, Interleaving, Rejected
from streamduel.stream.dedupe import record_key
from streamduel.stream.experiment import Experiment
from streamduel.stream.marked_controls import apply_controls
from streamduel.stream.partition_context import PartitionContext
from streamduel.stream.plain_run import RUN, plain_run
from streamduel.stream.routing import Router, timestamp_of
from streamduel.stream.stream_time import StreamClock

MIN_RUN: Final = 16
"""Fewer duels before the next decision are applied one by one."""


class Fold:
    """Applies the records of one partition, in the order of their offsets, each exactly once.

    Args:
        router: decodes records and finds their experiments.
        context: what the experiments share.
        clock: stream time.
    """

    __slots__ = ("_clock", "_context", "_experiments", "_outputs", "_router", "_window")

    def __init__(self, router: Router, context: PartitionContext, clock: StreamClock) -> None:
        self._router = router
        self._experiments = router.experiments
        self._context = context
        self._window, self._outputs = context.window, context.outputs
        self._clock = clock

    def apply(self, records: Sequence[LogRecord]) -> None:
        """Apply records within one block of the dedupe window."""
        if self._router.log_format is None:
            self._apply_own(records)
        else:
            self._apply_foreign(records)

    def set_stream_time(self, now: int, offset: int) -> None:
        """Set stream time before the record at an offset.

        Args:
            now: milliseconds.
            offset: of the next record.
        """
        before = self._clock.now
        self._clock.set(now)
        self._moved(before, offset, offset)

    def _apply_own(self, records: Sequence[LogRecord]) -> None:
        """Decode records together, and apply those up to the next decision together."""
        start, length = 0, RUN
        while start < len(records):
            run = records[start : start + length]
            events = self._router.decode.leading(run)
            run = run if len(events) == len(run) else run[: len(events)]
            first = self._experiments.get(getattr(events[0], "experiment", ""))
            room = 0 if first is None else first.buffer.room
            if first is None or len(run) > room or not self._apply_duels(first, run, events):
                self._apply_each(run, events)
            start += len(run)
            length = RUN if first is None else min(max(first.buffer.room, MIN_RUN), RUN)

    def _apply_duels(
        self, experiment: Experiment, records: Sequence[LogRecord], events: Sequence[Any]
    ) -> bool:
        """Apply a run of records together, as `_apply_each` does, if each is just one more duel.

        Args:
            experiment: of the first event.
            records: at most as many as are due.
            events: theirs, or exceptions of decoding.

        Returns:
            Whether all records are new plain duels of this experiment, or all are finished
            impressions that become duels, and nothing expires meanwhile. Otherwise nothing has
            changed.
        """
        if self._context.memory.exceeded:  # `_apply` makes room first
            return False
        run = plain_run(experiment, records, events, self._clock)
        if run is None:
            return False
        times, moves = run.times, run.moves
        if moves and times[moves[-1]] >= self._context.timers.next:
            return False
        if not self._window.add_new(run.keys, run.advances):
            return False
        if type(events[0]) is Interleaving:
            experiment.impressions.count_many(events, times, self._clock.now)
        else:
            for client in [event.client for event in events if event.client is not None]:
                experiment.impressions.clients.add(client)
        self._clock.add_plain(times, moves)
        experiment.buffer.codes.fromlist(run.codes)
        if len(experiment.buffer.codes) >= experiment.buffer.due:
            experiment.decide_if_due(records[-1].offset, self._clock.now)
        return True

    def _apply_each(self, records: Sequence[LogRecord], events: Sequence[Any]) -> None:
        """Apply records one by one."""
        experiments, name = self._experiments, None
        for record, event in zip(records, events, strict=True):
            if isinstance(event, Exception):
                self._refuse(record, event)
                continue
            if event.experiment != name:
                if event.experiment not in experiments:
                    self._refuse(record, self._router.unknown(event))
                    continue
                experiment, name = experiments[event.experiment], event.experiment
                firsts, seconds, winners = experiment.coder.plain
                buffer = experiment.buffer
            try:
                is_duel = type(event) is Duel and event.client is None
                code = firsts[event.a] + seconds[event.b] + winners[event.winner] if is_duel else -1
            except KeyError:
                code = -1
            timestamp = record.timestamp
            if timestamp is None:
                timestamp = -1 if event.ts is None else event.ts
            if code < 0:
                self._apply_other(event, experiment, record, timestamp)
                continue
            self._advance(timestamp, record.offset)
            if self._window.add(record_key(event.id, experiment.seed)):
                experiment.outcomes.duplicate += 1
                continue
            buffer.codes.append(code)
            if len(buffer.codes) >= buffer.due:
                experiment.decide_if_due(record.offset, self._clock.now)

    def _apply_other(
        self, event: InputEvent, experiment: Experiment, record: LogRecord, timestamp: int
    ) -> None:
        """Apply a record that is not a plain duel."""
        try:
            if type(event) is Control:
                self._router.controls.check(event, record.offset)
            code = experiment.coder.code(event)
        except Rejected as verdict:
            experiment.reject(record, verdict)
        else:
            self._advance(timestamp, record.offset)
            self._apply(event, experiment, code, record)

    def _apply_foreign(self, records: Sequence[LogRecord]) -> None:
        """Apply a click log in another format, whose records may contain several events each."""
        for record in records:
            if isinstance(record, ControlMarker):
                self._apply_marked(record)
                continue
            try:
                routed = self._router.events(record)
                events = [(*it, it[1].coder.code(it[0])) for it in routed]
            except Ignored as verdict:
                self._router.ignore(verdict)
            except Rejected as verdict:
                self._reject(record, verdict)
            else:
                self._advance(timestamp_of(record, routed), record.offset)
                for event, experiment, code in events:
                    self._apply(event, experiment, code, record)

    def _apply(
        self, event: InputEvent, experiment: Experiment, code: int, record: LogRecord
    ) -> None:
        key = record_key(event.id, experiment.seed)
        capped = experiment.client_cap is not None and experiment.client_cap.count(event)
        if self._window.add(key):
            experiment.outcomes.duplicate += 1
            return
        if self._context.memory.exceeded:
            self._evict(record.offset)
        try:
            if capped:
                experiment.cap(event, key, record, self._clock.now)
            else:
                experiment.apply(event, code, key, record, self._clock.now)
        except Rejected as verdict:
            experiment.reject(record, verdict)

    def _evict(self, offset: int) -> None:
        """Make room in the partition's memory for the record at an offset."""
        for name in self._context.memory.overdue(self._memory_since):
            self._context.heartbeat()
            self._experiments[name].evict(offset, self._clock.now)

    def _memory_since(self, name: str) -> int | None:
        experiment = self._experiments.get(name)  # None once it was removed
        return None if experiment is None else experiment.attribution.memory_since

    def _refuse(self, record: LogRecord, error: Exception) -> None:
        """Apply a record that decoding refused: most are dead letters."""
        if isinstance(record, ControlMarker):
            self._apply_marked(record)
        else:
            self._reject(record, self._router.decode.verdict(record.value, error))

    def _apply_marked(self, marker: ControlMarker) -> None:
        for control, verdict in apply_controls(marker, self._router, self._clock.now):
            self._reject(control, verdict)

    def _reject(self, record: LogRecord, verdict: Rejected) -> None:
        experiment = self._router.experiment_of(record, verdict)
        if experiment is None:
            self._outputs.reject(record, verdict)
        else:
            experiment.reject(record, verdict)

    def _advance(self, timestamp: int, offset: int) -> None:
        """Advance stream time by the valid record at an offset, before it is applied."""
        before = self._clock.now
        since = self._clock.add(timestamp, offset)
        if since is not None:
            self._moved(before, since, offset)

    def _moved(self, before: int, since: int, offset: int) -> None:
        """Stream time was `before`; it is the time of the records from `since` up to `offset`."""
        now = self._clock.now
        if since < offset or now < before:
            self._window.retime(since, now)
            for experiment in self._experiments.values():
                experiment.retime(since, now)
        self._window.advance(now, offset)
        if now < before:
            for name in sorted(self._experiments):  # equal bytes, whatever order they were made in
                self._context.heartbeat()
                self._experiments[name].rewind(offset - 1, now)
        elif now >= self._context.timers.next:
            for name in self._context.timers.due(now):
                self._context.heartbeat()
                self._experiments[name].expire(offset - 1, now)

"""The fold of records: what each record changes in the state of its partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamduel.connector import ControlMarker, LogRecord
from streamduel.formats import Ignored
from streamduel.records import Control, Duel, InputEvent, Rejected
from streamduel.stream.decode import REFUSED
from streamduel.stream.dedupe import record_key
from streamduel.stream.experiment import Experiment
from streamduel.stream.marked_controls import MarkedControls
from streamduel.stream.routing import Router, timestamp_of
from streamduel.stream.shared import Shared
from streamduel.stream.stream_time import StreamClock


class Fold:
    """Applies the records of one partition, in the order of their offsets, each exactly once.

    Args:
        router: decodes records and finds their experiments.
        experiments: those of the partition, by name.
        shared: what they share.
        clock: stream time.
    """

    __slots__ = ("_clock", "_experiments", "_marked", "_outputs", "_router", "_shared", "_window")

    def __init__(
        self,
        router: Router,
        experiments: Mapping[str, Experiment],
        shared: Shared,
        clock: StreamClock,
    ) -> None:
        self._router = router
        self._experiments = experiments
        self._shared = shared
        self._window, self._outputs = shared.window, shared.outputs
        self._clock = clock
        self._marked = MarkedControls(router, experiments, self._reject)

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
        """The inner loop: a duel of a known pair, the most frequent record, needs no call."""
        decode, window = self._router.decode, self._window
        plain, plain_bytes = decode.plain, decode.plain_bytes
        keys, order, key_of = window.keys, window.order, record_key
        experiments, name = self._experiments, None
        clock = self._clock
        hear, threshold = clock.evidence.append, clock.threshold
        for record in records:
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
                self._refuse(record, error)
                continue
            try:
                code = codes[event.a][event.b][event.winner] if type(event) is Duel else -1
            except KeyError:
                code = -1
            if code < 0:
                self._apply_other(event, experiment, record)
                threshold = clock.threshold
                continue
            timestamp = record.timestamp
            if timestamp is None:
                timestamp = -1 if event.ts is None else event.ts
            if 0 <= timestamp <= threshold:
                hear(timestamp)
            else:
                self._advance(timestamp, record.offset)
                threshold = clock.threshold
            key = key_of(event.id, seed)
            if key not in keys:
                keys.add(key)
                order.append(key)
            elif window.sight(key):
                experiment.outcomes.duplicate += 1
                continue
            buffer.append(code)
            if len(buffer) >= experiment.due:
                experiment.decide_if_due(record.offset, clock.now)

    def _apply_other(self, event: InputEvent, experiment: Experiment, record: LogRecord) -> None:
        """Apply a record that is not a duel of a known pair."""
        try:
            if type(event) is Control:
                self._router.controls.check(event, record.offset)
            code = experiment.code(event)
        except Rejected as verdict:
            experiment.reject(record, verdict)
        else:
            self._advance(timestamp_of(record, [(event, experiment)]), record.offset)
            self._apply(event, experiment, code, record)

    def _apply_foreign(self, records: Sequence[LogRecord]) -> None:
        """Apply a click log in another format, whose records may contain several events each."""
        for record in records:
            if isinstance(record, ControlMarker):
                self._marked.fold(record, self._clock.now)
                continue
            try:
                routed = self._router.events(record)
                events = [(*it, it[1].code(it[0])) for it in routed]
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
        capped = experiment.client_cap is not None and experiment.client_cap.sight(event)
        if self._window.sight(key):
            experiment.outcomes.duplicate += 1
            return
        try:
            if capped:
                experiment.cap(event, key, record, self._clock.now)
            else:
                experiment.apply(event, code, key, record, self._clock.now)
        except Rejected as verdict:
            experiment.reject(record, verdict)

    def _refuse(self, record: LogRecord, error: Exception) -> None:
        """Apply a record that decoding refused: most are dead letters."""
        if isinstance(record, ControlMarker):
            self._marked.fold(record, self._clock.now)
        else:
            self._reject(record, self._router.decode.verdict(record.value, error))

    def _reject(self, record: LogRecord, verdict: Rejected) -> None:
        experiment = self._router.experiment_of(record, verdict)
        if experiment is None:
            self._outputs.reject(record, verdict)
        else:
            experiment.reject(record, verdict)

    def _advance(self, timestamp: int, offset: int) -> None:
        """Hear the timestamp of the valid record at an offset, before it is applied."""
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
                self._shared.pulse()
                self._experiments[name].rewind(offset - 1, now)
        elif now >= self._shared.timers.next:
            for name in self._shared.timers.due(now):
                self._shared.pulse()
                self._experiments[name].expire(offset - 1, now)

"""Recovery: rebuild the dedupe window and open impressions by re-reading the click log."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from operator import attrgetter, itemgetter
from typing import NamedTuple

from streamduel.config import Config
from streamduel.connector import LogRecord
from streamduel.formats import Ignored
from streamduel.records import Click, Impression, Rejected
from streamduel.stream import record_limits
from streamduel.stream.dedupe import DedupeWindow, Mark, WindowStart, record_key
from streamduel.stream.experiment import Experiment
from streamduel.stream.partition_context import PartitionContext
from streamduel.stream.plain_run import RUN, plain_run
from streamduel.stream.record_limits import RecordLimits
from streamduel.stream.routing import Router, timestamp_of
from streamduel.stream.snapshot import PartitionEntry
from streamduel.stream.stream_time import ClockReset, ClockState, LargestTimestamp, StreamClock

Clock = StreamClock | LargestTimestamp


class Block(NamedTuple):
    """The beginning of a block of the click log.

    Attributes:
        offset: of its first record.
        time: stream time before it.
        clock: the state of the clock then; None where format 6 was folded.
        since: the first record of the block in which the dedupe window began then.
    """

    offset: int
    time: int
    clock: ClockState | None
    since: int


class Marks:
    """Finds the offset from which a restart must re-read the click log.

    The dedupe window alone needs the records since its beginning. Open impressions and pending
    clicks need their own records again, and what the dedupe window answered when they first
    arrived: was it a duplicate, was its impression known? So the window must be exact from their
    first record on, and re-reading starts where the window began *then*: at the beginning of a
    block, where the state of the clock is known.

    Args:
        window: the dedupe window.
    """

    __slots__ = ("_blocks", "_saved", "_window")

    def __init__(self, window: DedupeWindow) -> None:
        self._window = window
        self._blocks: list[Block] = []  # the oldest first
        self._saved: Mark | None = None

    def restore(self, mark: Mark, clock: ClockState | None) -> None:
        """Continue with the mark of a snapshot; the click log is re-read from its start on."""
        self._saved = mark
        self._blocks.append(
            Block(mark.start.offset, mark.start.stream_time, clock, mark.start.offset)
        )

    def add(self, offset: int, clock: Clock) -> None:
        """A block begins with the record at this offset, before which the clock has this state."""
        if self._blocks and offset <= self._blocks[-1].offset:
            return
        since = self._block_of(self._window.start.offset) if self._blocks else offset
        if self._saved is not None and offset <= self._saved.offset:
            since = self._saved.start.offset  # the window is not complete yet
        self._blocks.append(Block(offset, clock.now, clock.state(), since))

    def _block_of(self, offset: int) -> int:
        return self._blocks[self._index(offset)].offset

    def _index(self, offset: int) -> int:
        """The index of the block that contains an offset."""
        return max(0, bisect_right(self._blocks, offset, key=lambda block: block.offset) - 1)

    def last(self, since: int | None) -> tuple[Mark, ClockState | None]:
        """The last mark not after an offset, and the clock at its start; forgets earlier blocks.

        Args:
            since: the first record of anything that is open; None if nothing is. `since` never
                decreases between calls.
        """
        block = self._blocks[-1] if since is None else self._blocks[self._index(since)]
        del self._blocks[: self._index(block.since)]
        start = self._blocks[0]
        return Mark(block.offset, WindowStart(start.offset, start.time)), start.clock


class Recovery:
    """Re-applies records from before the snapshot, without counting them or emitting outputs.

    Args:
        entry: the snapshot's partition entry, which is valid until a new record is folded.
        context: of the partition; its dedupe window is still empty.
        router: decodes the partition's records and finds their experiments.
        config: the configuration, whose limits hold for the records after the snapshot.

    Attributes:
        limits: of the records from the first one that is re-applied.
        clock: stream time at the record that is re-applied.
    """

    def __init__(
        self,
        entry: PartitionEntry,
        context: PartitionContext,
        router: Router,
        config: Config,
    ) -> None:
        self.entry = entry
        self._window, self._memory = context.window, context.memory
        self._router = router
        self._experiments = router.experiments
        self._max_advance = config.time.max_advance_ms
        self.limits = record_limits.continued(entry.limits, config, entry.next)
        # Without new ones: what they close is credited, so everything must be rebuilt first.
        self._limits = deque(it for it in self.limits if it.offset < entry.next)
        self._resets = deque(entry.resets)
        # The offsets at which experiments leave (None) and join, in ascending order.
        self._joins: list[tuple[int, str, Experiment | None]] = []
        start = entry.mark.start
        self.clock: Clock = LargestTimestamp(start.stream_time)
        if entry.window_clock is not None:
            self.clock = StreamClock(self._max_advance, entry.window_clock)
        self._window.advance(start.stream_time, start.offset)

    def leave_out(self, experiment: Experiment, since: int, until: int | None = None) -> None:
        """Between these offsets, records of an experiment are not valid."""
        if until is not None and until <= self.entry.mark.start.offset:
            return  # they are not read again
        insort(self._joins, (since, experiment.name, None), key=itemgetter(0))
        if until is not None:
            insort(self._joins, (until, experiment.name, experiment), key=itemgetter(0))

    def read(self, records: Sequence[LogRecord]) -> None:
        """Re-apply records, in the order of their offsets."""
        for start in range(0, len(records), RUN):
            run = records[start : start + RUN]
            if not self._read_together(run):
                self._read_each(run)

    def _read_together(self, records: Sequence[LogRecord]) -> bool:
        """Re-apply records as `_read_each` does, if they are plain duels or finished impressions.

        Returns:
            Whether they are, and nothing is forgotten meanwhile. Otherwise nothing has changed.
        """
        first, last = records[0].offset, records[-1].offset
        if self._next_change <= last or isinstance(self.clock, LargestTimestamp):
            return False
        if self._router.log_format is not None:
            return False
        events = self._router.decode.leading(records)
        experiment = self._experiments.get(getattr(events[0], "experiment", ""))
        if (
            len(events) < len(records)
            or experiment is None
            or experiment.started_at > first
            or not experiment.roster.unchanged_since(first)
        ):
            return False
        run = plain_run(experiment, records, events, self.clock)
        if run is None or not self._window.add_new(run.keys, run.advances):
            return False
        self.clock.add_plain(run.times, run.moves)
        return True

    def _read_each(self, records: Sequence[LogRecord]) -> None:
        for record in records:
            self.reach(record.offset)
            if isinstance(self.clock, LargestTimestamp) and record.timestamp is not None:
                self._advance(record.timestamp, record.offset)  # dead letters advanced it, too
            try:
                events = self._router.events(record)
                for event, experiment in events:
                    experiment.coder.check_at(event, record.offset)
            except (Ignored, Rejected):
                continue
            if any(experiment.started_at > record.offset for _, experiment in events):
                continue
            self._advance(timestamp_of(record, events), record.offset)
            for event, experiment in events:
                key = record_key(event.id, experiment.seed)
                capped = experiment.client_cap is not None and experiment.client_cap.count(event)
                duplicate, since = self._window.add(key), self.entry.open_since
                if duplicate or since is None or record.offset < since:
                    continue
                if isinstance(event, Impression | Click):
                    experiment.attribution.reclose(record.offset, self.clock.now)
                if isinstance(event, Impression):
                    experiment.attribution.open(
                        key, event, record.offset, self.clock.now, capped=capped
                    )
                    if not capped:
                        experiment.impressions.examples.show(event, record.offset, again=True)
                elif isinstance(event, Click):
                    impression = record_key(event.impression, experiment.seed)
                    with suppress(Rejected):
                        experiment.attribution.click(impression, event, record, self.clock.now)

    def reach(self, offset: int) -> None:
        """The record at this offset is next."""
        while self._joins and self._joins[0][0] <= offset:
            _, name, joining = self._joins.pop(0)
            if joining is None:
                self._experiments.pop(name).leave()
            else:
                self._experiments[name] = joining
        while self._resets and self._resets[0].offset <= offset:
            self._set(self._resets.popleft())
        while self._limits and self._limits[0].offset <= offset:
            self._limit(self._limits.popleft())

    @property
    def _next_change(self) -> float:
        """The offset of the next record before which `reach` changes anything."""
        changes = [at for at, *_ in self._joins] + [reset.offset for reset in self._resets]
        return min(changes + [limits.offset for limits in self._limits], default=inf)

    def _limit(self, limits: RecordLimits, *, credit: bool = False) -> None:
        """From their offset on, other limits hold.

        Args:
            limits: the limits.
            credit: whether to credit the impressions whose windows they end; False if that was done
                before the snapshot.
        """
        self._router.limit(limits)
        if limits.max_advance_ms is not None:
            self._max_advance = limits.max_advance_ms
            if isinstance(self.clock, StreamClock):
                self.clock.max_advance_ms = limits.max_advance_ms
        joining = [experiment for *_, experiment in self._joins if experiment is not None]
        experiments = sorted((*self._experiments.values(), *joining), key=attrgetter("name"))
        for experiment in experiments:
            experiment.coder.limit(limits)
        window, memory = self._window, self._memory
        present = window.max_records, window.max_ms, memory.max_bytes
        if limits.open is None or limits.open == present:
            return
        # A larger window reopens no closed impression and restores no forgotten id.
        self._close(experiments, limits.offset, credit=credit)
        window.trim()
        window.max_records, window.max_ms, memory.max_bytes = limits.open
        for experiment in experiments:
            window_ms = experiment.settings.join_window(window.max_ms)
            experiment.attribution.window_ms = window_ms
        self._close(experiments, limits.offset, credit=credit)

    def _close(self, experiments: Sequence[Experiment], offset: int, *, credit: bool) -> None:
        """Close the windows that are over before the record at an offset."""
        for experiment in experiments:
            if credit:
                experiment.close_windows(offset, offset - 1, self.clock.now)
            else:
                experiment.attribution.close(offset, self.clock.now)

    def _advance(self, timestamp: int, offset: int) -> None:
        before = self.clock.now
        since = self.clock.add(timestamp, offset)
        if since is not None:
            self._moved(before, since, offset)

    def _set(self, reset: ClockReset) -> None:
        before = self.clock.now
        self.clock = StreamClock(self._max_advance, reset.clock)
        self._moved(before, reset.offset, reset.offset)

    def _moved(self, before: int, since: int, offset: int) -> None:
        """Stream time was `before`; the record at an offset has moved it."""
        now = self.clock.now
        if since < offset or now < before:
            for experiment in self._experiments.values():
                experiment.attribution.reclose(0, before)
                experiment.attribution.retime(since, now)
            self._window.retime(since, now)
        self._window.advance(now, offset)

    def finish(self, clock: StreamClock) -> ClockReset | None:
        """All records have been re-applied; the limits of the configuration hold from now on.

        Args:
            clock: the clock of the snapshot, which holds from now on.

        Returns:
            The clock, if the records have led to another state of it: the snapshot does not tell
            how they were folded, or records or a policy are gone.
        """
        self.reach(self.entry.next)
        reset = None
        if self.clock.state() != clock.state():
            reset = ClockReset(self.entry.next, clock.state())
            self._set(reset)
        for experiment in self._experiments.values():
            experiment.attribution.reclose(0, clock.now, at_end=True)
            experiment.impressions.examples.resume(experiment.attribution.oldest)
            experiment.attribution.out_of_order = experiment.out_of_order
            experiment.saved_open = None
        if self.limits[-1].offset == self.entry.next:
            self._limit(self.limits[-1], credit=True)
        return reset

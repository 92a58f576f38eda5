"""The runner: polls, folds and commits, and restores the partitions that this process gains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import chain
from math import inf
from operator import methodcaller
from typing import Final, cast

import structlog

from streamduel.config import Config
from streamduel.connector import (
    ControlledSource,
    Failpoint,
    LogRecord,
    Outlet,
    Poll,
    Snapshot,
    Source,
    no_failpoint,
)
from streamduel.errors import Fenced, SnapshotError
from streamduel.stream import continuity, settings_change
from streamduel.stream.commit import commit
from streamduel.stream.observer import Observer
from streamduel.stream.routing import ClickLog
from streamduel.stream.snapshot_reading import check_offset
from streamduel.stream.task import PartitionTask

log = structlog.stdlib.get_logger(__name__)

IDLE_POLL: Final = 0.2
"""Timeout of a poll, in seconds, when nothing is due; a stop signal is noticed within it."""

RESTORE_POLL: Final = 0.01
"""Timeout of a poll, in seconds, while a snapshot is being loaded, to use it without delay."""

RESTORE_SECONDS: Final = 5.0
"""How long to poll so often for snapshots: far longer than loading one takes. While brokers are
away, none arrives, and a hundred polls a second cost a fifth of a core."""

LAG_INTERVAL: Final = 5.0
"""Seconds between two measurements of the lag, each a request to the broker."""

SLICE: Final = 500
"""Records that are folded between two reads of the clock: some 0.3 ms of usual duels, and seconds
of the costliest decisions among a thousand arms."""

HOLD_INTERVAL: Final = 1.0
"""Seconds of folding between two polls that only keep the ownership of the partitions; the group
takes them away after `source.max_poll_interval_ms`, a minute, without one."""

FAILURE_INTERVAL: Final = 60.0
"""Seconds between two log lines about one observer: it may fail with every poll."""

RESTORERS: Final = 4
"""Threads that load snapshots, so that a rebalance of many partitions is not one long queue."""


class Runner:
    """Runs the fold of every partition that the source assigns to this process.

    Args:
        config: the configuration.
        source: where records come from; it decides which partitions this process owns.
        outlet: where outputs and snapshots go.
        clock: monotonic seconds, for the commit interval; never used by the fold.
        observers: called after each event.
        failpoint: passed to each commit.
        restorer: loads snapshots, several at a time; by default `RESTORERS` threads. It is shut
            down at the end of `run`.
    """

    def __init__(
        self,
        config: Config,
        source: Source,
        outlet: Outlet,
        clock: Callable[[], float],
        observers: Sequence[Observer] = (),
        failpoint: Failpoint = no_failpoint,
        restorer: Executor | None = None,
    ) -> None:
        self._config = config
        self._source = source
        self._outlet = outlet
        self._clock = clock
        self._observers = list(observers)
        self._failures_logged: dict[int, float] = {}
        self._failpoint = failpoint
        self._log = ClickLog.of(source)
        self._interval = config.commit.interval_ms / 1000
        self._restorer = restorer or ThreadPoolExecutor(RESTORERS, thread_name_prefix="restore")
        self._restoring: dict[int, Future[Snapshot | None]] = {}
        self._unread: dict[int, tuple[int, int]] = {}  # what a restart cannot read again
        self._last_commit = clock()
        self._commit_seconds = 0.0
        self._next_lag = clock()
        self._next_hold = clock() + HOLD_INTERVAL
        self._restore_soon_until = clock()
        self.tasks: dict[int, PartitionTask] = {}
        self._rereading: set[int] = set()  # partitions that are read up to their snapshots

    def run(self, stop: Callable[[], bool], *, until_end: bool = False) -> None:
        """Poll, fold and commit until `stop()` is true, then commit what is folded.

        Args:
            stop: called between two polls.
            until_end: stop also when every partition of this process is folded up to the end
                that it had when it was gained.

        Raises:
            StreamduelError: a permanent error; the last commit stays valid.
        """
        try:
            while not stop():
                self._poll()
                if until_end and self._caught_up() and self._commit():
                    return
            self._commit()
        finally:
            self._restorer.shutdown(wait=False, cancel_futures=True)

    def _poll(self) -> None:
        """Poll once, fold what came, and commit if it is due."""
        poll = self._source.poll(self._timeout())
        self._polled(poll)
        for each in self.tasks.values():
            each.check_log()
        for partition, offset in poll.missed.items():
            if (task := self.tasks.get(partition)) is not None:
                self._note_missed(task, task.cut_off_at, offset)
                task.miss(offset)
        self._fold(poll.records)
        # Only now: they are not for a partition that is lost and gained while another one begins.
        self._restore()
        self._check_ends()
        self._end_rereading()
        if self._due():
            self._commit()
        self._measure_lag()

    def _polled(self, poll: Poll) -> None:
        """Note a poll, and follow the changes of ownership that it reports."""
        self._next_hold = self._clock() + HOLD_INTERVAL
        self._notify(lambda observer: observer.turned())
        connected = self._source.connected
        self._notify(lambda observer: observer.connection(source=connected))
        self._notify(lambda observer: observer.unreadable(poll.unreadable))
        if poll.lost:
            self._drop(poll.lost)
        for partition in poll.gained:
            self._restoring[partition] = self._restorer.submit(self._outlet.load, partition)
        if poll.gained:
            self._restore_soon_until = self._clock() + RESTORE_SECONDS
            self._notify(lambda observer: observer.gained(poll.gained))

    def _hold(self) -> None:
        """Keep the ownership of the partitions while much is folded between two polls."""
        if self._clock() >= self._next_hold:
            self._polled(self._source.poll(0, hold=True))

    def _timeout(self) -> float:
        if self._restoring and self._clock() < self._restore_soon_until:
            return RESTORE_POLL
        if any(task.changed for task in self.tasks.values()):
            return min(IDLE_POLL, max(0.0, self._last_commit + self._interval - self._clock()))
        return IDLE_POLL

    def _fold(self, batches: Mapping[int, Sequence[LogRecord]]) -> None:
        total = 0
        for partition, records in batches.items():
            task = self.tasks.get(partition)
            for start in range(0, len(records), SLICE):
                if start:  # long work in between must neither delay a commit nor lose the partition
                    self._hold()
                    if self._due():
                        self._commit()
                if task is None or self.tasks.get(partition) is not task:
                    break  # lost since the poll
                part = records[start : start + SLICE]
                task.fold(part)
                self._report_unread(task)
                total += len(part)
        if total:
            self._notify(lambda observer: observer.polled(total))

    def _check_ends(self) -> None:
        """Refuse a click log that ends before the snapshot: its next records would not count.

        Raises:
            SnapshotError: it ends there.
        """
        for partition, task in self.tasks.items():
            end = task.cut_off_at
            if end is not None and self._source.caught_up(partition):
                raise SnapshotError(continuity.cut_off(self._log, partition, end, task.next_offset))

    def _end_rereading(self) -> None:
        """Report the partitions that have re-read the click log up to their snapshots."""
        ended = [
            partition
            for partition in self._rereading
            if self.tasks[partition].cut_off_at is None or self._source.caught_up(partition)
        ]
        for partition in ended:
            self._rereading.discard(partition)
            self._next_lag = self._clock()
            self._notify(methodcaller("reread", self.tasks[partition]))

    def _restore(self) -> None:
        """Create tasks from the snapshots that have been loaded."""
        begun = False
        while (partition := self._loaded()) is not None:
            self._begin(partition, self._restoring[partition])
            begun = True
        if begun:
            self._commit()  # the first assignment of an experiment must not wait for records

    def _loaded(self) -> int | None:
        return next((number for number, load in self._restoring.items() if load.done()), None)

    def _begin(self, partition: int, load: Future[Snapshot | None]) -> None:
        snapshot = load.result()
        entries, place = (snapshot.entries, snapshot.place) if snapshot else (None, "")
        task = PartitionTask(self._config, self._log, partition, entries, place, self._hold)
        if snapshot is not None:
            check_offset(snapshot, task.next_offset)
        wanted = task.resume_offset
        if self._config.control_topic is not None:
            source = cast(ControlledSource, self._source)
            controls = task.controls
            controls.continue_in(
                source.seek_control(partition, controls.next, controls.takes_marker)
            )
        start = self._source.seek(partition, wanted)
        self._unread.pop(partition, None)
        if wanted is not None:
            self._note_missed(task, wanted, start)
        task.begin(start, again=snapshot is not None and snapshot.moved)
        if self._restoring.get(partition) is not load:
            return  # lost meanwhile: many first decisions take long, so they poll
        del self._restoring[partition]
        self._report(task)
        for repair in task.repairs.waiting(task.next_offset):
            log.warning(
                "repair waits", partition=partition, action=repair.action, offset=repair.at,
                stream_time=repair.to,
            )  # fmt: skip
        self.tasks[partition] = task
        if task.cut_off_at is not None:
            self._rereading.add(partition)
        self._notify(lambda observer: observer.restored(task))

    def _report(self, task: PartitionTask) -> None:
        """Log which experiments do not run as they are configured."""
        for name, experiment in sorted(task.experiments.items()):
            for since, until in experiment.gaps[-1:]:
                if since < until == task.next_offset:
                    log.warning(
                        "experiment continues", experiment=name, partition=task.partition,
                        first=since, last=until - 1,
                        advice="the experiment was not configured at these offsets; its records "
                        "there became dead letters",
                    )  # fmt: skip
        pending = {name: settings_change.pending(it) for name, it in task.experiments.items()}
        differing = {
            name: [difference.key for difference in found]
            for name, found in sorted(pending.items())
            if found
        }
        if differing:
            log.warning(
                "settings differ", partition=task.partition, experiments=len(differing),
                first=next(iter(differing)), keys=sorted({*chain(*differing.values())}),
                advice="they run on as recorded; `streamduel control apply CONFIG` shows the "
                "differences and applies the configuration",
            )  # fmt: skip

    def _note_missed(self, task: PartitionTask, reread_to: int | None, begin: int) -> None:
        """Log which records were never folded, and note which a restart cannot read again.

        Args:
            task: the partition's, which is behind.
            reread_to: how far it has re-read the click log; None if it has re-read all of it.
            begin: the first offset that the click log has left.
        """
        if begin > task.next_offset:
            log.error(
                "records missed", topic=self._log.topic, partition=task.partition,
                first=task.next_offset, last=begin - 1,
                advice="the click log deleted them before they were folded; set its retention "
                "longer than the service may be down or lag behind",
            )  # fmt: skip
        if reread_to is not None and begin > reread_to:
            first, _ = self._unread.get(task.partition, (reread_to, None))
            self._unread[task.partition] = first, min(begin, task.next_offset) - 1

    def _report_unread(self, task: PartitionTask) -> None:
        """Log that the click log has deleted records of the dedupe window."""
        if task.partition not in self._unread or task.cut_off_at is not None:
            return
        first, last = self._unread.pop(task.partition)
        if task.window.oldest == 0:  # it reaches back to the first record that was left
            log.warning(
                "dedupe window incomplete", topic=self._log.topic, partition=task.partition,
                first=first, last=last,
                advice="the click log deleted records that a restart reads again: their ids are "
                "forgotten, so a repeated record counts twice, and impressions among them are no "
                "longer open; set its retention longer than the service may be down, plus the "
                "dedupe window, plus the longest join window",
            )  # fmt: skip

    def _drop(self, partitions: Sequence[int]) -> None:
        """Drop uncommitted work; the new owner of the partition repeats it."""
        for partition in partitions:
            self.tasks.pop(partition, None)
            self._rereading.discard(partition)
            load = self._restoring.pop(partition, None)
            if load is not None:
                load.cancel()
        self._notify(lambda observer: observer.lost(partitions))

    def _due(self) -> bool:
        outputs = sum(task.outputs for task in self.tasks.values())
        if outputs >= self._config.commit.max_outputs:
            return True
        if sum(task.output_bytes for task in self.tasks.values()) >= (
            self._config.commit.max_output_bytes
        ):
            return True
        return self._clock() - self._last_commit >= self._interval

    def _commit(self) -> bool:
        """Commit the partitions that have changed; False if the commit was refused."""
        changed = [task for task in self.tasks.values() if task.changed]
        self._last_commit = began = self._clock()
        if not changed:
            return True
        commits = [task.take_commit() for task in changed]
        try:
            commit(self._outlet, commits, self._failpoint)
        except Fenced as fenced:
            log.warning("commit refused", why=str(fenced))
            self._drop(list(self.tasks))
            self._notify(lambda observer: observer.fenced())
            self._source.reannounce()
            return False
        seconds = self._clock() - began
        # While commits are slow, the next one is due no sooner than they take: slow outputs must
        # not leave time for only one poll between two commits. A single slow commit has waited for
        # the successor of a broker, and the next one is quick.
        pause = min(seconds, self._commit_seconds)
        self._commit_seconds = seconds
        self._last_commit = max(began, began + seconds + pause - self._interval)
        self._notify(lambda observer: observer.committed(changed, seconds))
        self._notify(lambda observer: observer.published(commits))
        return True

    def _measure_lag(self) -> None:
        now = self._clock()
        # The position of a partition that re-reads the click log says nothing of its lag.
        known = [partition for partition in self.tasks if partition not in self._rereading]
        if now >= self._next_lag and known and self._source.connected:
            self._next_lag = now + LAG_INTERVAL
            lags = self._source.lags(known)
            self._notify(lambda observer: observer.lagging(lags))
            # Brokers that do not answer are not asked twice: each request blocks the commits.
            held = self._source.stable_offset_lags(known) if lags else {}
            self._notify(lambda observer: observer.stable_offset_lagging(held))

    def _notify(self, event: Callable[[Observer], None]) -> None:
        for number, observer in enumerate(self._observers):
            try:
                event(observer)
            except Exception:
                # An observer must not stop the fold, nor log an error with every poll. It gets the
                # next events: without a failed one, metrics are right again after the next commit.
                now = self._clock()
                if now - self._failures_logged.get(number, -inf) >= FAILURE_INTERVAL:
                    self._failures_logged[number] = now
                    log.exception("observer failed", observer=type(observer).__name__)

    def _caught_up(self) -> bool:
        """Whether every partition is folded up to the end that it had when it was gained."""
        return (
            bool(self.tasks)
            and not self._restoring
            and all(self._source.caught_up(partition) for partition in self.tasks)
        )

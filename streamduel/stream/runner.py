"""The service's loop: poll, fold, commit; restore what is gained, forget what is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import structlog

from streamduel.config import Config
from streamduel.connector import Failpoint, LogRecord, Outlet, Snapshot, Source, no_failpoint
from streamduel.errors import Fenced
from streamduel.stream.commit import commit
from streamduel.stream.observer import Observer
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask

log = structlog.stdlib.get_logger(__name__)

IDLE_POLL: Final = 0.2
"""Seconds that a poll waits when nothing is due: a stop signal is noticed within it."""

RESTORE_POLL: Final = 0.01
"""Seconds that a poll waits while a snapshot is being read, so that it is used at once."""

LAG_INTERVAL: Final = 5.0
"""Seconds between two looks at the log's end, each a request to the broker."""

RESTORERS: Final = 4
"""Threads that read snapshots, so that a rebalance of many partitions is not one long queue."""


class Runner:
    """Runs the fold of every partition that the source hands to this process.

    Args:
        config: the configuration.
        source: where records come from; it decides which partitions are ours.
        outlet: where outputs and snapshots go.
        clock: seconds that only grow, for the commit interval; never enters the fold.
        observers: are told what happens.
        failpoint: handed to the commit.
    """

    def __init__(
        self,
        config: Config,
        source: Source,
        outlet: Outlet,
        clock: Callable[[], float],
        observers: Sequence[Observer] = (),
        failpoint: Failpoint = no_failpoint,
    ) -> None:
        self._config = config
        self._source = source
        self._outlet = outlet
        self._clock = clock
        self._observers = list(observers)
        self._failpoint = failpoint
        self._log = ClickLog(source.topic, source.partitions, source.home)
        self._interval = config.commit.interval_ms / 1000
        self._restorer = ThreadPoolExecutor(RESTORERS, thread_name_prefix="restore")
        self._restoring: dict[int, Future[Snapshot | None]] = {}
        self._last_commit = clock()
        self._next_lag = clock()
        self.tasks: dict[int, PartitionTask] = {}

    def run(self, stop: Callable[[], bool], *, until_end: bool = False) -> None:
        """Work until `stop()` says so, then commit what is done.

        Args:
            stop: asked between two polls.
            until_end: stop also when every partition that was handed to this process has
                reached the end that it had at that time.

        Raises:
            StreamduelError: what waiting will not mend; the last commit stays in force.
        """
        try:
            while not stop():
                self._turn()
                if until_end and self._caught_up() and self._commit():
                    return
            self._commit()
        finally:
            self._restorer.shutdown(wait=False, cancel_futures=True)

    def _turn(self) -> None:
        """Go round once: poll, fold, commit when due."""
        poll = self._source.poll(self._patience())
        self._tell(lambda observer: observer.turned())
        connected = self._source.connected
        self._tell(lambda observer: observer.connection(source=connected))
        if poll.lost:
            self._forget(poll.lost)
        for partition in poll.gained:
            self._restoring[partition] = self._restorer.submit(self._outlet.load, partition)
        if poll.gained:
            self._tell(lambda observer: observer.gained(poll.gained))
        self._restore()
        self._fold(poll.records)
        if self._due():
            self._commit()
        self._look_at_lag()

    def _patience(self) -> float:
        """How long the next poll may wait."""
        if self._restoring:
            return RESTORE_POLL
        if any(task.changed for task in self.tasks.values()):
            return min(IDLE_POLL, max(0.0, self._last_commit + self._interval - self._clock()))
        return IDLE_POLL

    def _fold(self, batches: Mapping[int, Sequence[LogRecord]]) -> None:
        total = 0
        for partition, records in batches.items():
            task = self.tasks.get(partition)
            if task is not None:
                task.fold(records)
                total += len(records)
        if total:
            self._tell(lambda observer: observer.polled(total))

    def _restore(self) -> None:
        """Turn snapshots that have been read into tasks."""
        ready = [partition for partition, load in self._restoring.items() if load.done()]
        for partition in ready:
            self._begin(partition, self._restoring.pop(partition).result())
        if ready:
            self._commit()  # the first assignment of an experiment is not to wait for records

    def _begin(self, partition: int, snapshot: Snapshot | None) -> None:
        entries = snapshot.entries if snapshot else None
        task = PartitionTask(self._config, self._log, partition, entries)
        wanted = task.resume_offset
        start = self._source.seek(partition, wanted)
        if wanted is not None and start > task.next_offset:
            log.error(
                "records missed", topic=self._log.topic, partition=partition,
                first=task.next_offset, last=start - 1,
                advice="they are gone from the log and were never folded; keep the log longer than "
                "streamduel may be down",
            )  # fmt: skip
        task.begin(start)
        self.tasks[partition] = task
        self._tell(lambda observer: observer.restored(task))

    def _forget(self, partitions: Sequence[int]) -> None:
        """Drop uncommitted work: whoever owns the partition now does it again."""
        for partition in partitions:
            self.tasks.pop(partition, None)
            load = self._restoring.pop(partition, None)
            if load is not None:
                load.cancel()
        self._tell(lambda observer: observer.lost(partitions))

    def _due(self) -> bool:
        waiting = sum(task.outputs for task in self.tasks.values())
        if waiting >= self._config.commit.max_outputs:
            return True
        return self._clock() - self._last_commit >= self._interval

    def _commit(self) -> bool:
        """Make what has changed visible; False when it came to nothing."""
        changed = [task for task in self.tasks.values() if task.changed]
        self._last_commit = began = self._clock()
        if not changed:
            return True
        commits = [task.take_commit() for task in changed]
        try:
            commit(self._outlet, commits, self._failpoint)
        except Fenced as fenced:
            log.warning("commit refused", why=str(fenced))
            self._forget(list(self.tasks))
            self._tell(lambda observer: observer.fenced())
            self._source.reannounce()
            return False
        seconds = self._clock() - began
        self._tell(lambda observer: observer.committed(changed, seconds))
        self._tell(lambda observer: observer.published(commits))
        return True

    def _look_at_lag(self) -> None:
        now = self._clock()
        if now >= self._next_lag and self.tasks and self._source.connected:
            self._next_lag = now + LAG_INTERVAL
            lags = self._source.lags(list(self.tasks))
            self._tell(lambda observer: observer.lagging(lags))

    def _tell(self, event: Callable[[Observer], None]) -> None:
        for observer in list(self._observers):
            try:
                event(observer)
            except Exception:
                # Whoever only watches must not stop the fold, nor fill the log with each poll.
                log.exception("observer failed", observer=type(observer).__name__)
                self._observers.remove(observer)

    def _caught_up(self) -> bool:
        """Whether every partition at hand has been folded up to the end that it had."""
        return (
            bool(self.tasks)
            and not self._restoring
            and all(self._source.caught_up(partition) for partition in self.tasks)
        )

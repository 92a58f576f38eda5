"""Log events of the service: partitions gained and lost, the connection, dead letters."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Final

import structlog

from streamduel import __version__
from streamduel.config import LoadedConfig
from streamduel.records import Reason
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask

log = structlog.stdlib.get_logger(__name__)

OUTLIER_SECONDS: Final = 60.0
"""The time between two lines about time outliers of one partition: a client with a wrong clock
causes one with each of its records."""

DEAD_LETTER_SECONDS: Final = 60.0
"""The time between two lines about dead letters of one reason: a broken producer causes thousands a
second, and each of them has its explanation in the dead-letter topic."""

MAX_NAMES: Final = 20
"""Experiments named when the service starts, so that the line stays short; more are counted."""


class ServiceLog(Observer):
    """Logs partitions restored and lost, changes of the connection, and dead letters.

    Args:
        reported: whether a report at the end counts the dead letters; a line about them is no
            warning then.
        clock: monotonic seconds.
    """

    def __init__(
        self, *, reported: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._dead_letter_level = logging.INFO if reported else logging.WARNING
        self._gained_at: dict[int, float] = {}
        self._restored_next: dict[int, int] = {}
        self._disconnected_at: float | None = None
        self._was_connected = False
        self._unreadable = ""
        self._unreadable_since = 0.0
        self._dead_letters: dict[int, Mapping[Reason, int]] = {}
        self._unlogged: Counter[Reason] = Counter()
        self._logged_at: dict[Reason, float] = {}
        self._outliers: dict[int, int] = {}
        self._unlogged_outliers: dict[int, dict[str, Any]] = {}
        self._outliers_logged_at: dict[int, float] = {}
        self._committed_at: float | None = None
        self._offsets: dict[int, int] = {}

    def started(self, loaded: LoadedConfig) -> None:
        """The service starts."""
        config, names = loaded.config, sorted(loaded.config.experiments)
        log.info(
            "started", version=__version__, config=str(loaded.path),
            source=config.source["connector"], sink=config.sink["connector"],
            experiments=len(names), names=names[:MAX_NAMES],
        )  # fmt: skip

    def stopped(self, why: str) -> None:
        """The service ends, and nothing more will be committed."""
        self._log_dead_letters(interval=0)
        self._log_outliers(interval=0)
        since = None if self._committed_at is None else self._clock() - self._committed_at
        log.info(
            "stopped", why=why, offsets=self._offsets,
            last_commit_seconds_ago=None if since is None else round(since, 3),
        )  # fmt: skip

    def gained(self, partitions: Sequence[int]) -> None:
        """Remember when restoring began."""
        self._gained_at |= dict.fromkeys(partitions, self._clock())

    def restored(self, task: PartitionTask) -> None:
        """Note its state; dead letters in the snapshot were logged before."""
        self._dead_letters[task.partition] = dict(task.dead_letters)
        self._outliers[task.partition] = task.time_outliers
        self._offsets[task.partition] = task.next_offset
        self._restored_next[task.partition] = task.next_offset
        if task.cut_off_at is None:
            self.reread(task)

    def reread(self, task: PartitionTask) -> None:
        """Log how long restoring took, and where the fold began: it may be further already."""
        now = self._clock()
        seconds = now - self._gained_at.pop(task.partition, now)
        log.info(
            "partition restored", partition=task.partition,
            next_offset=self._restored_next.pop(task.partition, task.next_offset),
            experiments=len(task.experiments), seconds=round(seconds, 3),
        )  # fmt: skip

    def lost(self, partitions: Sequence[int]) -> None:
        """Log which partitions were lost."""
        for partition in partitions:
            self._gained_at.pop(partition, None)
            self._restored_next.pop(partition, None)
            self._dead_letters.pop(partition, None)
            self._outliers.pop(partition, None)
            self._offsets.pop(partition, None)
        if partitions:
            log.info("partitions lost", partitions=list(partitions))

    def connection(self, *, source: bool) -> None:
        """Log when the click log becomes unreachable, and when it is reachable again."""
        if source and self._disconnected_at is not None:
            seconds = self._clock() - self._disconnected_at
            self._disconnected_at = None
            log.info("connection regained", seconds=round(seconds, 3))
        elif not source and self._was_connected and self._disconnected_at is None:
            self._disconnected_at = self._clock()
            log.warning("connection lost")
        self._was_connected = self._was_connected or source

    def unreadable(self, why: str) -> None:
        """Log when partitions cannot be read any more, and when all can be read again."""
        if why == self._unreadable:
            return
        if not self._unreadable:
            self._unreadable_since = self._clock()
        self._unreadable = why
        if why:
            log.warning("connection lost", why=why)
        else:
            log.info(
                "connection regained", seconds=round(self._clock() - self._unreadable_since, 3)
            )

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:  # noqa: ARG002
        """Remember the committed offsets, and count new dead letters."""
        self._committed_at = self._clock()
        for task in tasks:
            self._offsets[task.partition] = task.next_offset
            counts = dict(task.dead_letters)
            self._unlogged += Counter(counts) - Counter(self._dead_letters.get(task.partition, {}))
            self._dead_letters[task.partition] = counts
            self._count_outliers(task)
        self.turned()

    def turned(self) -> None:
        """Log dead letters and time outliers whose interval is over."""
        if self._unlogged:
            self._log_dead_letters(DEAD_LETTER_SECONDS)
        if self._unlogged_outliers:
            self._log_outliers(OUTLIER_SECONDS)

    def _count_outliers(self, task: PartitionTask) -> None:
        """Count the time outliers since the last line about the partition."""
        partition, total = task.partition, task.time_outliers
        new = total - self._outliers.get(partition, total)
        self._outliers[partition] = total
        if new:
            unlogged = self._unlogged_outliers.get(partition, {"records": 0})
            timestamp, offset = task.clock.newest_ahead or (None, None)
            self._unlogged_outliers[partition] = {
                "topic": task.topic, "partition": partition, "records": unlogged["records"] + new,
                "offset": offset, "record_time": timestamp, "stream_time": task.stream_time,
            }  # fmt: skip

    def _log_outliers(self, interval: float) -> None:
        """Log those of partitions that were last logged at least that many seconds ago."""
        now = self._clock()
        for partition, fields in sorted(self._unlogged_outliers.items()):
            if now - self._outliers_logged_at.get(partition, -inf) >= interval:
                log.warning(
                    "time outliers", **fields,
                    advice="the clock of a producer is wrong; stream time does not follow it",
                )  # fmt: skip
                self._outliers_logged_at[partition] = now
                del self._unlogged_outliers[partition]

    def _log_dead_letters(self, interval: float) -> None:
        """Log the counts of reasons that were last logged at least that many seconds ago."""
        now = self._clock()
        for reason, count in sorted(self._unlogged.items()):
            if now - self._logged_at.get(reason, -inf) >= interval:
                log.log(self._dead_letter_level, "dead letters", reason=reason, records=count)
                self._logged_at[reason] = now
                del self._unlogged[reason]

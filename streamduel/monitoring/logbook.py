"""What befalls the service itself: partitions that come and go, the connection, dead letters."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Final

import structlog

from streamduel import __version__
from streamduel.config import LoadedConfig
from streamduel.records import Reason
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask

log = structlog.stdlib.get_logger(__name__)

LETTER_SECONDS: Final = 60.0
"""Between two lines about dead letters of one reason: a broken producer makes thousands a second,
and each of them says in the dead-letter topic what is wrong with it."""

MOST_NAMES: Final = 20
"""Experiments that are named when the service starts; more are counted, and the line stays one."""


class Logbook(Observer):
    """Writes a line when a partition comes or goes, the connection too, and of dead letters.

    Args:
        reported: whether a report at the end counts the dead letters; a line of them is no
            warning then.
        clock: seconds that only grow.
    """

    def __init__(
        self, *, reported: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._letter_level = logging.INFO if reported else logging.WARNING
        self._gained: dict[int, float] = {}
        self._lost_sight_at: float | None = None
        self._seen = False
        self._letters: dict[int, Mapping[Reason, int]] = {}
        self._untold: Counter[Reason] = Counter()
        self._told_at: dict[Reason, float] = {}
        self._committed_at: float | None = None
        self._offsets: dict[int, int] = {}

    def started(self, loaded: LoadedConfig) -> None:
        """The service begins."""
        config, names = loaded.config, sorted(loaded.config.experiments)
        log.info(
            "started", version=__version__, config=str(loaded.path),
            source=config.source["connector"], sink=config.sink["connector"],
            experiments=len(names), names=names[:MOST_NAMES],
        )  # fmt: skip

    def stopped(self, why: str) -> None:
        """The service ends, and nothing more will be committed."""
        self._tell_letters(rest=0)
        since = None if self._committed_at is None else self._clock() - self._committed_at
        log.info(
            "stopped", why=why, offsets=self._offsets,
            last_commit_seconds_ago=None if since is None else round(since, 3),
        )  # fmt: skip

    def gained(self, partitions: Sequence[int]) -> None:
        """From now on their states are being restored."""
        self._gained |= dict.fromkeys(partitions, self._clock())

    def restored(self, task: PartitionTask) -> None:
        """Tell how long it took; dead letters of an earlier life are no news."""
        now = self._clock()
        seconds = now - self._gained.pop(task.partition, now)
        self._letters[task.partition] = dict(task.dead_letters)
        self._offsets[task.partition] = task.next_offset
        log.info(
            "partition restored", partition=task.partition, next_offset=task.next_offset,
            experiments=len(task.experiments), seconds=round(seconds, 3),
        )  # fmt: skip

    def lost(self, partitions: Sequence[int]) -> None:
        """Tell which."""
        for partition in partitions:
            self._gained.pop(partition, None)
            self._letters.pop(partition, None)
            self._offsets.pop(partition, None)
        if partitions:
            log.info("partitions lost", partitions=list(partitions))

    def connection(self, *, source: bool) -> None:
        """Tell when the log gets out of sight, and when it is back."""
        if source and self._lost_sight_at is not None:
            seconds = self._clock() - self._lost_sight_at
            self._lost_sight_at = None
            log.info("connection regained", seconds=round(seconds, 3))
        elif not source and self._seen and self._lost_sight_at is None:
            self._lost_sight_at = self._clock()
            log.warning("connection lost")
        self._seen = self._seen or source

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:  # noqa: ARG002
        """Remember where the log stands, and count dead letters."""
        self._committed_at = self._clock()
        for task in tasks:
            self._offsets[task.partition] = task.next_offset
            letters = dict(task.dead_letters)
            self._untold += Counter(letters) - Counter(self._letters.get(task.partition, {}))
            self._letters[task.partition] = letters
        self.turned()

    def turned(self) -> None:
        """Tell of dead letters whose time has come."""
        if self._untold:  # hardly ever
            self._tell_letters(LETTER_SECONDS)

    def _tell_letters(self, rest: float) -> None:
        """Those of reasons that have had so many seconds of rest."""
        now = self._clock()
        for reason, count in sorted(self._untold.items()):
            if now - self._told_at.get(reason, -inf) >= rest:
                log.log(self._letter_level, "dead letters", reason=reason, records=count)
                self._told_at[reason] = now
                del self._untold[reason]

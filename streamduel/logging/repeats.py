"""What is said again and again while something lasts is said once a minute."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

QUIET_SECONDS: Final = 60.0
"""Short enough to see that it still lasts, long enough not to bury what else happens: while a
broker is away, kafka-python says so for every attempt to connect, several times a second."""

MOST_KNOWN: Final = 1000
"""Different lines that are remembered; a library that puts numbers into its messages before it
logs them never says the same twice, and must not fill memory."""

LASTING: Final = ("partition", "topic")
"""Of two lines about different partitions or topics, neither repeats the other."""


class Repeats(logging.Filter):
    """Holds back what the outside world repeats, and counts it: the next line says `repeated`.

    It is for lines of libraries and connectors, which tell of attempts. What the service itself
    tells of has happened as often as it is told.

    Args:
        own: the beginning of the loggers' names whose lines all pass.
        clock: seconds that only grow.
    """

    def __init__(self, own: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._own = own
        self._clock = clock
        self._told: dict[tuple[object, ...], tuple[float, int]] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is to be written."""
        if record.levelno < logging.WARNING:  # details, for whoever has asked for all of them
            return True
        if f"{record.name}.".startswith(self._own):
            return True
        said, now = _said(record), self._clock()
        with self._lock:
            told_at, repeated = self._told.get(said, (-QUIET_SECONDS, 0))
            if now - told_at < QUIET_SECONDS:
                self._told[said] = told_at, repeated + 1
                return False
            if len(self._told) >= MOST_KNOWN:
                self._told.clear()
            self._told[said] = now, 0
        record.repeated = repeated
        return True


def _said(record: logging.LogRecord) -> tuple[object, ...]:
    """What a line says, whatever its numbers."""
    if isinstance(record.msg, dict):  # structlog's, with the event among its keys
        about = (record.msg.get(key) for key in ("event", *LASTING))
        return record.name, record.levelno, *about
    return record.name, record.levelno, str(record.msg)

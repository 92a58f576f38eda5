"""Suppression of repeated lines: each at most once a minute."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

QUIET_SECONDS: Final = 60.0
"""Short enough to show that a problem lasts, long enough to keep other lines visible: without its
broker, kafka-python logs every attempt to connect, several times a second."""

MAX_KNOWN: Final = 1000
"""Different lines that are remembered: a library that formats numbers into its messages never
repeats one, and must not fill memory."""

DISTINGUISHING: Final = ("partition", "topic", "broker")
"""Lines about different partitions, topics or brokers are no repeats."""


class Repeats(logging.Filter):
    """Suppresses repeated lines and counts them: the next such line has the key `repeated`.

    This applies to libraries and connectors, which log attempts. Lines of the service itself are
    events and all pass.

    Args:
        own: prefix of the loggers whose lines all pass.
        clock: monotonic seconds.
    """

    def __init__(self, own: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._own = own
        self._clock = clock
        self._logged: dict[tuple[object, ...], tuple[float, int]] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write the line."""
        if record.levelno < logging.WARNING:  # details that were asked for
            return True
        if f"{record.name}.".startswith(self._own):
            return True
        line, now = _identity(record), self._clock()
        with self._lock:
            logged_at, repeated = self._logged.get(line, (-QUIET_SECONDS, 0))
            if now - logged_at < QUIET_SECONDS:
                self._logged[line] = logged_at, repeated + 1
                return False
            if len(self._logged) >= MAX_KNOWN:
                self._logged.clear()
            self._logged[line] = now, 0
        record.repeated = repeated
        return True


def _identity(record: logging.LogRecord) -> tuple[object, ...]:
    """What makes two lines repeats of each other, whatever their numbers."""
    if isinstance(record.msg, dict):  # of structlog
        fields = (record.msg.get(key) for key in ("event", *DISTINGUISHING))
        return record.name, record.levelno, *fields
    return record.name, record.levelno, str(record.msg)

"""Sources of assignments, and the thread that polls one."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol

log = logging.getLogger(__name__)

FIRST_PAUSE: Final = 1.0
"""Seconds until the first retry: an orderly restart takes no longer."""

MAX_PAUSE: Final = 30.0
"""Seconds between retries: a feed is read again half a minute after it is back, and the last
assignments apply until then."""

JOIN_SECONDS: Final = 5.0
"""A poll returns within a second; the daemon thread of a longer one ends with the process."""

CHUNK_BYTES: Final = 1 << 20
"""Bytes read at a time: some thousand assignments."""


class FeedRecord(NamedTuple):
    """An assignment record, new or read before.

    Attributes:
        value: its JSON.
        at: when streamduel wrote or confirmed it, in seconds since 1970; None: now.
    """

    value: bytes | str
    at: float | None = None


class Feed(Protocol):
    """A source of assignments. All methods are called from one thread.

    Attributes:
        every: seconds to wait between two calls of `poll`; 0 where `poll` itself waits.
    """

    every: float

    def poll(self) -> Iterable[FeedRecord]:
        """The records since the last call; repeated records, old epochs and any order are allowed.

        It should return within about a second, because `Assignments.close` waits for it. Any
        exception is logged, and `poll` is retried after a pause that grows from one second to half
        a minute.
        """
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class InMemoryFeed:
    """A feed of given assignments, to test a ranker service.

    Args:
        *values: assignment records as JSON.
    """

    every = 0.02  # seconds: too short to slow a test down

    def __init__(self, *values: bytes | str) -> None:
        self._values = list(values)

    def add(self, value: bytes | str) -> None:
        """Publish another record."""
        self._values.append(value)

    def poll(self) -> Iterable[FeedRecord]:
        """All records at each call."""
        return [FeedRecord(value) for value in self._values]

    def close(self) -> None:
        """Do nothing."""


class FileFeed:
    """Follows a growing file of assignment records, one per line, as the files connector writes it.

    Args:
        path: the file; it may be created later.
    """

    every = 1.0  # seconds: checking an unchanged file costs nothing

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._file: tuple[int, int] | None = None  # device and inode
        self._read = 0  # bytes
        self._rest = b""  # of a line without its end

    def poll(self) -> Iterator[FeedRecord]:
        """The new lines; all lines if the file was replaced or truncated.

        Raises:
            OSError: the file cannot be read.
        """
        with self._path.open("rb") as file:
            status = os.fstat(file.fileno())
            if self._file != (status.st_dev, status.st_ino) or status.st_size < self._read:
                self._file, self._read, self._rest = (status.st_dev, status.st_ino), 0, b""
            file.seek(self._read)
            while chunk := file.read(CHUNK_BYTES):
                self._read += len(chunk)
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                for line in lines:
                    yield FeedRecord(line, status.st_mtime)

    def close(self) -> None:
        """Do nothing: the file is open during `poll` alone."""


class Follower:
    """Polls a feed in a daemon thread until `close`.

    Args:
        feed: the feed.
        apply: called with each record, from the thread.
    """

    def __init__(self, feed: Feed, apply: Callable[[FeedRecord], None]) -> None:
        self._feed = feed
        self._apply = apply
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="streamduel-follower", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        pause = 0.0
        while not self._closing.is_set():
            try:
                for record in self._feed.poll():
                    self._apply(record)
                    if self._closing.is_set():  # do not read a long topic to its end
                        break
            except Exception as error:  # no error of a feed may end the thread
                pause = min(MAX_PAUSE, 2 * pause or FIRST_PAUSE)
                log.warning(
                    "assignments cannot be read, the last ones still apply; retry in %.0f s: %s",
                    pause,
                    reason(error),
                )
            else:
                if pause:
                    log.info("assignments can be read again")
                pause = 0.0
            self._closing.wait(pause or self._feed.every)
        self._feed.close()

    def close(self) -> None:
        """Stop polling."""
        self._closing.set()
        self._thread.join(JOIN_SECONDS)


def reason(error: BaseException) -> str:
    """The error's message, or its type if it has none."""
    return str(error) or type(error).__name__

"""Sources of assignments (memory, file, HTTP), and the thread that polls one."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

import msgspec

from streamduel.errors import ClientError

log = logging.getLogger(__name__)

FIRST_PAUSE: Final = 1.0
"""Seconds until the first retry: an orderly restart takes no longer."""

MAX_PAUSE: Final = 30.0
"""Seconds between retries: a feed is read again half a minute after it is back, and the last
assignments apply until then."""

JOIN_SECONDS: Final = 5.0
"""A poll returns within a second; the daemon thread of a longer one ends with the process."""

CHUNK_BYTES: Final = 1 << 16
"""Bytes read at a time: a hundred assignments of a file, or between two checks of a timeout."""

EVERY_SECONDS: Final = 2.0
"""Seconds between two requests: an assignment that is a few seconds old costs little."""

MAX_EVERY: Final = 86_400.0
"""A day: a longer pause is a mistake, such as milliseconds."""

SILENCE_SECONDS: Final = 3.0
"""Timeout of connecting and of each read; the service answers in milliseconds."""

ANSWER_SECONDS: Final = 10.0
"""Timeout of a whole answer."""

MAX_ANSWER_BYTES: Final = 16 << 20
"""A hundred rankers have some 5,000 pairs of 100 bytes: half a megabyte for an experiment."""

ABSENT: Final = frozenset({404, 503})
"""The statuses of a process that does not hold an experiment; with 503 it may hold it soon."""

_NULL: Final = b"null"

_NOT_SENT: Final = re.compile(r"[\x00-\x20\x7f]")
"""Characters of which a URL has none."""

_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")

# Without redirects: the headers may contain credentials.
_HANDLERS: Final = (
    ProxyHandler,
    HTTPHandler,
    HTTPSHandler,
    HTTPErrorProcessor,
    HTTPDefaultErrorHandler,
)


class FeedRecord(NamedTuple):
    """An assignment record as JSON, new or read before.

    `at` is when streamduel wrote or confirmed it, in seconds since 1970; None: now.
    """

    value: bytes | str
    at: float | None = None


class Feed(Protocol):
    """A source of assignments. All methods are called from one thread.

    What `__str__` returns, such as an address, names the feed in the log; write no password there.
    """

    every: float
    """Seconds to wait between two calls of `poll`; 0 where `poll` itself waits."""

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
    """A feed of given assignments, as JSON, to test a ranker service."""

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
    """Follows a growing JSON Lines file of assignment records, as the files connector writes it."""

    every = 1.0  # seconds: checking an unchanged file costs nothing

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._file: tuple[int, int] | None = None  # device and inode
        self._read = 0  # bytes
        self._rest = b""  # of a line without its end

    def poll(self) -> Iterator[FeedRecord]:
        """The new lines; all lines if the file was replaced or truncated."""
        try:
            opened = self._path.open("rb")
        except FileNotFoundError:
            self._file = None  # the next file may get the inode of the deleted one
            raise
        with opened as file:
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

    def __str__(self) -> str:
        return str(self._path)


class _Entry(msgspec.Struct):
    """An experiment; its assignment is decoded later, so that an invalid one affects no other."""

    assignment: msgspec.Raw = msgspec.Raw(_NULL)


class _Answer(msgspec.Struct):
    experiments: dict[str, _Entry]


class _Refusal(msgspec.Struct, forbid_unknown_fields=True):
    """Why a running streamduel has no answer. Errors of other servers have other fields."""

    error: str


class UrlFeed:
    """Polls the monitoring port of a running streamduel; the headers are never logged."""

    def __init__(
        self, url: str, every: float = EVERY_SECONDS, headers: Mapping[str, str] | None = None
    ) -> None:
        _check_url(url)
        for name, value in (headers or {}).items():
            _check_header(name, value)
        if not isinstance(every, (int, float)) or not 0 < every <= MAX_EVERY:
            raise ClientError(
                f"every must be a number of seconds above 0 and at most {MAX_EVERY:.0f} "
                f"(found {every!r})."
            )
        self.every = every
        self._url = url
        self._headers = {"Accept": "application/json", **(headers or {})}
        self._opener = OpenerDirector()
        for handler in _HANDLERS:
            self._opener.add_handler(handler())
        self._absent = ""  # why the last answer had no experiment; empty if it had one

    def poll(self) -> Iterator[FeedRecord]:
        """The assignment of every experiment in the answer.

        No record if the process does not hold the experiment of the URL: another one may, or this
        one later. Each reason is logged once.
        """
        request = Request(self._url, headers=self._headers)  # noqa: S310 - HTTP only, see above
        deadline = time.monotonic() + ANSWER_SECONDS
        try:
            with self._opener.open(request, timeout=SILENCE_SECONDS) as response:
                text = self._read(response, deadline)
        except HTTPError as error:
            with error:
                absent = self._refusal(error, deadline)
            if not absent:
                raise ClientError(f"{self._url} answered with status {error.code}.") from None
            if absent != self._absent:
                log.info("%s has no assignment: %s", self._url, absent)
            self._absent = absent
            return
        self._absent = ""
        try:
            answer = msgspec.json.decode(text, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ClientError(f"{self._url} gave an invalid answer: {error}.") from None
        for entry in answer.experiments.values():
            if (assignment := bytes(entry.assignment)) != _NULL:
                yield FeedRecord(assignment)

    def _refusal(self, error: HTTPError, deadline: float) -> str:
        """Why a running streamduel does not hold the experiment; empty for any other error."""
        if error.code not in ABSENT:
            return ""
        try:
            return msgspec.json.decode(self._read(error, deadline), type=_Refusal).error
        except (ClientError, msgspec.DecodeError, UnicodeDecodeError):
            return ""  # another server's, perhaps too large

    def _read(self, response: Any, deadline: float) -> bytes:
        text = b""
        while chunk := response.read1(CHUNK_BYTES):
            text += chunk
            if len(text) > MAX_ANSWER_BYTES:
                raise ClientError(
                    f"{self._url} answered with more than {MAX_ANSWER_BYTES >> 20} MB."
                )
            if time.monotonic() > deadline:
                raise ClientError(f"{self._url} took more than {ANSWER_SECONDS:.0f} s to answer.")
        return text

    def close(self) -> None:
        """Do nothing: each request has its own connection."""

    def __str__(self) -> str:
        return self._url


def _check_url(url: str) -> None:
    """Refuse, with ClientError, a URL that no request can be made of."""
    try:
        parts = urlsplit(url)
        if parts.username is not None or parts.password is not None:
            raise ClientError(
                "the URL of the assignments must not contain a user or a password; pass them "
                "in the header 'Authorization'."
            )
        _ = parts.port  # raises ValueError
        asked = parts.path + parts.query
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and asked.isascii()
        valid = valid and not _NOT_SENT.search(parts.netloc + asked)
    except ValueError:
        valid = False
    if not valid:
        found = "" if "@" in str(url) else f" (found '{url}')"  # not a password
        raise ClientError(
            "the URL of the assignments must be an HTTP URL such as "
            f"'http://streamduel:9400/api/experiments'{found}."
        )


def _check_header(name: str, value: str) -> None:
    """Refuse, with ClientError, a header that cannot be sent; its value may be a password."""
    if not _HEADER_NAME.fullmatch(name):
        raise ClientError(f"the header {name!r} of the assignments must have a name of HTTP.")
    if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
        raise ClientError(
            f"the header {name!r} of the assignments must be one line of Latin-1 text; its value "
            "is not shown here."
        )


class Follower:
    """Polls a feed in a daemon thread until `close`, and applies each record there.

    `apply` gets the record, and the feed's name as the log continues "assignments".
    """

    def __init__(self, feed: Feed, apply: Callable[[FeedRecord, str], None]) -> None:
        self._feed = feed
        self._apply = apply
        is_named = type(feed).__str__ is not object.__str__
        self._of_feed = f" of {feed}" if is_named else ""
        self._closing = threading.Event()
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, name="streamduel-follower", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        pause = 0.0
        while not self._closing.is_set():
            try:
                for record in self._feed.poll():
                    self._apply(record, self._of_feed)
                    if self._closing.is_set():  # do not read a long topic to its end
                        break
            except Exception as error:  # no error of a feed may end the thread
                pause = min(MAX_PAUSE, 2 * pause or FIRST_PAUSE)
                log.warning(
                    "assignments%s cannot be read, the last ones still apply; retry in %.0f s: %s",
                    self._of_feed, pause, reason(error),
                )  # fmt: skip
            else:
                if pause:
                    log.info("assignments%s can be read again", self._of_feed)
                pause = 0.0
            self._closing.wait(pause or self._feed.every)
        self._feed.close()

    def close(self) -> None:
        """Stop polling. In a forked process, which does not poll, do nothing.

        A thread of the parent may have held the event's lock, and then nobody releases it.
        """
        if os.getpid() != self._process:
            return
        self._closing.set()
        self._thread.join(JOIN_SECONDS)


def reason(error: BaseException) -> str:
    """The error's message, or its type if it has none."""
    return str(error) or type(error).__name__

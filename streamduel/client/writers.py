"""Destinations of the click log, and the thread that writes buffered records to one."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import msgspec

from streamduel.client.feeds import reason
from streamduel.errors import ClientError, shown
from streamduel.record_rules import contradiction, misfit
from streamduel.records import Click, Duel, Impression, Interleaving

log = logging.getLogger(__name__)

MAX_RECORD_BYTES: Final = 1_000_000
"""Leaves room for the key and for Kafka's overhead within the megabyte that a topic accepts."""

MAX_BATCH: Final = 1000
"""Records per call of a writer: enough to share a few requests, few enough to take milliseconds."""

MIN_CHANCE: Final = 1e-199
"""The smallest number other than 0 that streamduel reads."""

OVERHEAD_BYTES: Final = 200
"""Memory of a record besides its text, about."""

FIRST_PAUSE: Final = 0.5
"""Seconds after a failed write; each further failure doubles it."""

MAX_PAUSE: Final = 15.0
"""Seconds between retries: writing resumes within them when the click log is back."""

GRACE_SECONDS: Final = 1.0
"""After the timeout of `close`, for the thread to notice it."""

EXIT_SECONDS: Final = 2.0
"""For the buffer of an outbox that was not closed, at the end of the program: a write takes
milliseconds, and a program that ends should not hang."""

SETTLE_SECONDS: Final = 0.01
"""Until an append of another process is complete; it takes microseconds."""

Record = Click | Duel | Impression | Interleaving

_decode: Final = msgspec.json.Decoder(Record).decode


class Message(NamedTuple):
    """A record to write: its key, which is the experiment's name, and its JSON."""

    key: bytes
    value: bytes


class Written(NamedTuple):
    """The result of a write; messages that it does not name are written.

    Attributes:
        again: the messages to retry in this order: not written, or not known to be.
        refused: the number of messages that can never be written.
    """

    again: Sequence[Message] = ()
    refused: int = 0


class Writer(Protocol):
    """A destination of records. All methods are called from one thread."""

    def write(self, messages: Sequence[Message]) -> Written:
        """Write messages; after any exception all of them are retried."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


class FileWriter:
    """Appends records to a JSON Lines file, which the files connector reads, and creates it.

    Several processes may write to one file: each appends whole lines in one call. The lines are not
    forced to the disk; a power failure may lose the last seconds.

    Raises:
        ClientError: the file cannot be opened.
    """

    def __init__(self, path: str | Path) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o644)
        except OSError as error:
            raise ClientError(f"the file {path} cannot be written to: {error.strerror}.") from None

    def write(self, messages: Sequence[Message]) -> Written:
        """Append messages; those that a full disk cuts off are retried, on a line of their own."""
        torn = self._is_torn()
        text = b"\n" * torn + b"".join(message.value + b"\n" for message in messages)
        written = os.write(self._file, text)
        return Written(messages[text.count(b"\n", 0, written) - torn :])

    def _is_torn(self) -> bool:
        """Whether the last line has no end, and no other process is writing it."""
        size = os.fstat(self._file).st_size
        if size == 0 or os.pread(self._file, 1, size - 1) == b"\n":
            return False
        time.sleep(SETTLE_SECONDS)
        return os.fstat(self._file).st_size == size

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def encode(record: Record) -> bytes:
    """Encode a record as JSON; ClientError if streamduel would refuse it."""
    value = b""
    try:
        value = msgspec.json.encode(record)
        decoded = _decode(value)
        problem = (
            _bytes(record) or contradiction(decoded) or _winner_of_one(decoded) or _chances(record)
        )
    except msgspec.ValidationError as error:
        problem = misfit(msgspec.json.decode(value), str(error))
    except (UnicodeError, TypeError) as error:
        problem = f"{error}."
    if problem is None and len(value) > MAX_RECORD_BYTES:
        problem = f"it has {len(value)} bytes, and at most {MAX_RECORD_BYTES} are allowed."
    if problem is not None:
        kind = type(record).__name__.lower()
        raise ClientError(f"this {kind} would be refused: {problem}")
    return value


def _bytes(record: Record) -> str | None:
    """Bytes are base64 in the JSON: another name, and a valid one."""
    segments = record.segment.values() if isinstance(record.segment, dict) else ()
    for value in (*msgspec.structs.astuple(record), *segments):
        if isinstance(value, bytes):
            return f"text must be of type str (found {shown(value)})."
    return None


def _winner_of_one(record: Record) -> str | None:
    """Streamduel ignores the winner of an arm served alone; in a service it is a mistake."""
    if isinstance(record, Duel) and record.a == record.b and record.winner is not None:
        return f"winner must be None where one ranker was served alone (found '{record.winner}')."
    return None


def _chances(record: Record) -> str | None:
    """What the JSON does not show: numbers that are null there, and tiny ones, slow to read."""
    for chance in getattr(record, "chances", None) or ():
        if chance is not None and not (chance == 0 or MIN_CHANCE <= chance <= 1):
            return f"chances must be 0, or numbers from {MIN_CHANCE:g} to 1 (found {chance})."
    return None


class Outbox:
    """Accepts records without blocking, and writes them in a daemon thread.

    A record stays in the buffer until it is known to be written; `capacity` is in bytes and covers
    the current write, too. Retried records go first, so that records are written in order. Of all
    records, `waiting` are not written yet, `written` are, and `dropped` will never be.
    """

    def __init__(self, writer: Writer, capacity: int) -> None:
        self.waiting = self.written = self.dropped = 0
        self._writer = writer
        self._capacity = capacity
        self._size = self._settled = 0
        self._buffer: deque[Message] = deque()
        self._changed = threading.Condition()
        self._closing = self._closed = self._ended = False
        self._expired = threading.Event()  # the timeout of `close` is over
        self._thread = threading.Thread(target=self._run, name="streamduel-outbox", daemon=True)
        self._thread.start()
        self._process = os.getpid()
        atexit.register(self.close, EXIT_SECONDS)

    def put(self, message: Message) -> bool:
        """Buffer a record; whether there was room. ClientError: closed, or of another process."""
        self._check_process()
        size = _size(message)
        with self._changed:
            if self._closing:
                raise ClientError("the event log is closed; it takes no more records.")
            if self._size + size > self._capacity:
                self.dropped += 1
                return False
            self._size += size
            self.waiting += 1
            self._buffer.append(message)
            self._changed.notify_all()
        return True

    def flush(self, timeout: float) -> bool:
        """Wait until all records buffered so far are written or refused; whether they are."""
        self._check_process()
        with self._changed:
            until = self._settled + self.waiting
            self._changed.wait_for(lambda: self._settled >= until or self._closed, timeout)
            return self._settled >= until

    def close(self, timeout: float) -> None:
        """Accept no more records, write the buffer within the timeout, and drop the rest.

        A signal handler may call it. In a forked process do nothing: its parent writes the buffer.
        """
        if os.getpid() != self._process:
            return
        with self._changed:
            if self._closed:
                return
            self._closing = True
            self._changed.notify_all()
            # Not `join`: only this wait lets the thread have the lock that an interrupted `put`
            # holds, too.
            self._changed.wait_for(lambda: self._ended, timeout)
            self._expired.set()
            self._changed.wait_for(lambda: self._ended, GRACE_SECONDS)
            self._closed = True
            atexit.unregister(self.close)  # not before: an exception may have ended the wait
            lost, self.waiting = self.waiting, 0
            self.dropped += lost
            self._changed.notify_all()
        if lost:
            log.error("%d records of the event log could not be written in time", lost)

    def _check_process(self) -> None:
        """Refuse to work in a forked process, which has no thread that could write.

        Without the lock: a thread of the parent may have held it, and then nobody releases it.
        """
        if os.getpid() != self._process:
            raise ClientError(
                "this event log was created before the process forked; create one in each process."
            )

    def _run(self) -> None:
        try:
            self._write_all()
            self._writer.close()
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _write_all(self) -> None:
        """Write batches until the outbox is closed."""
        pause = FIRST_PAUSE
        while batch := self._next_batch():
            while batch and not self._expired.is_set():
                again = self._write(batch)
                if len(again) < len(batch):
                    pause = FIRST_PAUSE
                else:
                    self._expired.wait(pause)
                    pause = min(MAX_PAUSE, 2 * pause)
                batch = again

    def _next_batch(self) -> Sequence[Message]:
        """Wait for records; none when the outbox is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._buffer or self._closing)
            if self._expired.is_set():
                return ()
            count = min(MAX_BATCH, len(self._buffer))
            return [self._buffer.popleft() for _ in range(count)]

    def _write(self, batch: Sequence[Message]) -> Sequence[Message]:
        """Write a batch; the records to retry."""
        try:
            again, refused = self._writer.write(batch)
        except Exception as error:  # no error of a writer may end the thread
            log.warning("the event log cannot be written to: %s", reason(error))
            again, refused = batch, 0
        with self._changed:
            if not self._closed:
                settled = len(batch) - len(again)
                self._size -= sum(map(_size, batch)) - sum(map(_size, again))
                self._settled += settled
                self.waiting -= settled
                self.written += settled - refused
                self.dropped += refused
                self._changed.notify_all()
        return again


def _size(message: Message) -> int:
    return len(message.key) + len(message.value) + OVERHEAD_BYTES

"""The buffer of records that are not written yet, and the thread that writes them."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from streamduel.client.feeds import reason
from streamduel.client.writers import Message, Writer
from streamduel.errors import ClientError

log = logging.getLogger(__name__)

MAX_BATCH: Final = 1000
"""Records per call of a writer: enough to share a few requests, few enough to take milliseconds."""

OVERHEAD_BYTES: Final = 200
"""Memory of a record besides its text, about."""

FIRST_PAUSE: Final = 0.5
"""Seconds after a failed write; each further failure doubles it."""

MAX_PAUSE: Final = 15.0
"""Seconds between retries: writing resumes within them when the click log is back."""

GRACE_SECONDS: Final = 1.0
"""After the timeout of `close`, for the thread to notice it."""


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
        self._closing = self._closed = False
        self._expired = threading.Event()  # the timeout of `close` is over
        self._thread = threading.Thread(target=self._run, name="streamduel-outbox", daemon=True)
        self._thread.start()

    def put(self, message: Message) -> bool:
        """Buffer a record; whether there was room for it, otherwise it is dropped.

        Raises:
            ClientError: the outbox is closed.
        """
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
        with self._changed:
            until = self._settled + self.waiting
            return self._changed.wait_for(lambda: self._settled >= until, timeout)

    def close(self, timeout: float) -> None:
        """Accept no more records, write the buffer within the timeout, and drop the rest."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout)
        self._expired.set()
        self._thread.join(GRACE_SECONDS)
        with self._changed:
            self._closed = True
            lost, self.waiting = self.waiting, 0
            self.dropped += lost
        if lost:
            log.error("%d records of the event log could not be written in time", lost)

    def _run(self) -> None:
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
        self._writer.close()

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

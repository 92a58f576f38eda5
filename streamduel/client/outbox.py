"""Records on their way out: a bounded buffer, and the thread that empties it."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from streamduel.client.follower import reason
from streamduel.errors import ClientError

log = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 1000
"""Records that a writer is handed: enough for all of them to share a few requests, few enough to be
written in milliseconds."""

OVERHEAD_BYTES: Final = 200
"""What Python needs for a record besides its text, about."""

FIRST_PAUSE: Final = 0.5
"""Seconds after a failure in which nothing was written; each further one doubles it."""

LONGEST_PAUSE: Final = 15.0
"""Seconds: the click log is looked for again within them."""

GRACE_SECONDS: Final = 1.0
"""After the time that `close` was given, for the thread to see that it is over."""


class Message(NamedTuple):
    """A record: its key, which is the experiment's name, and its JSON."""

    key: bytes
    value: bytes


class Written(NamedTuple):
    """What became of the messages that a writer was handed; those not named here are written.

    Attributes:
        again: not written, or not known to be; to be tried again, in this order.
        refused: how many can never be written.
    """

    again: Sequence[Message] = ()
    refused: int = 0


class Writer(Protocol):
    """Where records go. All its methods are called from one thread, which is its own."""

    def write(self, messages: Sequence[Message]) -> Written:
        """Write these; whatever it raises means that all of them are to be tried again."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Outbox:
    """Takes records without waiting, and hands them to a writer in a daemon thread.

    A record stays here until it is known to be written. What is tried again goes first, so that
    records are written in their order.

    Args:
        writer: where they go.
        capacity: bytes of all records that wait, those that are being written included.

    Attributes:
        waiting: records that are not written yet.
        written: records that are.
        dropped: records that never will be.
    """

    def __init__(self, writer: Writer, capacity: int) -> None:
        self.waiting = self.written = self.dropped = 0
        self._writer = writer
        self._capacity = capacity
        self._size = self._settled = 0
        self._buffer: deque[Message] = deque()
        self._changed = threading.Condition()
        self._closing = self._over = False
        self._hurry = threading.Event()  # the time that `close` was given is over
        self._thread = threading.Thread(target=self._run, name="streamduel-outbox", daemon=True)
        self._thread.start()

    def put(self, message: Message) -> bool:
        """Take a record, if there is room for it; whether there was.

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
        """Wait until every record taken so far is written or refused; whether that is so now."""
        with self._changed:
            until = self._settled + self.waiting
            return self._changed.wait_for(lambda: self._settled >= until, timeout)

    def close(self, timeout: float) -> None:
        """Take no more, write what waits within so many seconds, and drop the rest."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout)
        self._hurry.set()
        self._thread.join(GRACE_SECONDS)
        with self._changed:
            self._over = True
            lost, self.waiting = self.waiting, 0
            self.dropped += lost
        if lost:
            log.error("%d records of the event log could not be written in time", lost)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while batch := self._take():
            while batch and not self._hurry.is_set():
                again = self._write(batch)
                if len(again) < len(batch):
                    pause = FIRST_PAUSE
                else:
                    self._hurry.wait(pause)
                    pause = min(LONGEST_PAUSE, 2 * pause)
                batch = again
        self._writer.close()

    def _take(self) -> Sequence[Message]:
        """The next records, as soon as there are any; none when it is time to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._buffer or self._closing)
            if self._hurry.is_set():
                return ()
            count = min(MOST_AT_ONCE, len(self._buffer))
            return [self._buffer.popleft() for _ in range(count)]

    def _write(self, batch: Sequence[Message]) -> Sequence[Message]:
        """Hand records to the writer; those to be tried again."""
        try:
            again, refused = self._writer.write(batch)
        except Exception as error:  # no mishap of a writer may end the writing
            log.warning("the event log cannot be written to: %s", reason(error))
            again, refused = batch, 0
        with self._changed:
            if not self._over:
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

"""The newest dead letters, for the status page: reason, error sentence and place of each record.

The content of records may be about users. It stays in the click log and in the dead-letter output;
only the error sentence and the experiment's name are kept here.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from streamduel.connector import Message, PartitionCommit
from streamduel.records import Reason
from streamduel.stream.observer import Observer

MAX_DEAD_LETTERS: Final = 50
"""Kept per process: most have the same cause, and the dead-letter output has all of them."""

MAX_SENTENCE: Final = 400
"""Characters kept of an error sentence; the longest names of two arms fit."""

MAX_KEY_BYTES: Final = 1024
"""Of a record's key, which is an experiment's name of at most 256 characters."""

MAX_NAME: Final = 256
"""Characters of a name: no experiment's is longer."""

MAX_READ: Final = 16_384
"""Bytes of a letter in which the experiment is looked for: records have some hundred, and fifty
letters of this size are read in a millisecond."""

_VALUE: Final = b',"value":'
"""Where a letter's value begins. Within a text the quotation mark would have a backslash."""


class RecentDeadLetter(NamedTuple):
    """One dead letter without the record itself.

    Attributes:
        reason: the code.
        sentence: what is wrong with the record.
        topic: of the log, or its file's name.
        partition: of the log.
        offset: where the record stands.
        key: the record's, mostly the experiment's name; None if it has none.
        at: when the letter became visible, in seconds since 1970.
        experiment: that the record names, or else its key; None if there is neither.
    """

    reason: Reason
    sentence: str
    topic: str
    partition: int
    offset: int
    key: str | None
    at: float
    experiment: str | None = None


class _Head(msgspec.Struct):
    """What stands before the value."""

    reason: Reason
    error: str
    topic: str
    partition: int
    offset: int


class _Body(msgspec.Struct):
    """What the letter keeps of the record."""

    value: str | None
    encoding: Literal["base64"] | None = None


class _Named(msgspec.Struct):
    """What is read of the record itself."""

    experiment: str


_decode_head: Final = msgspec.json.Decoder(_Head).decode
_decode_body: Final = msgspec.json.Decoder(_Body).decode
_decode_named: Final = msgspec.json.Decoder(_Named).decode


class RecentDeadLetters(Observer):
    """Keeps the newest dead letters since the process started.

    A commit with thousands of them costs as much as one with `MAX_DEAD_LETTERS`: the others are not
    looked at.

    Args:
        clock: seconds since 1970.

    Attributes:
        newest: the latest last; an immutable object, replaced as a whole, so that another thread
            may read it at any time.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.newest: tuple[RecentDeadLetter, ...] = ()

    def published(self, commits: Sequence[PartitionCommit]) -> None:
        """Take note of the letters among the outputs."""
        now = self._clock()
        for commit in commits:
            if commit.dead_letters:
                new = (_letter(message, now) for message in commit.dead_letters[-MAX_DEAD_LETTERS:])
                self.newest = (*self.newest, *new)[-MAX_DEAD_LETTERS:]


def _letter(message: Message, now: float) -> RecentDeadLetter:
    """What is kept of a dead letter; a value of up to a megabyte is not even read."""
    head = _decode_head(message.value[: message.value.index(_VALUE)] + b"}")
    key = None
    if message.key is not None:
        key = message.key[:MAX_KEY_BYTES].decode(errors="replace")
    return RecentDeadLetter(
        head.reason,
        head.error[:MAX_SENTENCE],
        head.topic,
        head.partition,
        head.offset,
        key,
        now,
        _named(message.value) or key,
    )


def _named(letter: bytes) -> str | None:
    r"""The experiment that the record names, as the fold's tallies have it; None if none is found.

    >>> _named(b'{"value":"{\\"experiment\\":\\"ads\\"}"}')
    'ads'
    """
    if len(letter) > MAX_READ:
        return None
    body = _decode_body(letter)
    if body.value is None:
        return None
    value = body.value if body.encoding is None else base64.b64decode(body.value)
    try:
        name = _decode_named(value).experiment
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # it is a dead letter, after all
        return None
    return name if len(name) <= MAX_NAME else None

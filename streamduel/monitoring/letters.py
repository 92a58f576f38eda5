"""The newest dead letters, for whoever looks: why records could not be used, and where they stand.

What the records hold may be about users. It stays in the log and with the sink's dead letters;
nothing of it is kept here but the sentence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec

from streamduel.connector import Message, PartitionCommit
from streamduel.records import Reason
from streamduel.stream.observer import Observer

MOST_LETTERS: Final = 50
"""Kept of each process: what goes wrong mostly goes wrong the same way, and all of them are with
the sink."""

MOST_SENTENCE: Final = 400
"""Characters kept of a sentence; the longest names of two arms fit."""

MOST_KEY_BYTES: Final = 1024
"""Of a record's key, which is an experiment's name of at most 256 characters."""

_VALUE: Final = b',"value":'
"""Where a letter's value begins. Within a text the quotation mark would have a backslash."""


class Letter(NamedTuple):
    """One dead letter without the record itself.

    Attributes:
        reason: the code.
        sentence: what is wrong with the record.
        topic: of the log, or its file's name.
        partition: of the log.
        offset: where the record stands.
        key: the record's, mostly the experiment's name; None if it has none.
        at: when the letter became visible, in seconds since 1970.
    """

    reason: Reason
    sentence: str
    topic: str
    partition: int
    offset: int
    key: str | None
    at: float


class _Head(msgspec.Struct):
    """What stands before the value."""

    reason: Reason
    error: str
    topic: str
    partition: int
    offset: int


_decode_head: Final = msgspec.json.Decoder(_Head).decode


class Letters(Observer):
    """Keeps the newest dead letters since the process started.

    A commit with thousands of them costs as much as one with `MOST_LETTERS`: the others are not
    looked at.

    Args:
        clock: seconds since 1970.

    Attributes:
        newest: the latest last; an immutable object, replaced as a whole, so that another thread
            may read it at any time.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.newest: tuple[Letter, ...] = ()

    def published(self, commits: Sequence[PartitionCommit]) -> None:
        """Take note of the letters among the outputs."""
        now = self._clock()
        for commit in commits:
            if commit.dead_letters:
                new = (_letter(message, now) for message in commit.dead_letters[-MOST_LETTERS:])
                self.newest = (*self.newest, *new)[-MOST_LETTERS:]


def _letter(message: Message, now: float) -> Letter:
    """What is kept of a dead letter; the value, up to a megabyte, is not even read."""
    head = _decode_head(message.value[: message.value.index(_VALUE)] + b"}")
    key = message.key
    return Letter(
        head.reason,
        head.error[:MOST_SENTENCE],
        head.topic,
        head.partition,
        head.offset,
        None if key is None else key[:MOST_KEY_BYTES].decode(errors="replace"),
        now,
    )

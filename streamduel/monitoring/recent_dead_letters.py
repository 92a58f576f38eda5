"""The newest dead letters, for the status page: reason, error sentence and place of each record.

The content of records may be about users. It stays in the click log and in the dead-letter output;
only the error sentence and the experiment's name are kept here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from streamduel.connector import Message, PartitionCommit
from streamduel.records import DeadLetter, Reason
from streamduel.stream.dead_letters import MAX_KEY_BYTES
from streamduel.stream.observer import Observer

MAX_DEAD_LETTERS: Final = 50
"""Kept per process: most have the same cause, and the dead-letter output has all of them."""

MAX_SENTENCE: Final = 400
"""Characters kept of an error sentence; the longest names of two arms fit."""


class RecentDeadLetter(NamedTuple):
    """One dead letter without the record's content.

    Attributes:
        reason: the code.
        sentence: the error.
        topic: of the click log, or its file's name.
        partition: of the click log.
        offset: of the record.
        key: the record's, usually the experiment's name; None if it has none.
        at: when the dead letter became visible, in seconds since 1970.
        experiment: the one that counts it; None if it is of no experiment.
    """

    reason: Reason
    sentence: str
    topic: str
    partition: int
    offset: int
    key: str | None
    at: float
    experiment: str | None = None


class RecentDeadLetters(Observer):
    """Keeps the newest dead letters since the process started.

    A commit with thousands of them costs as much as one with `MAX_DEAD_LETTERS`.

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
        """Keep the newest dead letters of these commits."""
        now = self._clock()
        for commit in commits:
            if commit.dead_letters:
                new = [_recent(each, now) for each in commit.dead_letters[-MAX_DEAD_LETTERS:]]
                self.newest = (*self.newest, *new)[-MAX_DEAD_LETTERS:]


def _recent(message: Message, now: float) -> RecentDeadLetter:
    content = message.content
    assert isinstance(content, DeadLetter)
    key = None
    if message.key is not None:
        key = message.key[:MAX_KEY_BYTES].decode(errors="replace")
    return RecentDeadLetter(
        content.reason,
        content.error[:MAX_SENTENCE],
        content.topic,
        content.partition,
        content.offset,
        key,
        now,
        message.experiment,
    )

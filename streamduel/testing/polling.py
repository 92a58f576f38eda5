"""Polling of a source under test, with an error that says what was awaited and what arrived."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from streamduel.connector import LogRecord, Poll, Source
from streamduel.errors import counted, listed

PATIENCE: Final = 60.0
"""Seconds within which a connector must respond, on a busy machine too."""

QUIET: Final = 0.3
"""Seconds without records after which a partition is taken to deliver none."""


def poll_until(source: Source, awaited: str, enough: Callable[[Poll], bool]) -> Poll:
    """Poll until one poll is enough.

    Raises:
        AssertionError: none was; says what was awaited, and what arrived.
    """
    deadline = time.monotonic() + PATIENCE
    arrived: Counter[int] = Counter()
    gained: set[int] = set()
    while not enough(poll := source.poll(0.1)):
        gained.update(poll.gained)
        for partition, records in poll.records.items():
            arrived[partition] += len(records)
        if time.monotonic() >= deadline:
            break
    else:
        return poll
    found = [f"gain of partition {each}" for each in sorted(gained)]
    found += [f"{counted(arrived[each], 'record')} of partition {each}" for each in sorted(arrived)]
    raise AssertionError(
        f"expected {awaited} within {PATIENCE:.0f} s (arrived: {listed(found) or 'nothing'})"
    )


def gain(source: Source) -> None:
    """Wait for the ownership of the partition."""
    poll_until(source, "gain of partition 0", lambda poll: 0 in poll.gained)


def own(source: Source) -> None:
    """Gain the partition and seek: only an owner that has called `seek` may commit."""
    gain(source)
    source.seek(0, None)


def read(source: Source, count: int) -> list[LogRecord]:
    """Read at least so many records."""
    records: list[LogRecord] = []

    def enough(poll: Poll) -> bool:
        records.extend(poll.records.get(0, ()))
        return len(records) >= count

    poll_until(source, f"{counted(count, 'record')} of partition 0", enough)
    return records

"""The time of the newest records of a click log."""

from __future__ import annotations

from statistics import median_low
from typing import Final

import msgspec

from streamduel.connector import LogRecord, Source

COUNT: Final = 101
"""Records whose times are compared: up to 50 of them may have wrong clocks."""

READ: Final = 500
"""Offsets that are read for them; markers of transactions and unusable records take some."""

POLL_SECONDS: Final = 0.2


class _Dated(msgspec.Struct):
    ts: int | None = None


def newest_time(log: Source, partition: int, following: int) -> int | None:
    """The median of the newest timestamps of a partition; None if it has none.

    Args:
        log: the click log; its partition has been gained.
        partition: the partition.
        following: an offset of the partition from which its end is found.
    """
    start = log.seek(partition, following)
    end = start + log.lags([partition]).get(partition, 0)
    log.seek(partition, max(0, end - READ))
    times: list[int] = []
    while not log.caught_up(partition):
        for record in log.poll(POLL_SECONDS).records.get(partition, ()):
            time = _time(record)
            if time is not None and time > 0:
                times.append(time)
    return median_low(times[-COUNT:]) if times else None


def _time(record: LogRecord) -> int | None:
    if record.timestamp is not None:
        return record.timestamp
    if not isinstance(record.value, bytes):
        return None
    try:
        return msgspec.json.decode(record.value, type=_Dated).ts
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None

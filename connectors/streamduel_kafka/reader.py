"""Reads what a topic holds at this moment, from its beginning to its present end, once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from kafka import TopicPartition

READER: dict[str, Any] = {
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    # Where compaction has moved the beginning while we read: read from there; nothing is missed.
    "auto_offset_reset": "earliest",
    # All there is, as fast as it comes: a partition of snapshots is read alone.
    "max_partition_fetch_bytes": 8 * 1024 * 1024,
    "metrics_enabled": False,
}

# A topic ends with the mark of a transaction, which is no record: kafka-python would wait for more
# until this is over, so it is short. The request goes on across polls.
POLL_SECONDS = 0.02

# One question about offsets; while the broker is away the caller tries again.
ASK_SECONDS = 5.0


class Closed(Exception):  # noqa: N818 - not an error: the reader was asked to stop
    """The reading was given up because of `close`."""


def read_present(
    consumer: Any, partitions: list[TopicPartition], closing: threading.Event
) -> Iterator[Any]:
    """Every visible record below the present end, in order within a partition.

    Raises:
        KafkaError: the broker could not be asked for the ends, or does not let us read.
        Closed: `closing` was set.
    """
    milliseconds = int(1000 * ASK_SECONDS)
    begins = consumer.beginning_offsets(partitions, timeout_ms=milliseconds)
    ends = consumer.end_offsets(partitions, timeout_ms=milliseconds)
    consumer.assign(partitions)
    for at in partitions:
        consumer.seek(at, begins[at])
    while any(_behind(consumer, at, ends[at]) for at in partitions):
        if closing.is_set():
            raise Closed
        for at, records in consumer.poll(timeout_ms=int(1000 * POLL_SECONDS)).items():
            yield from (record for record in records if record.offset < ends[at])


def _behind(consumer: Any, at: TopicPartition, end: int) -> bool:
    position = consumer.position(at, timeout_ms=0)
    return position is None or position < end

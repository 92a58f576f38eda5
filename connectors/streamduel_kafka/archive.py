"""Reading what topics hold: published assignments and snapshots, without joining any group."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from kafka import KafkaConsumer, TopicPartition, errors

from streamduel.connector import Message, Snapshot
from streamduel.errors import ConnectorError, SnapshotError
from streamduel_kafka.clients import connect_at_start, reason
from streamduel_kafka.settings import SinkSettings, SnapshotSettings
from streamduel_kafka.topics import Topics

READER: dict[str, Any] = {
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    # Where compaction moves the beginning during the reading: continue there, nothing is missed.
    "auto_offset_reset": "earliest",
    # As much as possible at once: a partition of snapshots is read alone.
    "max_partition_fetch_bytes": 8 * 1024 * 1024,
    "metrics_enabled": False,
}

# A topic ends with the marker of a transaction, which is no record: kafka-python waits for more
# until this is over, so it is short. The request stays in flight across polls.
POLL_SECONDS = 0.02

# For one question about offsets; while the broker is down the caller retries.
ASK_SECONDS = 5.0

# The key of the record that holds the snapshot's next offset. No entry's name starts with `$`.
NEXT_OFFSET = b"$next_offset"


class Closed(Exception):  # noqa: N818 - no error: the reader was asked to stop
    """Reading was stopped by `close`."""


def read_present(
    consumer: Any, partitions: list[TopicPartition], closing: threading.Event
) -> Iterator[Any]:
    """Read every visible record below the present ends, in order within a partition.

    Raises:
        KafkaError: the broker did not answer, or does not allow it.
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


def read_snapshot(consumer: Any, at: TopicPartition, closing: threading.Event) -> Snapshot | None:
    """Read the newest visible snapshot from a partition of the snapshots' topic.

    Raises:
        SnapshotError: the partition holds something else.
        KafkaError, Closed: see `read_present`.
    """
    found: dict[bytes, bytes] = {}
    for record in read_present(consumer, [at], closing):
        if record.key is None:
            continue  # a compacted topic accepts no such record
        if record.value is None:
            found.pop(record.key, None)
        else:
            found[record.key] = record.value
    if not found:
        return None
    try:
        next_offset = int(found.pop(NEXT_OFFSET, b""))
    except ValueError:
        raise SnapshotError(
            f"partition {at.partition} of '{at.topic}' holds records, but no snapshot that this "
            "program can read; was it written by another program or another version? Use a new "
            "topic for the snapshots."
        ) from None
    return Snapshot(next_offset, {name.decode(): entry for name, entry in found.items()})


class KafkaArchive:
    """Published assignments and snapshots; what is being committed now may be missing."""

    compacted = True

    def __init__(self, sink: SinkSettings, snapshots: SnapshotSettings, partitions: int) -> None:
        self._sink = sink
        self._snapshots = snapshots
        self._partitions = partitions
        self._closing = threading.Event()

    def partitions(self) -> Sequence[int]:
        """All partitions of the snapshots' topic."""
        return range(self._partitions)

    def load(self, partition: int) -> Snapshot | None:
        """The newest visible snapshot of a partition."""
        topic = self._snapshots.topic
        consumer = connect_at_start(KafkaConsumer, self._snapshots.client_settings, **READER)
        try:
            return read_snapshot(consumer, TopicPartition(topic, partition), self._closing)
        except errors.KafkaError as error:
            raise ConnectorError(
                f"the snapshots in '{topic}' cannot be read: {reason(error)}."
            ) from error
        finally:
            consumer.close(autocommit=False)

    def published(self) -> Iterator[Message]:
        """Every committed assignment, oldest first within an experiment.

        Raises:
            ConnectorError: they cannot be read.
        """
        topic = self._sink.assignments
        consumer = connect_at_start(KafkaConsumer, self._sink.client_settings, **READER)
        try:
            numbers = sorted(consumer.partitions_for_topic(topic))
            partitions = [TopicPartition(topic, number) for number in numbers]
            for record in read_present(consumer, partitions, self._closing):
                if record.value is not None:
                    yield Message(record.key, record.value)
        except Closed:
            return
        except errors.KafkaError as error:
            raise ConnectorError(
                f"the assignments in '{topic}' cannot be read: {reason(error)}."
            ) from error
        finally:
            consumer.close(autocommit=False)

    def close(self) -> None:
        """Stop readers in other threads."""
        self._closing.set()


def open_archive(sink: SinkSettings, snapshots: SnapshotSettings) -> KafkaArchive:
    """Check that the topics exist; nothing is created.

    Raises:
        ConnectorError: a topic is missing, or the cluster cannot be reached.
    """
    with Topics(sink) as topics:
        topics.require_assignments(sink.assignments, create=False)
        partitions = topics.require_snapshots(snapshots.topic, partitions=None)
    return KafkaArchive(sink, snapshots, partitions)

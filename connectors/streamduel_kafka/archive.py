"""Reading what topics hold: published assignments and snapshots, without joining any group."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer, TopicPartition, errors

from streamduel.connector import MAX_BATCH_BYTES, Message, Snapshot
from streamduel.errors import ConnectorError, SnapshotError
from streamduel.kafka_batches import bound_reads
from streamduel.records import Rejected
from streamduel_kafka.clients import COMMAND_SECONDS, connect_at_start, reason
from streamduel_kafka.rights import Rights
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

# Of an offset: Kafka's are below 2**63.
MAX_DIGITS = 19


RESTORE = (
    "restore it from a backup, or start over with a new group and a new topic for the snapshots: "
    "the click log is then folded again from its beginning, with the same result if it is complete"
)


class Closed(Exception):  # noqa: N818 - no error: the reader was asked to stop
    """Reading was stopped by `close`."""


def read_present(
    consumer: Any, partitions: list[TopicPartition], closing: threading.Event
) -> Iterator[Any]:
    """Read every visible record below the present ends, in order within a partition.

    Raises:
        KafkaError: the broker did not answer, or does not allow it.
        ConnectorError: a batch is too large or broken.
        Closed: `closing` was set.
    """
    milliseconds = int(1000 * ASK_SECONDS)
    begins = consumer.beginning_offsets(partitions, timeout_ms=milliseconds)
    ends = consumer.end_offsets(partitions, timeout_ms=milliseconds)
    bound_reads(consumer, MAX_BATCH_BYTES)
    consumer.assign(partitions)
    for at in partitions:
        consumer.seek(at, begins[at])
    while any(_behind(consumer, at, ends[at]) for at in partitions):
        if closing.is_set():
            raise Closed
        for at, records in consumer.poll(timeout_ms=int(1000 * POLL_SECONDS)).items():
            for record in records:
                if isinstance(record.value, Rejected):
                    raise ConnectorError(
                        f"partition {at.partition} of topic '{at.topic}' holds what streamduel "
                        f"never writes: {record.value.sentence} Only streamduel may write to it."
                    )
                if record.offset < ends[at]:
                    yield record


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
    return assemble(found, at)


def assemble(found: Mapping[bytes, bytes], at: TopicPartition) -> Snapshot | None:
    """The snapshot that the newest records of a partition make, by key; None if there are none.

    Raises:
        SnapshotError: the partition holds something else.
    """
    if not found:
        return None
    place = f"partition {at.partition} of snapshots.topic '{at.topic}'"
    next_offset = found.get(NEXT_OFFSET, b"")
    if not next_offset.isdigit() or len(next_offset) > MAX_DIGITS:
        raise SnapshotError(
            f"{place} holds records, but no snapshot: its record with the key "
            f"'{NEXT_OFFSET.decode()}' is missing or damaged. If another program writes to the "
            f"topic, use a new one for the snapshots; else {RESTORE}."
        )
    entries = {}
    for key, entry in found.items():
        if key == NEXT_OFFSET:
            continue
        try:
            entries[key.decode()] = entry
        except UnicodeDecodeError:
            raise SnapshotError(
                f"{place} has a record whose key is not UTF-8 ({key[:80]!r}), which is no entry of "
                f"a snapshot; find out what else writes to the topic, and {RESTORE}."
            ) from None
    return Snapshot(int(next_offset), entries, place)


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
            rights = Rights(self._snapshots.client_settings)
            raise rights.refused(error, "Read", topic, "snapshots.topic") or ConnectorError(
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
        with Topics(self._sink) as topics:
            topics.require_published(topic)
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
            rights = Rights(self._sink.client_settings)
            raise rights.refused(error, "Read", topic, "sink.assignments") or ConnectorError(
                f"the assignments in '{topic}' cannot be read: {reason(error)}."
            ) from error
        finally:
            consumer.close(autocommit=False)

    def close(self) -> None:
        """Stop readers in other threads."""
        self._closing.set()


def open_archive(sink: SinkSettings, snapshots: SnapshotSettings) -> KafkaArchive:
    """Check that there are snapshots; nothing is created.

    Raises:
        ConnectorError: their topic is missing, or the cluster cannot be reached.
    """
    with Topics(snapshots, COMMAND_SECONDS) as topics:
        partitions = topics.require_snapshots(snapshots.topic, partitions=None)
    return KafkaArchive(sink, snapshots, partitions)

"""Reading what topics hold: published assignments and snapshots, without joining any group."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from kafka import TopicPartition, errors

from streamduel.connector import LogRecord, Message, Snapshot
from streamduel.errors import FOLDED_AGAIN, ConnectorError, SnapshotError
from streamduel.kafka_rights import Rights
from streamduel.records import Rejected
from streamduel_kafka.client import Consumer, ConsumerOptions, no_leader
from streamduel_kafka.connecting import COMMAND_SECONDS, connect_at_start, reason
from streamduel_kafka.settings import Cluster, SinkSettings, SnapshotSettings
from streamduel_kafka.topics import Topics

READER = ConsumerOptions(
    client_id="streamduel-reader",
    # As much as possible per request: a partition of snapshots is read alone. Where compaction
    # moves the beginning during the reading, it continues there, and nothing is missed.
    partition_bytes=8 * 1024 * 1024,
)

POLL_SECONDS = 0.02
"""A topic ends with the marker of a transaction, which is no record: kafka-python waits this long
for more records, so it is short. The request stays in flight across polls."""

ASK_SECONDS = 5.0
"""Timeout of one request for offsets; while the broker is down the caller retries."""

NEXT_OFFSET = b"$next_offset"
"""The key of the record that holds the snapshot's next offset. No entry's name starts with `$`."""

GROUP = b"$group"
"""The key of the record that names the group of the service that writes the snapshot."""

ASSIGNMENTS = b"$assignments"
"""The key of the record with name and id of the topic to which the last assignments went."""

MAX_DIGITS = 19
"""The most digits of an offset: Kafka's offsets are below 2**63."""


RESTORE = (
    "restore it from a backup, or start over with a new group and a new topic for the "
    f"snapshots: {FOLDED_AGAIN}"
)


class Closed(Exception):  # noqa: N818 - no error: the reader was asked to stop
    """Reading was stopped."""


def read_present(
    consumer: Consumer, partitions: list[TopicPartition], closing: threading.Event | None = None
) -> Iterator[LogRecord]:
    """Read every visible record below the present ends, in order within a partition.

    Raises:
        KafkaError: the broker did not answer, or does not allow it.
        ConnectorError: a batch is too large or broken.
        Closed: `closing` was set, by another thread.
    """
    begins = consumer.begins(partitions, ASK_SECONDS)
    ends = consumer.stable_ends(partitions, ASK_SECONDS)
    if lost := [at for at in partitions if at not in begins or at not in ends]:
        raise errors.LeaderNotAvailableError(no_leader(lost))
    consumer.assign(begins)
    while any(consumer.position(at) < ends[at] for at in partitions):
        if closing is not None and closing.is_set():
            raise Closed
        for at, records in consumer.poll(POLL_SECONDS).items():
            for record in records:
                if isinstance(record.value, Rejected):
                    raise ConnectorError(
                        f"partition {at.partition} of topic '{at.topic}' holds what streamduel "
                        f"never writes: {record.value.sentence} Only streamduel may write to it."
                    )
                if record.offset < ends[at]:
                    yield record


def read_snapshot(
    consumer: Consumer, at: TopicPartition, closing: threading.Event | None = None
) -> tuple[Snapshot | None, int]:
    """Read the newest visible snapshot from a partition of the snapshots' topic.

    Returns:
        The snapshot, and the offset of its newest record at `NEXT_OFFSET`, which distinguishes it
        from others with the same next offset.

    Raises:
        SnapshotError: the partition holds something else.
        KafkaError, Closed: see `read_present`.
    """
    found: dict[bytes, bytes] = {}
    written = -1
    for record in read_present(consumer, [at], closing):
        if record.key is None:
            continue  # a compacted topic accepts no such record
        if record.value is None:
            found.pop(record.key, None)
        elif isinstance(record.value, bytes):
            found[record.key] = record.value
            written = record.offset if record.key == NEXT_OFFSET else written
    return assemble(found, at), written


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
        if key in (NEXT_OFFSET, GROUP, ASSIGNMENTS):
            continue
        try:
            entries[key.decode()] = entry
        except UnicodeDecodeError:
            raise SnapshotError(
                f"{place} has a record whose key is not UTF-8 ({key[:80]!r}), which streamduel "
                f"never writes: find out what else writes to the topic; a record with this key "
                f"and a null value removes it."
            ) from None
    offset_place = f"the value of the key '{NEXT_OFFSET.decode()}'"
    group, assignments = (
        found[key].decode(errors="replace") if key in found else None
        for key in (GROUP, ASSIGNMENTS)
    )
    return Snapshot(int(next_offset), entries, place, offset_place, group, assignments)


def _unreadable(
    error: errors.KafkaError, cluster: Cluster, topic: str, setting: str, what: str
) -> ConnectorError:
    """The error for the user of a reader."""
    refused = Rights(cluster.client_settings).refused(error, "Read", topic, setting)
    return refused or ConnectorError(f"the {what} in '{topic}' cannot be read: {reason(error)}.")


class KafkaArchive:
    """Published assignments and snapshots; those that are being committed may be missing."""

    compacted = True

    def __init__(self, sink: SinkSettings, snapshots: SnapshotSettings, partitions: int) -> None:
        self._sink = sink
        self._snapshots = snapshots
        self._partitions = partitions
        # One for all snapshots: with many partitions, opening it takes longer than reading.
        self._reader: Consumer | None = None

    def partitions(self) -> Sequence[int]:
        """All partitions of the snapshots' topic."""
        return range(self._partitions)

    def load(self, partition: int) -> Snapshot | None:
        """The newest visible snapshot of a partition.

        Raises:
            ConnectorError: it cannot be read.
            SnapshotError: the partition holds something else.
        """
        topic = self._snapshots.topic
        if self._reader is None:
            self._reader = connect_at_start(READER, self._snapshots.client_settings)
        try:
            return read_snapshot(self._reader, TopicPartition(topic, partition))[0]
        except errors.KafkaError as error:
            with suppress(errors.KafkaError):  # the first error tells more
                self.close()
            raise _unreadable(
                error, self._snapshots, topic, "snapshots.topic", "snapshots"
            ) from error

    def published(self) -> Iterator[Message]:
        """Every committed assignment, oldest first within an experiment.

        Raises:
            ConnectorError: they cannot be read.
        """
        topic = self._sink.assignments
        with Topics(self._sink) as topics:
            topics.require_published(topic)
        consumer = connect_at_start(READER, self._sink.client_settings)
        try:
            numbers = consumer.partitions(topic, ASK_SECONDS)
            partitions = [TopicPartition(topic, number) for number in numbers]
            for record in read_present(consumer, partitions):
                if isinstance(record.value, bytes):
                    yield Message(record.key, record.value)
        except errors.KafkaError as error:
            raise _unreadable(
                error, self._sink, topic, "sink.assignments", "assignments"
            ) from error
        finally:
            consumer.close()

    def close(self) -> None:
        """Close the connections; a later `load` opens new ones."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


def open_archive(sink: SinkSettings, snapshots: SnapshotSettings) -> KafkaArchive:
    """Check that there are snapshots; nothing is created.

    Raises:
        ConnectorError: their topic is missing, or the cluster cannot be reached.
    """
    with Topics(snapshots, COMMAND_SECONDS) as topics:
        partitions = topics.require_snapshots(snapshots.topic, partitions=None)
    return KafkaArchive(sink, snapshots, partitions)

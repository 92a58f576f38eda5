"""What was written, to read only: no group, no transaction, nobody is disturbed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from kafka import KafkaConsumer, TopicPartition, errors

from streamduel.connector import Message, Outlet, PartitionCommit
from streamduel.errors import ConnectorError
from streamduel_kafka.clients import connect_at_start, reason
from streamduel_kafka.reader import READER
from streamduel_kafka.settings import SinkSettings, SnapshotSettings
from streamduel_kafka.sink import published
from streamduel_kafka.snapshots import read_entries
from streamduel_kafka.topics import Topics

READING_ONLY = "this was opened to read from only"


class ArchivedSink:
    """The assignments that were published."""

    compacted = True

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._closing = threading.Event()

    def begin(self) -> None:
        """Refused."""
        raise ConnectorError(READING_ONLY)

    def write(self, commits: Sequence[PartitionCommit]) -> None:  # noqa: ARG002
        """Refused."""
        raise ConnectorError(READING_ONLY)

    def finish(self, commits: Sequence[PartitionCommit]) -> None:  # noqa: ARG002
        """Refused."""
        raise ConnectorError(READING_ONLY)

    def published(self) -> Iterator[Message]:
        """Every committed assignment, oldest first within an experiment."""
        return published(self._settings, self._closing)

    def close(self) -> None:
        """Let a reader give up."""
        self._closing.set()


class ArchivedSnapshots:
    """The newest visible snapshots; one that is being committed may not be among them."""

    def __init__(self, settings: SnapshotSettings, partitions: int) -> None:
        self._settings = settings
        self._partitions = partitions
        self._closing = threading.Event()

    def partitions(self) -> Sequence[int]:
        """All partitions of the topic."""
        return range(self._partitions)

    def load(self, partition: int) -> dict[str, bytes]:
        """The newest visible entries of a partition."""
        topic = self._settings.topic
        consumer = connect_at_start(KafkaConsumer, self._settings.client_settings, **READER)
        try:
            return read_entries(consumer, TopicPartition(topic, partition), self._closing)
        except errors.KafkaError as error:
            raise ConnectorError(
                f"the snapshots in '{topic}' cannot be read: {reason(error)}."
            ) from error
        finally:
            consumer.close(autocommit=False)

    def save(self, commits: Sequence[PartitionCommit]) -> None:  # noqa: ARG002
        """Refused."""
        raise ConnectorError(READING_ONLY)

    def close(self) -> None:
        """Let a reader give up."""
        self._closing.set()


def open_archive(sink: SinkSettings, snapshots: SnapshotSettings) -> Outlet:
    """Check that the topics are there; nothing is created.

    Raises:
        ConnectorError: they are not, or the cluster cannot be reached.
    """
    with Topics(sink) as topics:
        topics.require_assignments(sink.assignments, create=False)
        partitions = topics.require_snapshots(snapshots.topic, partitions=None)
    return Outlet(ArchivedSink(sink), ArchivedSnapshots(snapshots, partitions))

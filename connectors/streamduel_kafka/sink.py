"""Assignments and dead letters, and the brackets of the commit: a Kafka transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition, errors

from streamduel.connector import Failpoint, Message, Outlet, PartitionCommit, Source
from streamduel.errors import ConnectorError, Fenced
from streamduel_kafka.clients import connect_at_start, reason, unreachable
from streamduel_kafka.instance import Instance
from streamduel_kafka.reader import READER, Closed, read_present
from streamduel_kafka.settings import SinkSettings, SnapshotSettings
from streamduel_kafka.snapshots import KafkaSnapshots
from streamduel_kafka.source import KafkaSource
from streamduel_kafka.topics import Topics
from streamduel_kafka.transaction import Transactions


class KafkaSink:
    """Writes into one transaction per commit; the source's offsets are in it when it is Kafka's.

    `begin`, `write` and `finish`, and `KafkaSnapshots.save`, raise Fenced when the transaction
    cannot be completed, and when it is not known whether it was. The partitions may still be ours:
    the runner calls `Source.reannounce`, and `load` tells what the last commit was.

    Args:
        settings: where assignments and dead letters go.
        transactions: shared with the snapshots.
        source: the log, when it is Kafka's too.
        instance: the name held for the transactional id, if the source holds none.
        failpoint: called between the steps of `finish`.
    """

    compacted = True

    def __init__(
        self,
        settings: SinkSettings,
        transactions: Transactions,
        source: KafkaSource | None,
        instance: Instance | None,
        failpoint: Failpoint,
    ) -> None:
        self._settings = settings
        self._transactions = transactions
        self._source = source
        self._instance = instance
        self._failpoint = failpoint
        self._closing = threading.Event()

    def begin(self) -> None:
        """Open a transaction."""
        self._transactions.begin()

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        """Add assignments, by the partition of their key, and dead letters."""
        for commit in commits:
            for key, value in commit.assignments:
                self._transactions.send(self._settings.assignments, key, value)
            for key, value in commit.dead_letters:
                self._transactions.send(self._settings.dead_letters, key, value)

    def finish(self, commits: Sequence[PartitionCommit]) -> None:
        """Commit records and offsets."""
        group = None
        offsets: dict[TopicPartition, Any] = {}
        if self._source is not None:
            group = self._source.group
            # Without a generation the broker would check nothing (see GroupOwnership).
            if group is None or not all(self._source.owns(each.partition) for each in commits):
                self._transactions.close()
                raise Fenced("the partitions to commit are not ours at present")
            for each in commits:
                at = TopicPartition(self._source.topic, each.partition)
                offsets[at] = OffsetAndMetadata(each.next_offset, "", -1)
        self._transactions.finish(offsets, group, self._failpoint)

    def published(self) -> Iterator[Message]:
        """Every committed assignment, oldest first within an experiment."""
        return published(self._settings, self._closing)

    def close(self) -> None:
        """Undo an open transaction and close the producer."""
        self._closing.set()
        self._transactions.close()
        if self._instance is not None:
            self._instance.close()


def published(settings: SinkSettings, closing: threading.Event) -> Iterator[Message]:
    """Read the assignments that are visible now; ends early when `closing` is set.

    Raises:
        ConnectorError: they cannot be read.
    """
    consumer = connect_at_start(KafkaConsumer, settings.client_settings, **READER)
    try:
        numbers = sorted(consumer.partitions_for_topic(settings.assignments))
        partitions = [TopicPartition(settings.assignments, number) for number in numbers]
        for record in read_present(consumer, partitions, closing):
            if record.value is not None:
                yield Message(record.key, record.value)
    except Closed:
        return
    except errors.KafkaError as error:
        raise ConnectorError(
            f"the assignments in '{settings.assignments}' cannot be read: {reason(error)}."
        ) from error
    finally:
        consumer.close(autocommit=False)


def open_outlet(
    sink: SinkSettings, snapshots: SnapshotSettings, source: Source, failpoint: Failpoint
) -> Outlet:
    """Check the topics, and end what a former process of our name left open.

    Raises:
        ConnectorError: the cluster or a topic is not as the settings say.
    """
    with Topics(sink) as topics:
        topics.require_assignments(sink.assignments)
        topics.require_dead_letters(sink.dead_letters)
        topics.require_snapshots(snapshots.topic, source.partitions)
    log = source if isinstance(source, KafkaSource) else None
    instance = None
    if log is not None and log.instance is not None:
        transactional_id = f"streamduel-{log.group_id}-{log.instance}"
    else:
        instance = Instance(None, f"{sorted(sink.bootstrap_servers)} {sink.assignments}")
        transactional_id = f"streamduel-{sink.assignments}-{instance.name}"
    transactions = Transactions(sink.client_settings, transactional_id, sink.transaction_timeout_ms)
    try:
        transactions.settle()
    except (errors.KafkaError, OSError) as error:
        if instance is not None:
            instance.close()
        raise unreachable(sink.client_settings, error) from error
    return Outlet(
        KafkaSink(sink, transactions, log, instance, failpoint),
        KafkaSnapshots(snapshots, transactions, source.partitions, log),
    )

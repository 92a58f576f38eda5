"""Writing outputs and snapshots: one Kafka transaction per commit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import structlog
from kafka import TopicPartition, errors

from streamduel.connector import Failpoint, PartitionCommit, Snapshot, Source
from streamduel.errors import ConnectorError, Fenced
from streamduel_kafka import transaction
from streamduel_kafka.archive import ASSIGNMENTS, GROUP, NEXT_OFFSET
from streamduel_kafka.client import Sent
from streamduel_kafka.connecting import unreachable
from streamduel_kafka.instance import Instance, transactional_id
from streamduel_kafka.settings import SinkSettings, SnapshotSettings
from streamduel_kafka.snapshots import SnapshotLoader
from streamduel_kafka.source import KafkaSource
from streamduel_kafka.topics import Topics
from streamduel_kafka.transaction import Transactions

log = structlog.stdlib.get_logger(__name__)


class KafkaOutlet:
    """Writes assignments, dead letters and snapshots; commits the source's offsets with them.

    `write` and `finish` raise Fenced when the transaction cannot be completed, and when it is
    unknown whether it was. This process may still own the partitions: the runner then calls
    `Source.reannounce`, and `load` returns the last commit.

    Args:
        settings: the topics of assignments and dead letters.
        snapshots: the snapshots' topic.
        transactions: the producer.
        loader: loads snapshots.
        source: the click log, if it is in Kafka too.
        instance: the name held for the transactional id, if the source holds none.
        failpoint: called between the steps of a commit.
        assignments: name and id of the assignments' topic, the latter if it has one.
    """

    def __init__(
        self,
        settings: SinkSettings,
        snapshots: SnapshotSettings,
        transactions: Transactions,
        loader: SnapshotLoader,
        source: KafkaSource | None,
        instance: Instance | None,
        failpoint: Failpoint,
        assignments: str,
    ) -> None:
        self._settings = settings
        self._snapshots = snapshots
        self._transactions = transactions
        self._loader = loader
        self._source = source
        self._instance = instance
        self._failpoint = failpoint
        self._assignments = assignments
        self._former: dict[int, str] = {}  # where a partition's last assignments are, if elsewhere
        self._written: dict[int, Sent] = {}  # the records at NEXT_OFFSET, by partition

    def load(self, partition: int) -> Snapshot | None:
        """The snapshot of a partition's last commit; see `SnapshotLoader.load`."""
        snapshot = self._loader.load(partition)
        self._former.pop(partition, None)
        former = None if snapshot is None else snapshot.assignments
        if snapshot is None or former is None or _same(former, self._assignments):
            return snapshot
        self._former[partition] = former
        return replace(snapshot, moved=True)

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        """Send outputs and snapshots in a new transaction."""
        send = self._transactions.send
        if self._instance is not None:
            self._instance.keep()
        if self._source is not None:
            self._source.ask_log()
        self._transactions.begin()
        self._failpoint("kafka: transaction begun")
        for commit in commits:
            for it in commit.assignments:
                send(self._settings.assignments, it.key, it.value)
            for it in commit.dead_letters:
                send(self._settings.dead_letters, it.key, it.value)
        self._failpoint("kafka: outputs sent")
        for commit in commits:
            topic, at = self._snapshots.topic, commit.partition
            for name, entry in commit.entries.items():
                send(topic, name.encode(), entry, partition=at)
            if self._source is not None and self._source.group_id is not None:
                send(topic, GROUP, self._source.group_id.encode(), partition=at)
            if commit.assignments or at not in self._former:  # a repair leaves them elsewhere
                self._report_former(at)
                send(topic, ASSIGNMENTS, self._assignments.encode(), partition=at)
            next_offset = str(commit.next_offset).encode()
            self._written[at] = send(topic, NEXT_OFFSET, next_offset, partition=at)

    def _report_former(self, partition: int) -> None:
        """Log that the assignments of a partition are published in another topic from now on."""
        if (former := self._former.pop(partition, None)) is not None:
            log.warning(
                "assignments topic changed", partition=partition, former=former,
                present=self._assignments,
                advice="it gets the last assignment of every experiment; ranker services must "
                "follow it",
            )  # fmt: skip

    def finish(self, commits: Sequence[PartitionCommit]) -> None:
        """Commit the transaction, with the offsets of the partitions."""
        deadline = time.monotonic() + transaction.COMMIT_SECONDS
        group = None
        offsets: dict[TopicPartition, tuple[int, Sent]] = {}
        if self._source is not None:
            group = self._source.group
            # Without a generation the broker would check nothing (see GroupOwnership).
            if group is None or not all(self._source.owns(each.partition) for each in commits):
                self._transactions.close()
                raise Fenced("this process does not own the partitions to commit")
            try:
                self._source.confirm_log(deadline)
            except (Fenced, ConnectorError):
                self._transactions.close()
                raise
            for each in commits:
                at = TopicPartition(self._source.topic, each.partition)
                offsets[at] = each.next_offset, self._written[each.partition]
        self._transactions.finish(offsets, group, self._failpoint, deadline)

    def close(self) -> None:
        """Stop loads in other threads, abort an open transaction and close the producer."""
        self._loader.close()
        self._transactions.close()
        if self._instance is not None:
            self._instance.close()


def _same(former: str, present: str) -> bool:
    """Whether two topics have the same name, and the same id if both are known."""
    return all(it == found for it, found in zip(former.split(), present.split(), strict=False))


def open_outlet(
    sink: SinkSettings, snapshots: SnapshotSettings, source: Source, failpoint: Failpoint
) -> KafkaOutlet:
    """Check the topics, and end a transaction that a former process of this name left open.

    Raises:
        ConnectorError: the cluster or a topic does not match the settings.
    """
    with Topics(sink) as topics:
        assignments = topics.require_assignments(sink.assignments)
        topics.require_dead_letters(sink.dead_letters)
        topics.require_snapshots(snapshots.topic, source.partitions)
    source_log = source if isinstance(source, KafkaSource) else None
    instance = group = None
    if source_log is not None and source_log.instance is not None:
        assert source_log.group_id is not None, "the instance is one of the group"
        group = source_log.group_id
        own = transactional_id(group, source_log.instance)
    else:
        instance = Instance(None, f"{sorted(sink.bootstrap_servers)} {sink.assignments}")
        own = transactional_id(sink.assignments, instance.name)
    transactions = Transactions(
        sink.client_settings, own, sink.transaction_timeout_ms, group, topics.batch_bytes,
        [snapshots.topic, sink.assignments, sink.dead_letters],
    )  # fmt: skip
    try:
        transactions.settle()
    except (errors.KafkaError, OSError) as error:
        if instance is not None:
            instance.close()
        raise transactions.refused(error) or unreachable(sink.client_settings, error) from error
    loader = SnapshotLoader(snapshots, transactions, source_log)
    named = " ".join(filter(None, [sink.assignments, assignments.id]))
    return KafkaOutlet(
        sink, snapshots, transactions, loader, source_log, instance, failpoint, named
    )

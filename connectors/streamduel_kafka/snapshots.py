"""Snapshots in a compacted topic: partition n of it holds the entries of the log's partition n."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from typing import Any

import structlog
from kafka import KafkaConsumer, TopicPartition, errors

from streamduel.connector import PartitionCommit
from streamduel.errors import ConnectorError, SnapshotError
from streamduel_kafka.clients import connect, is_fatal, reachable, reason
from streamduel_kafka.reader import ASK_SECONDS, READER, Closed, read_present
from streamduel_kafka.settings import SnapshotSettings
from streamduel_kafka.source import KafkaSource
from streamduel_kafka.transaction import Transactions

log = structlog.stdlib.get_logger(__name__)

# The entry that says up to where the snapshot goes: JSON, with the next offset as `next`.
POSITION_ENTRY = "partition"

# A transaction that nobody ends is undone by the broker after its timeout, for which it looks
# every 10 s by default; the rest is for a slow broker.
BROKER_SECONDS = 20.0

# Between two attempts: first as long as the marks of a transaction usually take, later less often.
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0


HANGING = (
    "a killed broker may have left it hanging: find it with 'kafka-transactions.sh find-hanging' "
    "and end it with its 'abort', in all partitions that it names; the work in it is done again."
)


class KafkaSnapshots:
    """Saves in the sink's transaction, and loads what the last one committed.

    `load` may be called by several threads at a time; each call has a consumer of its own.

    Args:
        settings: where the snapshots are.
        transactions: those of the sink.
        partitions: how many the log has.
        source: the log, when it is Kafka's too, and then the owner of the committed offsets.
    """

    def __init__(
        self,
        settings: SnapshotSettings,
        transactions: Transactions,
        partitions: int,
        source: KafkaSource | None,
    ) -> None:
        self._settings = settings
        self._partitions = partitions
        self._transactions = transactions
        self._source = source
        self._closing = threading.Event()

    def partitions(self) -> Sequence[int]:
        """All partitions of the log."""
        return range(self._partitions)

    def save(self, commits: Sequence[PartitionCommit]) -> None:
        """Add the entries that changed to the open transaction."""
        for commit in commits:
            for name, entry in commit.entries.items():
                self._transactions.send(
                    self._settings.topic, name.encode(), entry, partition=commit.partition
                )

    def load(self, partition: int) -> dict[str, bytes]:
        """The entries of a partition as of its last commit; waits while the broker is away.

        A transaction is decided in one place and then marked in every partition it wrote to, one
        by one. So a snapshot may be committed and not yet visible here. The committed offset is in
        the same transaction, and the broker is asked for one that no open transaction will change
        (kafka-python requires that of a "read_committed" consumer, and repeats the question until
        it gets it). Where the snapshot does not say the same offset, its mark is still to come.

        Neither may ever come: a broker that is killed just after a commit, and has no other one to
        take over, can forget the marks (seen with Kafka 4.3). Then it is said, and what to do.

        Raises:
            SnapshotError: snapshot and committed offset do not belong together.
            ConnectorError: Kafka does not let us read, or the store was closed meanwhile.
        """
        pause = FIRST_PAUSE_SECONDS
        deadline: float | None = None
        while not self._closing.is_set():
            try:
                entries, problem = self._attempt(partition)
            except Closed:
                break
            except (errors.KafkaError, OSError) as error:
                if is_fatal(error):
                    raise ConnectorError(
                        f"the snapshot of partition {partition} cannot be read: {reason(error)}."
                    ) from error
                log.warning("snapshot not read yet", partition=partition, error=reason(error))
                deadline = None  # the broker needs its time anew when it is back
            else:
                if problem is None:
                    return entries
                deadline = deadline or time.monotonic() + self._patience()
                if time.monotonic() > deadline:
                    raise SnapshotError(problem)
                log.debug("snapshot awaits a transaction", partition=partition, why=problem)
            self._closing.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        raise ConnectorError(f"the snapshot of partition {partition} was not loaded: shutting down")

    def _patience(self) -> float:
        return self._transactions.timeout_ms / 1000 + BROKER_SECONDS

    def _attempt(self, partition: int) -> tuple[dict[str, bytes], str | None]:
        # Ends what a former process of our name left open, which else had to time out.
        self._transactions.settle()
        options = {"group_id": self._source.group_id} if self._source else {}
        consumer = connect(
            KafkaConsumer, self._settings.client_settings, ASK_SECONDS, **READER, **options
        )
        try:
            # In this order: a commit between the two questions would be ours, and we make none.
            try:
                committed = self._committed(consumer, partition)
            except errors.KafkaTimeoutError:
                if reachable(consumer):
                    return {}, self._pending(partition)
                raise
            at = TopicPartition(self._settings.topic, partition)
            entries = read_entries(consumer, at, self._closing)
        finally:
            consumer.close(autocommit=False)
        return entries, self._disagreement(partition, entries, committed)

    def _committed(self, consumer: Any, partition: int) -> int | None:
        if self._source is None:
            return None
        at = TopicPartition(self._source.topic, partition)
        offset: int | None = consumer.committed(at, timeout_ms=int(1000 * ASK_SECONDS))
        return offset

    def _pending(self, partition: int) -> str:
        assert self._source is not None
        return (
            f"the offset of partition {partition} in group '{self._source.group_id}' is held by a "
            f"transaction for longer than any may last; {HANGING}"
        )

    def _disagreement(
        self, partition: int, entries: dict[str, bytes], committed: int | None
    ) -> str | None:
        if committed is None:
            return None  # a new group, or one whose offsets expired while it was away
        assert self._source is not None
        group = self._source.group_id
        if not entries:
            return (
                f"group '{group}' has committed offset {committed} of partition {partition}, but "
                f"snapshots.topic '{self._settings.topic}' has no snapshot of it; was the topic "
                "emptied, or is the group another program's? Take a new group to start anew."
            )
        following = next_offset(partition, entries)
        if following == committed:
            return None
        return (
            f"the snapshot of partition {partition} goes to offset {following}, but group "
            f"'{group}' has committed {committed}; {HANGING} If there is none, the offsets were "
            f"reset by hand: set this one to {following}, for the snapshot says where to go on."
        )

    def close(self) -> None:
        """Let threads that load give up."""
        self._closing.set()


def read_entries(consumer: Any, at: TopicPartition, closing: threading.Event) -> dict[str, bytes]:
    """The newest value of every name; one without a value was deleted."""
    entries: dict[str, bytes] = {}
    for record in read_present(consumer, [at], closing):
        if record.key is None:
            continue  # not ours: a compacted topic takes no such record
        if record.value is None:
            entries.pop(record.key.decode(), None)
        else:
            entries[record.key.decode()] = record.value
    return entries


def next_offset(partition: int, entries: dict[str, bytes]) -> int:
    """Up to where a snapshot goes.

    Raises:
        SnapshotError: it does not say so.
    """
    try:
        found = json.loads(entries[POSITION_ENTRY])["next"]
    except (KeyError, TypeError, ValueError):
        found = None
    if not isinstance(found, int):
        raise SnapshotError(
            f"the snapshot of partition {partition} has no entry '{POSITION_ENTRY}' with a number "
            "'next'; was it written by something else? Take a new topic for the snapshots."
        )
    return found

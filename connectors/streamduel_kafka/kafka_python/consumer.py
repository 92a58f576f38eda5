"""Consumers of kafka-python."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from kafka import KafkaConsumer, TopicPartition, errors
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer import IsolationLevel, OffsetSpec

from streamduel.connector import LogRecord
from streamduel.kafka_batches import bound_reads
from streamduel_kafka.client import Committed, ConsumerOptions, Found, Listener
from streamduel_kafka.kafka_python import private
from streamduel_kafka.kafka_python.opening import opened

CONSUMER: Final[dict[str, Any]] = {
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    # Of all partitions together, per broker: what was fetched waits in memory.
    "fetch_max_bytes": 16 * 1024 * 1024,
    # kafka-python has one fetch in flight per broker. A fetch from partitions without new records
    # delays all the others by this: at Kafka's default of half a second, reading fell from 150,000
    # to 40,000 records a second where a fetch held more than a poll takes. Twenty fetches a second
    # cost an idle process 2 % of a core.
    "fetch_max_wait_ms": 50,
    # If a fetch arrives between kafka-python's look for fetched records and its look for open
    # fetches, it finds neither, and sleeps for this long although records have arrived. At 1,000
    # records/s and a commit every 100 ms, the default of 100 ms was a third of the time from a
    # click to its assignment.
    "retry_backoff_ms": 10,
    "metrics_enabled": False,  # unused, and computed for each fetch
}

METADATA_MS: Final = 5000
"""Timeout of the question whether a topic exists, as of a connection."""


class PythonConsumer:
    """See `streamduel_kafka.client.Consumer`."""

    def __init__(self, consumer: Any, *, static: bool) -> None:
        self._consumer = consumer
        self._static = static

    @property
    def connected(self) -> bool:
        """See the protocol."""
        return private.connected(self._consumer)

    def subscribe(self, topic: str, listener: Listener) -> None:
        """See the protocol."""
        self._consumer.subscribe([topic], listener=_Rebalances(self, listener))
        # Only to have the topic's metadata before joining the group: a leader that does not know
        # the partitions assigns none at first, and rebalances soon after.
        with contextlib.suppress(errors.KafkaError):
            self._consumer.beginning_offsets([TopicPartition(topic, 0)], METADATA_MS)

    @property
    def membership(self) -> Any:
        """The present membership in the group."""
        return self._consumer.group_metadata()

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See the protocol."""
        self._consumer.assign(list(positions))
        for at, offset in positions.items():
            self._consumer.seek(at, offset)

    def assign_held(self, partitions: Collection[TopicPartition]) -> None:
        """See the protocol."""
        self._consumer.assign(list(partitions))
        self.place(partitions)

    def place(self, partitions: Collection[TopicPartition]) -> None:
        """Pause partitions that this process gained.

        Each gets some position: without one kafka-python would fetch the group's committed offset,
        and wait for it while a transaction of the former owner is open; and it would continue at
        the old position of a partition that this process owned before.
        """
        self._consumer.pause(*partitions)
        for at in partitions:
            self._consumer.seek(at, 0)

    def assignment(self) -> set[TopicPartition]:
        """See the protocol."""
        return set(self._consumer.assignment())

    def hold(self, partitions: Collection[TopicPartition]) -> None:
        """See the protocol."""
        self._consumer.pause(*partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """See the protocol."""
        self._consumer.resume(*partitions)

    def seek(self, at: TopicPartition, offset: int) -> None:
        """See the protocol."""
        self._consumer.seek(at, offset)
        private.drop_fetched(self._consumer, at)

    def position(self, at: TopicPartition) -> int:
        """See the protocol.

        Unknown, and then 0, only where the beginning has moved and is being asked for.
        """
        try:
            return self._consumer.position(at, timeout_ms=0) or 0
        except errors.KafkaError:
            return 0

    def poll(self, seconds: float) -> Mapping[TopicPartition, Sequence[LogRecord]]:
        """See the protocol."""
        if self._static:
            private.continue_joining(self._consumer)
        try:
            found: Mapping[TopicPartition, Sequence[LogRecord]] = self._consumer.poll(
                timeout_ms=int(1000 * seconds)
            )
        except OSError as error:  # it has ended kafka-python's heartbeats, too
            raise errors.KafkaConfigurationError(
                f"a certificate or key of source cannot be loaded: {error}"
            ) from error
        if self._static and private.displaced(self._consumer):
            raise errors.FencedInstanceIdError
        return found

    def begins(
        self, partitions: Sequence[TopicPartition], seconds: float
    ) -> dict[TopicPartition, int]:
        """See the protocol."""
        return private.offsets(self._consumer, partitions, OffsetSpec.EARLIEST, seconds)

    def stable_ends(
        self, partitions: Sequence[TopicPartition], seconds: float
    ) -> dict[TopicPartition, int]:
        """See the protocol."""
        return private.offsets(self._consumer, partitions, OffsetSpec.LATEST, seconds)

    def high_watermarks(
        self, partitions: Sequence[TopicPartition], seconds: float
    ) -> dict[TopicPartition, int]:
        """See the protocol."""
        return private.offsets(
            self._consumer, partitions, OffsetSpec.LATEST, seconds, IsolationLevel.READ_UNCOMMITTED
        )

    def committed(self, at: TopicPartition, seconds: float) -> Committed | None:
        """See the protocol."""
        found = self._consumer.committed(at, metadata=True, timeout_ms=int(1000 * seconds))
        return None if found is None else Committed(found.offset, found.metadata.rstrip("\0"))

    def answers(self, seconds: float) -> bool:  # noqa: ARG002 - known without asking
        """See the protocol."""
        return self.connected

    def partitions(self, topic: str, seconds: float) -> list[int]:  # noqa: ARG002 - its own limit
        """See the protocol."""
        return sorted(self._consumer.partitions_for_topic(topic) or ())

    def known(self, topic: str) -> Found | None:
        """See the protocol."""
        return private.known(self._consumer, topic)

    def ask_topic(self, topic: str) -> Any:  # noqa: ARG002 - asks for all of the consumer's
        """See the protocol."""
        return private.ask_topics(self._consumer)

    def await_answer(self, topic: str, asked: Any, seconds: float) -> Found | None:
        """See the protocol."""
        return private.await_answer(self._consumer, topic, asked, seconds)

    def close(self) -> None:
        """See the protocol."""
        self._consumer.close(autocommit=False)


class _Rebalances(ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python is untyped
    """Passes the decisions of the group on.

    kafka-python calls it in its own thread, while `KafkaConsumer.poll` waits in ours (only that
    method drives the joining of a group). These methods change the consumer's memory only: a
    request would wait for the thread that runs them.
    """

    def __init__(self, consumer: PythonConsumer, listener: Listener) -> None:
        self._consumer = consumer
        self._listener = listener

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:  # noqa: ARG002
        """Before a new generation."""
        self._listener.revoked()

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:  # noqa: ARG002
        """This member was removed from the group."""
        self._listener.revoked()

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """A new generation."""
        self._consumer.place(assigned)
        self._listener.assigned(assigned, self._consumer.membership)


def open_consumer(
    settings: Mapping[str, Any], options: ConsumerOptions, seconds: float
) -> PythonConsumer:
    """Connect a consumer, within this time."""
    member = options.membership
    arguments: dict[str, Any] = {
        **CONSUMER,
        "client_id": options.client_id,
        "group_id": options.group,
        "max_poll_records": options.max_records,
        "max_partition_fetch_bytes": options.partition_bytes,
        "metadata_max_age_ms": int(1000 * options.metadata_seconds),
        # "none": kafka-python would else silently read, and count, a recreated topic from its
        # start.
        "auto_offset_reset": "earliest" if options.skips_deleted else "none",
    }
    if member is not None:
        arguments |= {
            "group_instance_id": member.instance,
            # Eager (see `GroupOwnership`). Sticky: a partition stays where its state is. Range is
            # for a group in which some processes still, or already, use confluent-kafka.
            "partition_assignment_strategy": [StickyPartitionAssignor, RangePartitionAssignor],
            "session_timeout_ms": member.session_timeout_ms,
            "heartbeat_interval_ms": member.heartbeat_ms,
            "max_poll_interval_ms": member.max_poll_interval_ms,
        }
    consumer = opened(KafkaConsumer, settings, seconds, **arguments)
    bound_reads(consumer, options.max_batch_bytes)
    return PythonConsumer(consumer, static=member is not None)

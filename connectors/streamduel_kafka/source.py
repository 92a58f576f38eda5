"""Reading the click log from a topic."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import structlog
from kafka import KafkaConsumer, TopicPartition, errors
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from streamduel.connector import LogRecord, Poll
from streamduel.errors import ConnectorError
from streamduel_kafka import kafka_python
from streamduel_kafka.clients import (
    BOOTSTRAP_SECONDS,
    connect_at_start,
    is_fatal,
    name_taken,
    reason,
)
from streamduel_kafka.instance import Instance
from streamduel_kafka.partitions import (
    NOTHING,
    GroupOwnership,
    Ownership,
    WholeLog,
    home_partition,
)
from streamduel_kafka.settings import SourceSettings
from streamduel_kafka.topics import Topics

log = structlog.stdlib.get_logger(__name__)

# The longest that a question about offsets may block everything else. Answers take milliseconds;
# while the broker is down, the loop of polls is the better place to wait.
ASK_SECONDS = 5.0

# The lag is for monitoring; it may be missing once.
LAG_SECONDS = 1.0

# Between two attempts, where kafka-python reports an error at once instead of waiting.
PAUSE_SECONDS = 0.1

# A member that leaves or dies is noticed within three missed heartbeats, as Kafka recommends.
HEARTBEAT_MS = 3000

CONSUMER: dict[str, Any] = {
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    # An offset that the topic does not hold is an error, see `_out_of_range`: with "earliest"
    # kafka-python would silently read, and count, a recreated topic from its start.
    "auto_offset_reset": "none",
    # Some 3,000 records of a usual click log: about one poll, so that all partitions are fetched
    # from again at once. A single larger record is delivered nevertheless (KIP-74).
    "max_partition_fetch_bytes": 1024 * 1024,
    # kafka-python has one fetch in flight per broker. A fetch from partitions without new records
    # delays all the others by this: at Kafka's default of half a second, reading fell from 150,000
    # to 40,000 records a second where a fetch held more than a poll takes. Twenty fetches a second
    # cost an idle process 2 % of a core.
    "fetch_max_wait_ms": 50,
    "metrics_enabled": False,  # unused, and computed for each fetch
}


class Bounds(NamedTuple):
    """The offsets of a partition's first record and of its next one."""

    begin: int
    end: int


class KafkaSource:
    """A topic as a click log.

    Args:
        consumer: kafka-python's, set up by `open_source` or `open_log`.
        ownership: decides which partitions this process owns.
        topic: the topic's name.
        partitions: its number of partitions.
        group_id: the group; None without one.
        instance: this process's name in the group, held until `close`; None without a group.
    """

    def __init__(
        self,
        consumer: Any,
        ownership: Ownership,
        topic: str,
        partitions: int,
        *,
        group_id: str | None = None,
        instance: Instance | None = None,
    ) -> None:
        self._consumer = consumer
        self._ownership = ownership
        self._topic = topic
        self._partitions = partitions
        self._instance = instance
        self.group_id = group_id
        self._assigned = NOTHING
        self._delivering: set[int] = set()  # owned partitions after their `seek`
        self._reannounce = False
        self._targets: dict[int, int | None] = {}  # their ends at the time of `seek`, if known

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._topic

    @property
    def partitions(self) -> int:
        """The topic's number of partitions."""
        return self._partitions

    @property
    def connected(self) -> bool:
        """Whether there is a connection to at least one broker."""
        return kafka_python.connected(self._consumer)

    @property
    def group(self) -> Any:
        """The membership that commits must carry; None while nothing may be committed."""
        return self._assigned.group

    @property
    def instance(self) -> str | None:
        """This process's name in the group."""
        return self._instance.name if self._instance else None

    def owns(self, partition: int) -> bool:
        """Whether this process owns a partition, and has called `seek` for it."""
        return partition in self._delivering

    def home(self, experiment: str) -> int:
        """The partition to which Kafka's producers send this key."""
        return home_partition(experiment, self._partitions)

    def poll(self, timeout: float) -> Poll:
        """Wait for records and for changes of ownership; empty while the broker is down.

        Raises:
            ConnectorError: a permanent error.
        """
        again, self._reannounce = self._reannounce, False
        fetched = self._fetch(0 if again else timeout)
        assigned = self._ownership.latest()
        lost: list[int] = []
        gained: list[int] = []
        if again or assigned is not None:
            lost = sorted(self._assigned.partitions)
            self._assigned = assigned or self._assigned
            gained = sorted(self._assigned.partitions)
            self._gain(gained)
        # Only now: records fetched before a partition changed its owner are not delivered.
        records: dict[int, Sequence[LogRecord]] = {
            each.partition: batch
            for each, batch in fetched.items()
            if each.partition in self._delivering
        }
        return Poll(lost, gained, records)

    def _fetch(self, timeout: float) -> dict[TopicPartition, list[Any]]:
        started = time.monotonic()
        try:
            fetched: dict[TopicPartition, list[Any]] = self._consumer.poll(
                timeout_ms=int(1000 * timeout)
            )
        except errors.OffsetOutOfRangeError as error:
            self._out_of_range(error.args[0])
            return {}
        except errors.KafkaError as error:
            if isinstance(error, errors.FencedInstanceIdError):
                raise name_taken() from error
            if is_fatal(error) or not error.retriable:
                raise self._unreadable(error) from error
            log.warning("read failed", topic=self._topic, error=reason(error))
            rest = timeout - (time.monotonic() - started)
            time.sleep(max(0.0, min(rest, PAUSE_SECONDS)))
            return {}
        if self._instance is not None and kafka_python.displaced(self._consumer):
            raise name_taken()
        return fetched

    def _gain(self, gained: Sequence[int]) -> None:
        if gained and gained[-1] >= self._partitions:
            raise ConnectorError(
                f"topic '{self._topic}' has more partitions now than the {self._partitions} it had "
                "at start; the number of partitions decides the home of an experiment, so move the "
                "experiments to a new topic, or start again with a new group and snapshots."
            )
        self._delivering.clear()
        self._consumer.pause(*map(self._at, gained))

    def reannounce(self) -> None:
        """Report all owned partitions as lost and gained at the next poll."""
        self._reannounce = True

    def seek(self, partition: int, offset: int | None) -> int:
        """Deliver a gained partition from this offset on, or from its beginning.

        While the broker is down, an offset is not checked: if the topic does not hold it, a poll
        finds out, and does what would have been done here.

        Raises:
            ConnectorError: the partition ends before this offset; or its beginning is unknown
                because the broker is down.
        """
        at = self._at(partition)
        bounds = self._bounds(at, ASK_SECONDS if offset is not None else BOOTSTRAP_SECONDS)
        if bounds is None:
            if offset is None:
                raise ConnectorError(f"the beginning of {_name(at)} cannot be had from the broker.")
            start = offset
        else:
            begin, end = bounds
            start = begin if offset is None else max(begin, offset)
            if start > end:
                raise _truncated(at, start, end)
        self._targets[partition] = bounds.end if bounds else None
        self._consumer.seek(at, start)
        self._consumer.resume(at)
        self._delivering.add(partition)
        return start

    def _bounds(self, at: TopicPartition, seconds: float) -> Bounds | None:
        """The present bounds of a partition; None without an answer in time."""
        deadline = time.monotonic() + seconds
        while (rest := deadline - time.monotonic()) > 0:
            milliseconds = int(1000 * min(rest, ASK_SECONDS))
            try:
                begin = self._consumer.beginning_offsets([at], timeout_ms=milliseconds)[at]
                # The end of committed records: no later offset was ever delivered.
                end = self._consumer.end_offsets([at], timeout_ms=milliseconds)[at]
            except errors.KafkaError as error:
                if is_fatal(error):
                    raise self._unreadable(error) from error
                log.warning(
                    "offsets unknown", topic=at.topic, partition=at.partition, error=reason(error)
                )
                time.sleep(min(rest, PAUSE_SECONDS))
            else:
                return Bounds(begin, end)
        return None

    def _out_of_range(self, positions: dict[TopicPartition, int]) -> None:
        for at, position in positions.items():
            bounds = self._bounds(at, ASK_SECONDS)
            if bounds is None or at.partition not in self._delivering:
                continue  # if it is still out of range, the next poll reports it again
            if position > bounds.end:
                raise _truncated(at, position, bounds.end)
            if position < bounds.begin:
                log.error(
                    "records missed", topic=at.topic, partition=at.partition,
                    first=position, last=bounds.begin - 1,
                    advice="the topic no longer holds them, and they were never folded; its "
                    "retention is shorter than the lag",
                )  # fmt: skip
                self._consumer.seek(at, bounds.begin)

    def caught_up(self, partition: int) -> bool:
        """Whether the partition's end at the time of `seek` has been reached."""
        target = self._targets[partition]
        if target is None:
            bounds = self._bounds(self._at(partition), ASK_SECONDS)
            if bounds is None:
                return False
            target = self._targets[partition] = bounds.end
        return self._position(partition) >= target

    def lags(self, partitions: Sequence[int]) -> dict[int, int]:
        """The distance of the ends from the positions, markers of transactions included."""
        asked = [self._at(partition) for partition in partitions]
        try:
            ends = self._consumer.end_offsets(asked, timeout_ms=int(1000 * LAG_SECONDS))
        except errors.KafkaError as error:
            log.debug("lag unknown", topic=self._topic, error=reason(error))
            return {}
        return {
            at.partition: max(0, end - self._position(at.partition)) for at, end in ends.items()
        }

    def _position(self, partition: int) -> int:
        # Always known: `hold` and `seek` set it, "auto_offset_reset" none keeps it. It moves past
        # the markers of transactions, which are never delivered.
        return int(self._consumer.position(self._at(partition), timeout_ms=0))

    def _unreadable(self, error: errors.KafkaError) -> ConnectorError:
        return ConnectorError(f"topic '{self._topic}' cannot be read: {reason(error)}.")

    def close(self) -> None:
        """Close the consumer. A static member keeps its partitions until its session times out."""
        self._consumer.close(autocommit=False)
        if self._instance is not None:
            self._instance.close()

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)


def _truncated(at: TopicPartition, offset: int, end: int) -> ConnectorError:
    return ConnectorError(
        f"{_name(at)} ends at offset {end}, but {offset} was reached before; was the topic "
        "recreated? To start again use a new group and a new topic for the snapshots."
    )


def _name(at: TopicPartition) -> str:
    return f"partition {at.partition} of topic '{at.topic}'"


def open_source(settings: SourceSettings) -> KafkaSource:
    """Join the group.

    Raises:
        ConnectorError: the cluster or the topic does not match the settings.
    """
    with Topics(settings) as topics:
        partitions = topics.require_log(settings.topic, settings.partitions)
    purpose = f"{sorted(settings.bootstrap_servers)} {settings.group}"
    instance = Instance(settings.instance, purpose)
    try:
        consumer = connect_at_start(
            KafkaConsumer,
            settings.client_settings,
            group_id=settings.group,
            group_instance_id=instance.name,
            client_id=f"streamduel-{instance.name}",
            # Eager (see GroupOwnership); and a partition stays where its state is.
            partition_assignment_strategy=[StickyPartitionAssignor],
            max_poll_records=settings.max_poll_records,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=min(HEARTBEAT_MS, settings.session_timeout_ms // 3),
            max_poll_interval_ms=settings.max_poll_interval_ms,
            **CONSUMER,
        )
    except BaseException:
        instance.close()
        raise
    ownership = GroupOwnership(consumer)
    consumer.subscribe([settings.topic], listener=ownership)
    # Only to have the topic's metadata before joining the group: a leader that does not know the
    # partitions assigns none at first, and rebalances soon after.
    with contextlib.suppress(errors.KafkaError):
        consumer.beginning_offsets([TopicPartition(settings.topic, 0)], int(1000 * ASK_SECONDS))
    return KafkaSource(
        consumer, ownership, settings.topic, partitions, group_id=settings.group, instance=instance
    )


def open_log(settings: SourceSettings) -> KafkaSource:
    """Read all partitions, without a group.

    Raises:
        ConnectorError: the cluster or the topic does not match the settings.
    """
    with Topics(settings) as topics:
        partitions = topics.require_log(settings.topic, create=None)
    consumer = connect_at_start(
        KafkaConsumer,
        settings.client_settings,
        client_id="streamduel-log",
        max_poll_records=settings.max_poll_records,
        **CONSUMER,
    )
    ownership = WholeLog(consumer, settings.topic, partitions)
    return KafkaSource(consumer, ownership, settings.topic, partitions)

"""The interface to a client of Kafka: the requests of this connector, whichever is configured.

`kafka_python` and `confluent` implement it; `connecting.connect` picks one. Both use the types of
kafka-python: `TopicPartition`, and one class in `kafka.errors` for each error code. Every wait has
a limit, in seconds, and raises KafkaTimeoutError when it expires.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from kafka import TopicPartition

from streamduel.connector import MAX_BATCH_BYTES, LogRecord

METADATA_SECONDS = 5.0
"""A topic that was deleted and recreated is noticed by its id, which comes with the metadata."""


class Listener(Protocol):
    """Receives the assignments of a group member, in the thread that polls or another one."""

    def revoked(self) -> None:
        """All partitions are given up: before a new generation, or because they are lost."""

    def assigned(self, partitions: Collection[TopicPartition], group: Any) -> None:
        """A new generation assigned these partitions; `group` is the membership in it.

        The partitions deliver nothing until `Consumer.resume`.
        """


@dataclass(frozen=True, kw_only=True)
class Membership:
    """A static member of a group.

    Attributes:
        instance: its name, the same after a restart.
        session_timeout_ms: after this long without a heartbeat, its partitions are reassigned.
        heartbeat_ms: the time between two heartbeats.
        max_poll_interval_ms: after this long without a poll, its partitions are reassigned.
    """

    instance: str
    session_timeout_ms: int
    heartbeat_ms: int
    max_poll_interval_ms: int


Client = TypeVar("Client")


class Options(Generic[Client]):
    """With what a client of this kind is opened, and the function of its package that opens it."""

    opener: ClassVar[str]


@dataclass(frozen=True, kw_only=True)
class ConsumerOptions(Options["Consumer"]):
    """A consumer; it reads committed records only, and commits nothing itself.

    Attributes:
        client_id: its name in the broker's log and quotas.
        group: the group whose offsets it reads; None without one.
        membership: how it takes part in the group; None if it does not.
        skips_deleted: whether it continues at the beginning of a partition if its position was
            deleted; else that is an OffsetOutOfRangeError.
        max_records: the most records of one poll.
        max_batch_bytes: a compressed batch with more bytes becomes one `Rejected` record.
        partition_bytes: the most bytes of one partition per fetch; a larger batch comes alone.
        metadata_seconds: how often it asks for the metadata of its topics.
    """

    opener = "open_consumer"

    client_id: str = "streamduel"
    group: str | None = None
    membership: Membership | None = None
    skips_deleted: bool = True
    max_records: int = 500
    max_batch_bytes: int = MAX_BATCH_BYTES
    partition_bytes: int = 1024 * 1024
    metadata_seconds: float = 300.0


BATCH_BYTES = 512 * 1024
"""Large, so that a commit has few requests; topics accept 1 MB by default."""


@dataclass(frozen=True, kw_only=True)
class ProducerOptions(Options["Producer"]):
    """A producer; it writes each record once, to every in-sync replica.

    Attributes:
        client_id: its name in the broker's log and quotas.
        seconds: the time after which a record that is not written has failed.
        block_seconds: the longest that `Producer.send` waits for metadata.
        request_seconds: the time after which an unanswered request is repeated.
        transactional_id: None without transactions.
        transaction_timeout_ms: the broker aborts an open transaction after this long.
        max_record_bytes: the client refuses larger records itself.
        batch_bytes: a larger batch has one record; a topic refuses all records of a batch
            above its `max.message.bytes` together.
        linger_ms: how long it collects records for a larger request.
    """

    opener = "open_producer"

    client_id: str = "streamduel"
    seconds: float
    block_seconds: float
    request_seconds: float = 10.0
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    max_record_bytes: int = 1024 * 1024
    batch_bytes: int = BATCH_BYTES
    linger_ms: int = 0


@dataclass(frozen=True, kw_only=True)
class AdminOptions(Options["Admin"]):
    """A client that describes and creates topics."""

    opener = "open_admin"

    client_id: str = "streamduel-admin"


class Found(NamedTuple):
    """An existing topic.

    Attributes:
        partitions: how many it has.
        id: its id; None with brokers before Kafka 2.8.
        rights: the operations that this user may perform, in capitals; None where they were not
            asked for, and before Kafka 2.3.
        leaderless: the partitions without a leader, which can be neither read nor written.
        under_replicated: the number of in-sync replicas, of each partition that has fewer of them
            than replicas; empty where they were not asked for.
    """

    partitions: int
    id: str | None
    rights: Sequence[str] | None = None
    leaderless: Sequence[int] = ()
    under_replicated: Mapping[int, int] = MappingProxyType({})

    def refusing(self, least: int) -> list[int]:
        """The partitions that refuse writes, because they have fewer in-sync replicas than this.

        Whatever `min.insync.replicas` is, present brokers demand no more than the partition has
        replicas.
        """
        return [each for each, in_sync in self.under_replicated.items() if in_sync < least]


def no_leader(partitions: Collection[TopicPartition]) -> str:
    """That these partitions have no leader, to be put into a sentence.

    >>> no_leader([TopicPartition("clicks", 2), TopicPartition("clicks", 0)])
    "partitions 0, 2 of 'clicks' have no leader"
    """
    return f"{_with_verb(partitions)} no leader"


def too_few_in_sync(partitions: Collection[TopicPartition], least: int) -> str:
    """That these partitions refuse writes, to be put into a sentence.

    >>> too_few_in_sync([TopicPartition("snapshots", 2)], 3)
    "partition 2 of 'snapshots' has fewer in-sync replicas than min.insync.replicas=3"
    """
    return f"{_with_verb(partitions)} fewer in-sync replicas than min.insync.replicas={least}"


def _with_verb(partitions: Collection[TopicPartition]) -> str:
    numbers: dict[str, list[str]] = {}
    for topic, number in sorted(partitions):
        numbers.setdefault(topic, []).append(str(number))
    named = " and ".join(
        f"partition{'s' * (len(each) > 1)} {', '.join(each)} of '{topic}'"
        for topic, each in numbers.items()
    )
    return f"{named} {'has' if len(partitions) == 1 else 'have'}"


class Committed(NamedTuple):
    """What a group has committed for a partition.

    Attributes:
        offset: the offset of the next record.
        metadata: the text stored with it; empty after an administrator has set the offset.
    """

    offset: int
    metadata: str = ""


class Consumer(Protocol):
    """Reads topics. All methods except `connected` are called by one thread.

    Every method that sends a request raises KafkaError. Those that ask for offsets leave out
    partitions without a leader; if no other is asked for, they raise a LeaderNotAvailableError.
    """

    @property
    def connected(self) -> bool:
        """Whether a broker answers, and the leaders of the assigned partitions do.

        Makes no request; may be called from any thread.
        """

    def subscribe(self, topic: str, listener: Listener) -> None:
        """Join the group; `poll` reports to the listener."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Deliver these partitions from these offsets on, and no others."""

    def assign_held(self, partitions: Collection[TopicPartition]) -> None:
        """Assign these partitions; they deliver nothing until `resume`."""

    def assignment(self) -> set[TopicPartition]:
        """The partitions at present."""

    def hold(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver nothing of these partitions until `resume`."""

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver these partitions again, from their positions on."""

    def seek(self, at: TopicPartition, offset: int) -> None:
        """Change the position of a partition."""

    def position(self, at: TopicPartition) -> int:
        """The offset from which the next record comes; moves past markers of transactions."""

    def poll(self, seconds: float) -> Mapping[TopicPartition, Sequence[LogRecord]]:
        """Wait for records.

        Raises:
            OffsetOutOfRangeError: with the positions, by partition.
            CorruptRecordError: a batch is damaged.
            FencedInstanceIdError: another process uses this member's name.
            KafkaError: see `kafka.errors`.
        """

    def begins(
        self, partitions: Sequence[TopicPartition], seconds: float
    ) -> dict[TopicPartition, int]:
        """The offset of the first record of each partition."""

    def stable_ends(
        self, partitions: Sequence[TopicPartition], seconds: float
    ) -> dict[TopicPartition, int]:
        """The last stable offset of each partition, up to which committed records are readable."""

    def high_watermarks(
        self, partitions: Sequence[TopicPartition], seconds: float
    ) -> dict[TopicPartition, int]:
        """The end of each partition, with the records behind open transactions."""

    def committed(self, at: TopicPartition, seconds: float) -> Committed | None:
        """The group's committed offset, once no transaction can change it; None without one."""

    def answers(self, seconds: float) -> bool:
        """Whether a broker answers now."""

    def partitions(self, topic: str, seconds: float) -> list[int]:
        """The partitions of a topic, in order; none if it is missing."""

    def known(self, topic: str) -> Found | None:
        """A topic as of the newest metadata, without rights; None if there is none.

        Makes no request.
        """

    def ask_topic(self, topic: str) -> Any:
        """Request a topic's id and number of partitions from a broker, without waiting."""

    def await_answer(self, topic: str, asked: Any, seconds: float) -> Found | None:
        """The answer to `ask_topic`; None if there is no such topic."""

    def close(self) -> None:
        """Close it; a static member stays in its group."""


class Sent(Protocol):
    """A record that is being written."""

    @property
    def done(self) -> bool:
        """Whether the record is written, or has failed."""

    @property
    def error(self) -> Exception | None:
        """Why it has failed, if it has."""

    def wait(self, seconds: float) -> int:
        """The offset at which it is written; raises its error."""


class Producer(Protocol):
    """Writes records. Every method except `discard` raises KafkaError."""

    def send(
        self, topic: str, key: bytes | None, value: bytes, partition: int | None = None
    ) -> Sent:
        """Write a record in the background; without a partition, its key decides.

        Raises:
            KafkaError, ValueError: it cannot be written.
        """

    def flush(self, seconds: float) -> None:
        """Wait until every record is written or has failed."""

    def init_transactions(self, seconds: float) -> None:
        """Register the transactional id, which ends the transaction of a former producer."""

    def begin_transaction(self) -> None:
        """Begin one."""

    def send_offsets(
        self, offsets: Mapping[TopicPartition, Committed], group: Any, seconds: float
    ) -> None:
        """Add offsets to the transaction, as the member that `Listener.assigned` named."""

    def commit_transaction(self, seconds: float) -> None:
        """Commit."""

    def abort_transaction(self, seconds: float) -> None:
        """Abort; never raises: the broker aborts after a timeout, too."""

    def cause(self) -> BaseException | None:
        """The error that made the transaction fail, if a later one hides it."""

    def discard(self) -> None:
        """Close it in any state, within seconds."""


class Admin(Protocol):
    """Describes and creates topics. Every method except `close` raises KafkaError."""

    def find(self, topic: str) -> Found | None:
        """A topic; None if it is missing."""

    def create(
        self, topic: str, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> None:
        """Create a topic."""

    def await_topic(self, topic: str, seconds: float) -> None:
        """Wait until a new topic can be used."""

    def configs(self, topic: str) -> dict[str, str] | None:
        """The settings of a topic; None without the right to see them."""

    def topics(self) -> set[str]:
        """All topics that this user may see."""

    def close(self) -> None:
        """Close it."""

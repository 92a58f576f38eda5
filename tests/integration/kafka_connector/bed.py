"""The fixture of the Kafka connector's tests: topics, a group, and functions that use them."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from streamduel.connector import (
    Failpoint,
    Message,
    Outlet,
    PartitionCommit,
    Poll,
    Snapshot,
    SourceOptions,
    no_failpoint,
)
from streamduel_kafka.archive import KafkaArchive, open_archive
from streamduel_kafka.opening import open_log, open_source
from streamduel_kafka.outlet import KafkaOutlet, open_outlet
from streamduel_kafka.settings import SinkSettings, SnapshotSettings, SourceSettings
from streamduel_kafka.source import KafkaSource
from tests.broker.fixture import CLIENT, Topics

# Seconds to wait: longer than anything takes on a loaded machine.
PATIENCE = 180.0


@dataclass
class Bed:
    """The topics of one test, and what was opened on them, with short timeouts."""

    servers: str
    topic: str
    assignments: str
    dead_letters: str
    snapshots: str
    group: str
    client: str = CLIENT
    stack: ExitStack = field(default_factory=ExitStack)

    def source_settings(self, **changes: Any) -> SourceSettings:
        base = {
            "bootstrap_servers": self.servers,
            "client": self.client,
            "topic": self.topic,
            "group": self.group,
            "session_timeout_ms": 6000,
            "max_poll_interval_ms": 6000,
        }
        return SourceSettings.model_validate(base | changes)

    def sink_settings(self, **changes: Any) -> SinkSettings:
        base = {
            "bootstrap_servers": self.servers,
            "client": self.client,
            "assignments": self.assignments,
            "dead_letters": self.dead_letters,
        }
        return SinkSettings.model_validate(base | changes)

    def snapshot_settings(self, **changes: Any) -> SnapshotSettings:
        base = {
            "bootstrap_servers": self.servers,
            "client": self.client,
            "topic": self.snapshots,
        }
        return SnapshotSettings.model_validate(base | changes)

    def source(self, **changes: Any) -> KafkaSource:
        return self.stack.enter_context(
            closing(open_source(self.source_settings(**changes), SourceOptions()))
        )

    def log(self) -> KafkaSource:
        return self.stack.enter_context(closing(open_log(self.source_settings(), SourceOptions())))

    def outlet(
        self, source: KafkaSource, failpoint: Failpoint = no_failpoint, **changes: Any
    ) -> KafkaOutlet:
        outlet = open_outlet(
            self.sink_settings(**changes), self.snapshot_settings(), source, failpoint
        )
        return self.stack.enter_context(closing(outlet))

    def archive(self) -> KafkaArchive:
        archive = open_archive(self.sink_settings(), self.snapshot_settings())
        return self.stack.enter_context(closing(archive))

    def produce(
        self, count: int, partition: int = 0, *, topic: str | None = None, size: int = 10
    ) -> None:
        with KafkaProducer(bootstrap_servers=self.servers, max_request_size=2**24) as producer:
            futures = [
                producer.send(topic or self.topic, b"%d" % n + b"x" * size, partition=partition)
                for n in range(count)
            ]
            for future in futures:
                future.get(PATIENCE)

    def visible(
        self, topic: str, *, committed: bool = True, least: int = 0
    ) -> list[tuple[bytes | None, bytes]]:
        """Key and value of everything in a topic, by partition; waits until it is this much.

        Kafka answers a commit before it marks the end of the transaction in each partition.
        """
        deadline = time.monotonic() + PATIENCE
        found = self._present(topic, committed)
        while len(found) < least and time.monotonic() < deadline:
            found = self._present(topic, committed)
        return found

    def _present(self, topic: str, committed: bool) -> list[tuple[bytes | None, bytes]]:
        consumer = KafkaConsumer(
            bootstrap_servers=self.servers,
            isolation_level="read_committed" if committed else "read_uncommitted",
        )
        with closing(consumer):
            parts = [TopicPartition(topic, n) for n in sorted(consumer.partitions_for_topic(topic))]
            ends = consumer.end_offsets(parts)
            consumer.assign(parts)
            consumer.seek_to_beginning(*parts)
            found: list[tuple[bytes | None, bytes]] = []
            while any(consumer.position(part) < ends[part] for part in parts):
                for records in consumer.poll(timeout_ms=50).values():
                    found.extend((record.key, record.value) for record in records)
            return found

    def end(self, topic: str) -> int:
        """The sum of a topic's end offsets, open transactions included."""
        with closing(KafkaConsumer(bootstrap_servers=self.servers)) as consumer:
            parts = [TopicPartition(topic, n) for n in consumer.partitions_for_topic(topic)]
            return sum(consumer.end_offsets(parts).values())

    def committed(self, partition: int = 0) -> int | None:
        """Once no transaction is pending that commits another one."""
        consumer = KafkaConsumer(
            bootstrap_servers=self.servers, group_id=self.group, isolation_level="read_committed"
        )
        with closing(consumer):
            offset: int | None = consumer.committed(TopicPartition(self.topic, partition))
            return offset


def make_bed(servers: str, topics: Topics, partitions: int = 4, *, client: str = CLIENT) -> Bed:
    topic = topics(partitions)
    return Bed(
        servers,
        topic,
        assignments=topics(2, compacted=True),
        dead_letters=topics(1),
        snapshots=topics(partitions, compacted=True),
        group=f"group of {topic}",
        client=client,
    )


def snapshot(next_offset: int, **entries: bytes) -> Snapshot:
    return Snapshot(next_offset, entries)


def work(partition: int, next_offset: int, text: str = "") -> PartitionCommit:
    """A commit with an output of each kind, all naming the offset."""
    value = f"{text}{partition}:{next_offset}".encode()
    return PartitionCommit(
        partition,
        next_offset,
        assignments=[Message(b"search", value)],
        dead_letters=[Message(None, value)],
        entries={"experiment": value},
    )


def commit(outlet: Outlet, *commits: PartitionCommit) -> None:
    outlet.write(commits)
    outlet.finish(commits)


def flush(outlet: KafkaOutlet) -> None:
    """Wait until the brokers have what was written, of a transaction that is still open."""
    producer = outlet._transactions._producer
    assert producer is not None
    producer.flush(PATIENCE)


def polls(source: KafkaSource, seconds: float = 0.1) -> Iterator[Poll]:
    """Poll for some seconds each until `PATIENCE` is over."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        yield source.poll(seconds)
    raise AssertionError(f"no such poll within {PATIENCE:.0f} s")


def gain(source: KafkaSource, count: int = 4, seconds: float = 0.1) -> list[int]:
    """Poll until so many partitions are gained in one poll."""
    return next(list(poll.gained) for poll in polls(source, seconds) if len(poll.gained) == count)


def gain_all(*sources: KafkaSource, counts: Iterable[int]) -> list[list[int]]:
    """Poll several sources in turn until each owns as many partitions as it should."""
    owned: list[list[int]] = [[] for _ in sources]
    deadline = time.monotonic() + PATIENCE
    while [len(each) for each in owned] != list(counts):
        assert time.monotonic() < deadline, owned
        for number, source in enumerate(sources):
            poll = source.poll(0.05)
            if poll.gained or poll.lost:
                owned[number] = list(poll.gained)
    return owned


def start(source: KafkaSource, partitions: Iterable[int], offset: int | None = None) -> None:
    for partition in partitions:
        source.seek(partition, offset)


def read(source: KafkaSource, count: int) -> dict[int, list[Any]]:
    """Poll until so many records are read."""
    found: dict[int, list[Any]] = {}
    for poll in polls(source):
        for partition, records in poll.records.items():
            found.setdefault(partition, []).extend(records)
        if sum(map(len, found.values())) >= count:
            break
    return found


def eventually(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def answered(
    lags: Callable[[Sequence[int]], dict[int, int]], partitions: Sequence[int], count: int
) -> dict[int, int]:
    """The first lags of so many partitions; those without a timely answer are missing."""
    deadline = time.monotonic() + PATIENCE
    while len(found := lags(partitions)) < count:
        assert time.monotonic() < deadline, found
    return found


def mapping(found: Mapping[int, Sequence[Any]]) -> dict[int, list[int]]:
    """The offsets alone."""
    return {partition: [each.offset for each in records] for partition, records in found.items()}

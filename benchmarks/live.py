"""A service under a steady load: its processes, the sender, and a reader of its assignments."""

from __future__ import annotations

import contextlib
import functools
import gc
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from kafka import KafkaConsumer, TopicPartition

from benchmarks.broker import experiments
from benchmarks.records import duel_values
from streamduel import config as configuration
from streamduel.connector import Poll
from streamduel.records import Assignment
from streamduel.service import serve
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask
from streamduel_kafka.source import KafkaSource

ARMS: Final = 6

START_SECONDS: Final = 60.0
GRACE_SECONDS: Final = 1.5
"""Without a new assignment, after the last record: three times the longest interval."""
TICK_SECONDS: Final = 0.001
TEMPLATES: Final = 512


class Load(NamedTuple):
    """Duels that are sent.

    Attributes:
        topic: where to.
        partitions: of the topic, each with an experiment.
        rate: records per second, of all partitions together.
    """

    topic: str
    partitions: int
    rate: int


class Moment(NamedTuple):
    """A time, and the first offset of a partition that is not reached then."""

    offset: int
    time: float
    took: float = 0.0


@dataclass
class Trace(Observer):
    """What a service did when, by partition; the monotonic clock is the same in all processes."""

    polls: dict[int, list[Moment]] = field(default_factory=dict)
    commits: dict[int, list[Moment]] = field(default_factory=dict)

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:
        """Note a commit."""
        now = time.monotonic()
        for task in tasks:
            moment = Moment(task.next_offset, now, seconds)
            self.commits.setdefault(task.partition, []).append(moment)


def serve_traced(path: Path, stop: Event, result: Connection) -> None:
    """Run the service until the event is set; returns its trace."""
    trace, poll = Trace(), KafkaSource.poll

    @functools.wraps(poll)
    def traced(self: KafkaSource, timeout: float, *, hold: bool = False) -> Poll:
        brought = poll(self, timeout, hold=hold)
        now = time.monotonic()
        for partition, records in brought.records.items():
            moment = Moment(records[-1].offset + 1, now)
            trace.polls.setdefault(partition, []).append(moment)
        return brought

    setattr(KafkaSource, "poll", traced)  # noqa: B010 - measured, not changed
    serve(configuration.load(path, {}), stop.is_set, observers=[trace])
    result.send((trace.polls, trace.commits))


@contextlib.contextmanager
def running(path: Path) -> Iterator[Any]:
    """A service in a process of its own; yields a function that ends it and returns its trace."""
    context = get_context("spawn")
    stop, (here, there) = context.Event(), context.Pipe()
    service = context.Process(target=serve_traced, args=(path, stop, there))
    service.start()
    there.close()  # notices that a service has failed

    def ended() -> Any:
        stop.set()
        return here.recv()

    try:
        yield ended
    finally:
        stop.set()
        service.join(START_SECONDS)
        service.kill()


def send(servers: str, load: Load, seconds: float, result: Connection) -> None:
    """Send duels at a rate; returns the timestamp of each, by partition, as monotonic seconds."""
    gc.disable()
    names = experiments(load.partitions)
    samples = [_samples(name) for name in names]
    luck = random.Random(1).randrange
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "acks": "1"})
    producer.list_topics(load.topic)
    moments: list[list[float]] = [[] for _ in names]
    monotonic = time.monotonic() - time.time()

    def delivered(error: KafkaError | None, record: Message) -> None:
        if error is not None:
            raise KafkaException(error)
        moments[record.partition() or 0].append(record.timestamp()[1] / 1000 + monotonic)

    keys = [name.encode() for name in names]
    began, sent, total = time.monotonic(), 0, int(load.rate * seconds)
    while sent < total:
        due = min(total, int((time.monotonic() - began) * load.rate) + 1)
        for number in range(sent, due):
            at = number % len(names)
            head, tail = samples[at][luck(2 * TEMPLATES)]
            fresh = b"%s%032x%s" % (head, number, tail)
            while True:
                try:
                    producer.produce(load.topic, fresh, keys[at], at, on_delivery=delivered)
                    break
                except BufferError:
                    producer.poll(TICK_SECONDS)
        sent = due
        producer.poll(0)
        time.sleep(TICK_SECONDS)
    producer.flush(START_SECONDS)
    result.send(moments)


def _samples(experiment: str) -> list[tuple[bytes, bytes]]:
    """Duels before and after their id, each with either winner: no arm is the best."""
    start = len(b'{"type":"duel","id":"')
    return [
        (value[:start], value[start + 32 :].replace(b'"winner":"b"', b'"winner":"%c"' % winner))
        for each in duel_values(TEMPLATES, ARMS, experiment)
        for value in [each.replace(b'"winner":"a"', b'"winner":"b"')]
        for winner in b"ab"
    ]


class Reader:
    """Polls the assignments of a service, and notes when each came.

    Attributes:
        seen: the time of each, by experiment and offset.
    """

    def __init__(self, servers: str, topic: str) -> None:
        self.seen: dict[tuple[str, int], float] = {}
        self._consumer: Any = KafkaConsumer(
            bootstrap_servers=servers, isolation_level="read_committed"
        )
        at = TopicPartition(topic, 0)
        self._consumer.assign([at])
        self._consumer.seek_to_beginning(at)

    def look(self) -> None:
        """Poll once."""
        for batch in self._consumer.poll(timeout_ms=100).values():
            now = time.monotonic()
            for record in batch:
                found = msgspec.json.decode(record.value, type=Assignment)
                self.seen[found.experiment, found.offset] = now

    def await_first(self, count: int) -> None:
        """Poll until so many assignments came: the first ones precede every record."""
        deadline = time.monotonic() + START_SECONDS
        while len(self.seen) < count:
            if time.monotonic() > deadline:
                raise TimeoutError("the service did not start")
            self.look()

    def read_to_end(self) -> None:
        """Poll until no new assignments come."""
        read, end = 0, 0.0
        while time.monotonic() < end or len(self.seen) > read:
            if len(self.seen) > read:
                read, end = len(self.seen), time.monotonic() + GRACE_SECONDS
            self.look()

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close(autocommit=False)


def feed(servers: str, load: Load, seconds: float, reader: Reader) -> Sequence[Sequence[float]]:
    """Send the records, and read meanwhile."""
    context = get_context("spawn")
    here, there = context.Pipe()
    sender = context.Process(target=send, args=(servers, load, seconds, there))
    sender.start()
    there.close()
    answers: list[Sequence[Sequence[float]]] = []
    waiter = threading.Thread(target=lambda: answers.append(here.recv()))
    waiter.start()
    while waiter.is_alive():
        reader.look()
    reader.read_to_end()
    sender.join()
    return answers[0]

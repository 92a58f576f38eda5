"""The positions of partitions that are held, move or have no such offset, with both clients."""

from __future__ import annotations

import contextlib
import time
from contextlib import closing

import pytest
from kafka import KafkaProducer, TopicPartition, errors

from streamduel_kafka.client import Consumer, ConsumerOptions
from streamduel_kafka.connecting import connect
from streamduel_kafka.source import KafkaSource
from tests.broker.fixture import Broker, Topics, on_both_clients
from tests.integration.kafka_connector.bed import PATIENCE, Bed, gain, mapping, read, start

pytestmark = [pytest.mark.kafka, on_both_clients]

RECORDS = 20_000
SECONDS = 180.0

REBALANCES = 40
"""Of 20,000 records: librdkafka skipped some in about one of ten from "the end"."""


def produce(kafka: Broker, at: TopicPartition, count: int) -> None:
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, linger_ms=20) as producer:
        for number in range(count):
            producer.send(at.topic, f"{number}".encode(), partition=at.partition)


def opened(kafka: Broker, client: str, *, skips_deleted: bool = True) -> closing[Consumer]:
    settings = {
        "client": client,
        "bootstrap_servers": [kafka.bootstrap_servers],
        "security_protocol": "PLAINTEXT",
    }
    return closing(connect(ConsumerOptions(skips_deleted=skips_deleted), settings, SECONDS))


def offsets(consumer: Consumer, at: TopicPartition, until: int) -> list[int]:
    """What is delivered until this offset is."""
    found: list[int] = []
    deadline = time.monotonic() + SECONDS
    while not found or found[-1] < until:
        assert time.monotonic() < deadline, f"only {len(found)} records came"
        found += [each.offset for each in consumer.poll(0.1).get(at, ())]
    return found


def test_a_held_partition_continues_where_it_was_set_to(
    kafka: Broker, topics: Topics, client: str
) -> None:
    at = TopicPartition(topics(1), 0)
    produce(kafka, at, RECORDS)
    with opened(kafka, client) as consumer:
        consumer.assign({at: 0})
        offsets(consumer, at, 400)
        for start in (10, 600, 0):
            consumer.hold([at])
            assert not consumer.poll(0.1)
            consumer.seek(at, start)
            consumer.resume([at])
            assert consumer.position(at) == start
            delivered = offsets(consumer, at, RECORDS - 1)
            assert delivered == list(range(start, RECORDS))
        # A rebalance: a client that places partitions at their end meanwhile skips records.
        for start in range(0, RECORDS, RECORDS // REBALANCES):
            consumer.assign_held([at])
            consumer.seek(at, start)
            consumer.resume([at])
            assert offsets(consumer, at, RECORDS - 1) == list(range(start, RECORDS))


def test_a_partition_paused_when_it_was_given_up_delivers_again(
    kafka: Broker, topics: Topics, client: str
) -> None:
    first, second = (TopicPartition(name, 0) for name in (topics(1), topics(1)))
    produce(kafka, first, 10)
    with opened(kafka, client) as consumer:
        consumer.assign_held([first, second])
        consumer.resume([first])
        offsets(consumer, first, 9)
        consumer.hold([first])
        consumer.assign_held([first, second])
        consumer.seek(first, 5)
        consumer.resume([first])
        assert offsets(consumer, first, 9) == [5, 6, 7, 8, 9]
        consumer.hold([first])
        consumer.seek(first, 3)
        consumer.resume([first, second])
        assert offsets(consumer, first, 9) == [3, 4, 5, 6, 7, 8, 9]


def test_a_poll_that_delivers_nothing_may_change_the_owner(bed: Bed) -> None:
    first = bed.source(instance="first")
    start(first, gain(first))
    second = bed.source(instance="second")
    owned: dict[KafkaSource, list[int]] = {first: [], second: []}
    deadline = time.monotonic() + PATIENCE
    while [len(each) for each in owned.values()] != [2, 2]:
        assert time.monotonic() < deadline, owned
        for source in owned:
            poll = source.poll(0.05, hold=True)
            if poll.gained or poll.lost:
                owned[source] = list(poll.gained)
    for source, partitions in owned.items():
        start(source, partitions)
        for number in partitions:
            bed.produce(1, number)
            assert mapping(read(source, 1)) == {number: [0]}


def test_a_sleep_in_a_poll_is_short(
    kafka: Broker, topics: Topics, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kafka-python may sleep although records have arrived, as it does without any partition."""
    at = TopicPartition(topics(1), 0)
    sleeps: list[float] = []
    sleep = time.sleep

    def noted(seconds: float) -> None:
        sleeps.append(seconds)
        sleep(seconds)

    with opened(kafka, client) as consumer:
        consumer.assign({at: 0})
        consumer.hold([at])
        monkeypatch.setattr(time, "sleep", noted)
        consumer.poll(0.3)
    assert max(sleeps, default=0.0) <= 0.01


def test_an_offset_out_of_range_is_reported_until_it_is_in_range(
    kafka: Broker, topics: Topics, client: str
) -> None:
    at = TopicPartition(topics(1), 0)
    produce(kafka, at, 5)
    with opened(kafka, client, skips_deleted=False) as consumer:
        consumer.assign({at: 7})
        reported: list[dict[TopicPartition, int]] = []
        deadline = time.monotonic() + SECONDS
        while len(reported) < 3:
            assert time.monotonic() < deadline, reported
            try:
                consumer.poll(0.1)
            except errors.OffsetOutOfRangeError as error:
                reported.append(error.args[0])
        assert reported == [{at: 7}] * 3
        produce(kafka, at, 5)
        found: list[int] = []
        while not found or found[-1] < 9:
            assert time.monotonic() < deadline, found
            with contextlib.suppress(errors.OffsetOutOfRangeError):  # until there are more
                found += [each.offset for each in consumer.poll(0.1).get(at, ())]
        assert found == [7, 8, 9]

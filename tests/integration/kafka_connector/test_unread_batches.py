"""Batches that librdkafka reports several times before the consumer hears of the first report."""

from __future__ import annotations

import time
from contextlib import closing

import pytest
from kafka import KafkaProducer, TopicPartition

from streamduel.connector import LogRecord
from streamduel.records import Rejected
from streamduel_kafka.client import Consumer, ConsumerOptions
from streamduel_kafka.connecting import connect
from tests.broker.fixture import Broker, Topics

pytestmark = pytest.mark.kafka

RECORDS = 640
"""Of 64 KiB: 40 MiB, more than the 32 MiB that a batch may have by default."""

PATIENCE = 180.0

REPORTS_SECONDS = 2.0
"""librdkafka fetches the batch again ten times per second, and reports it each time."""


def produce_bomb(servers: str, at: TopicPartition) -> None:
    """A record, and a batch of zstd that is too large."""
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send(at.topic, b"before", partition=at.partition)
    with KafkaProducer(
        bootstrap_servers=servers,
        compression_type="zstd",
        batch_size=2**26,
        max_request_size=2**26,
        linger_ms=60_000,
    ) as producer:
        for _ in range(RECORDS):
            producer.send(at.topic, bytes(2**16), partition=at.partition)


def opened(servers: str, options: ConsumerOptions | None = None) -> Consumer:
    settings = {
        "client": "confluent",
        "bootstrap_servers": [servers],
        "security_protocol": "PLAINTEXT",
    }
    return connect(options or ConsumerOptions(), settings, PATIENCE)


def test_a_batch_reported_often_is_rejected_once(kafka: Broker, topics: Topics) -> None:
    servers = kafka.bootstrap_servers
    at = TopicPartition(topics(1), 0)
    produce_bomb(servers, at)
    consumer = opened(servers)
    found: list[LogRecord] = []

    def read_to(position: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while consumer.position(at) < position:
            assert time.monotonic() < deadline, consumer.position(at)
            found.extend(consumer.poll(0.1).get(at, ()))

    try:
        consumer.assign({at: 0})
        time.sleep(REPORTS_SECONDS)
        read_to(RECORDS + 1)
        with KafkaProducer(bootstrap_servers=servers) as producer:
            producer.send(at.topic, b"after", partition=0)
        read_to(RECORDS + 2)
    finally:
        consumer.close()
    before, rejected, after = found
    assert (before.value, after.value) == (b"before", b"after")
    assert isinstance(rejected.value, Rejected)


def test_a_poll_reads_one_such_batch(kafka: Broker, topics: Topics) -> None:
    servers, topic = kafka.bootstrap_servers, topics(2)
    places = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
    for at in places:
        produce_bomb(servers, at)
    rejected: list[TopicPartition] = []
    deadline = time.monotonic() + PATIENCE
    with closing(opened(servers)) as consumer:
        consumer.assign(dict.fromkeys(places, 0))
        time.sleep(REPORTS_SECONDS)  # of both before the first poll
        while len(rejected) < len(places):
            assert time.monotonic() < deadline, rejected
            found = consumer.poll(0.1)
            now = [at for at in found if any(isinstance(it.value, Rejected) for it in found[at])]
            assert len(now) <= 1
            rejected += now
    assert sorted(rejected) == places


def test_a_batch_above_the_largest_answer_is_read(kafka: Broker, topics: Topics) -> None:
    """librdkafka does not say of which partition it is."""
    servers, topic = kafka.bootstrap_servers, topics(3, max_message_bytes=2**25)
    places = [TopicPartition(topic, number) for number in range(3)]
    with KafkaProducer(
        bootstrap_servers=servers, batch_size=2**26, max_request_size=2**26, linger_ms=60_000
    ) as producer:
        for _ in range(19):
            producer.send(topic, bytes(2**20), partition=1)
        producer.send(topic, b"other", partition=0)
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send(topic, b"after", partition=1)
    found: list[LogRecord] = []
    deadline = time.monotonic() + PATIENCE
    with closing(opened(servers, ConsumerOptions(max_batch_bytes=2**16))) as consumer:
        consumer.assign(dict.fromkeys(places, 0))
        while consumer.position(places[1]) < 20 or consumer.position(places[0]) < 1:
            assert time.monotonic() < deadline, [*map(consumer.position, places)]
            for records in consumer.poll(0.1).values():
                found += records
    values = [it.value for it in found if isinstance(it.value, bytes)]
    assert sorted(map(len, values)) == [5, 5, *[2**20] * 19]

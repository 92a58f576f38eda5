"""Both clients of Kafka make the same bytes from the same click log."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition

from streamduel.testing import duel
from streamduel_kafka.partitions import home_partition
from tests.broker.fixture import CLIENT, CLIENTS, Broker, Topics
from tests.faults.kafka_runs import (
    EXPERIMENTS,
    FIRST_STAMP,
    PARTITIONS,
    Run,
    configure_faults,
    make_log,
    read,
    visible,
)
from tests.faults.processes import run_service
from tests.logs import ARMS, POISON

pytestmark = pytest.mark.kafka

RECORDS = 6000
KEY = EXPERIMENTS[0].encode()

BOMB_RECORDS = 640
"""Of 64 KiB: 40 MiB, more than the 32 MiB of `limits.max_batch_bytes`, in 4 kB of zstd."""


def add_odd_records(servers: str, topic: str) -> None:
    """Tombstones, empty and broken values, every codec, and a batch that is too large."""
    last = FIRST_STAMP + RECORDS
    for codec in (None, "gzip", "snappy", "lz4", "zstd"):
        with KafkaProducer(bootstrap_servers=servers, compression_type=codec) as producer:
            for value in (None, b"", *POISON, duel(EXPERIMENTS[0], f"by {codec}", *ARMS[:2], "a")):
                producer.send(topic, value, key=KEY, timestamp_ms=last)
    with KafkaProducer(
        bootstrap_servers=servers,
        compression_type="zstd",
        batch_size=2**26,
        max_request_size=2**26,
        linger_ms=60_000,
    ) as producer:
        for _ in range(BOMB_RECORDS):
            producer.send(topic, bytes(2**16), key=KEY, timestamp_ms=last)
    with KafkaProducer(bootstrap_servers=servers) as producer:
        after = duel(EXPERIMENTS[0], "after", *ARMS[:2], "a")
        producer.send(topic, after, key=KEY, timestamp_ms=last)


def test_equal_bytes(kafka: Broker, topics: Topics, tmp_path: Path) -> None:
    servers = kafka.bootstrap_servers
    log = make_log(kafka, RECORDS)
    add_odd_records(servers, log)
    found = []
    for client in CLIENTS:
        run = configure_faults(tmp_path / client, servers, log, topics, client=client)
        assert not run_service(run.config)
        found.append(visible(run))
        too_large = [it for it in read(servers, run.dead_letters) if it["reason"] == "too_large"]
        assert [it["error"].startswith("the batch of offsets") for it in too_large] == [True]
    first, second = found
    assert first == second
    assert first[0]


def committed(run: Run) -> OffsetAndMetadata:
    at = TopicPartition(run.log, home_partition(EXPERIMENTS[0], PARTITIONS))
    consumer = KafkaConsumer(
        bootstrap_servers=run.servers, group_id=run.group, isolation_level="read_committed"
    )
    with closing(consumer):
        return consumer.committed(at, metadata=True)


def test_each_client_continues_after_the_other(
    kafka: Broker, topics: Topics, tmp_path: Path
) -> None:
    log = make_log(kafka, RECORDS // 10)
    run = configure_faults(tmp_path / "run", kafka.bootstrap_servers, log, topics)
    plain = run.config.read_text()
    for number, client in enumerate([*CLIENTS, *CLIENTS]):
        run.config.write_text(plain.replace(f"client: {CLIENT}", f"client: {client}"))
        with KafkaProducer(bootstrap_servers=run.servers) as producer:
            value = duel(EXPERIMENTS[0], f"after {number}", *ARMS[:2], "a")
            producer.send(log, value, key=KEY, timestamp_ms=FIRST_STAMP + RECORDS)
        assert not run_service(run.config)
        assert committed(run).metadata.endswith("\0"), "or librdkafka reads beyond its end"

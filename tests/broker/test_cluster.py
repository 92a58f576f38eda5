"""Three brokers: what is acknowledged survives any one of them, and the network can be made bad."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.broker.cluster import NODES, OFFSETS, TRANSACTIONS, LocalCluster
from tests.broker.fixture import Topics

pytestmark = [pytest.mark.kafka]

READ_SECONDS = 180.0  # an election takes ten; a loaded machine longer
CLOSE_SECONDS = 2.0  # nothing is left to send


def write(servers: str, topic: str, value: bytes, **options: Any) -> None:
    producer = KafkaProducer(
        bootstrap_servers=servers.split(","),
        # Without: the request for a producer id waits for a quorum of controllers without limit.
        enable_idempotence=False,
        **options,
    )
    try:
        producer.send(topic, value, partition=0).get(READ_SECONDS)
    finally:
        producer.close(timeout=CLOSE_SECONDS)


def read(servers: str, topic: str, count: int) -> list[bytes]:
    values: list[bytes] = []
    deadline = time.monotonic() + READ_SECONDS
    with closing(KafkaConsumer(bootstrap_servers=servers.split(","))) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        while len(values) < count and time.monotonic() < deadline:
            for records in consumer.poll(timeout_ms=100).values():
                values += [record.value for record in records]
    return values


def test_the_leader_is_killed(cluster: LocalCluster, cluster_topics: Topics) -> None:
    topic = cluster_topics(partitions=1)
    write(cluster.bootstrap_servers, topic, b"before")
    leader = cluster.leader(topic)
    cluster.nodes[leader].kill()
    write(cluster.bootstrap_servers, topic, b"after")
    assert cluster.leader(topic) != leader
    assert read(cluster.bootstrap_servers, topic, 2) == [b"before", b"after"]
    cluster.heal()
    assert all(node.pid for node in cluster.nodes)


def test_coordinators_have_leaders(cluster: LocalCluster, cluster_topics: Topics) -> None:
    topic = cluster_topics(partitions=1)
    with closing(
        KafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers.split(","), transactional_id=topic
        )
    ) as producer:
        producer.init_transactions()
    with closing(
        KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers.split(","), group_id=topic)
    ) as consumer:
        # Joining the group with short polls may never end where answers are slow.
        consumer.commit(
            {TopicPartition(topic, 0): OffsetAndMetadata(0, "", -1)},
            timeout_ms=int(1000 * READ_SECONDS),
        )
    for coordinators in (OFFSETS, TRANSACTIONS):
        assert cluster.leader(coordinators) in range(NODES)


@pytest.mark.parametrize("fault", ["cut", "slow", "lossy", "reset"])
def test_the_network(cluster: LocalCluster, cluster_topics: Topics, fault: str) -> None:
    topic = cluster_topics(partitions=1)
    servers = cluster.proxied_servers
    write(servers, topic, b"before")
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        match fault:
            case "cut":
                cluster.proxies.cut()
                writing = pool.submit(write, servers, topic, b"after")
                with pytest.raises(TimeoutError):
                    writing.result(1)
                cluster.proxies.heal()
                writing.result(READ_SECONDS)
            case "slow":
                cluster.proxies.slow(0.2)
                write(servers, topic, b"after")
                assert time.monotonic() - began > 0.8, "at least two requests, there and back"
            case "lossy":
                cluster.proxies.lose(0.3)
                write(servers, topic, bytes(200_000))
                assert time.monotonic() - began > 0.2
            case "reset":
                cluster.proxies.reset()
                write(servers, topic, b"after")
    assert len(read(cluster.bootstrap_servers, topic, 2)) == 2


def test_a_slow_client(cluster: LocalCluster, cluster_topics: Topics) -> None:
    topic = cluster_topics(partitions=1)
    cluster.proxies.slow(5.0, client="another")
    began = time.monotonic()
    write(cluster.proxied_servers, topic, b"quick", client_id="me")
    assert time.monotonic() - began < 5.0

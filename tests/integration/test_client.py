"""The client on a real broker: reading, writing, and an outage of the broker."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from streamduel.client import (
    Assignments,
    ClientError,
    Draw,
    EventLog,
    Merged,
    Message,
    Written,
)
from streamduel.client import kafka as client_kafka
from streamduel.client.confluent_feed import ConfluentFeed
from streamduel.client.kafka import KafkaFeed, KafkaWriter
from streamduel_kafka.partitions import home_partition
from tests.broker.fixture import Broker, Topics, on_both_clients
from tests.broker.local_kafka import LocalKafka
from tests.unit.client.bed import PATIENCE, alone, eventually

pytestmark = pytest.mark.kafka

PAIR = Draw("bm25", "ltr", 1)
SHOWN = Merged(["d1", "d2"], ["a", "b"])


@contextlib.contextmanager
def publisher(servers: str, name: str) -> Iterator[Any]:
    """A transactional producer like streamduel's."""
    with KafkaProducer(bootstrap_servers=servers, transactional_id=name) as producer:
        producer.init_transactions()
        yield producer


def publish(producer: Any, topic: str, *values: str, commit: bool = True) -> None:
    producer.begin_transaction()
    for value in values:
        key = json.loads(value)["experiment"].encode()
        producer.send(topic, key=key, value=value.encode())
    if commit:
        producer.commit_transaction()
    else:
        producer.flush()
        producer.abort_transaction()


def read(servers: str, topic: str) -> list[Any]:
    """Every record of a topic, partition by partition."""
    with contextlib.closing(KafkaConsumer(bootstrap_servers=servers)) as consumer:
        parts = [TopicPartition(topic, n) for n in sorted(consumer.partitions_for_topic(topic))]
        ends = consumer.end_offsets(parts)
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        found: list[Any] = []
        while any(consumer.position(part) < ends[part] for part in parts):
            for records in consumer.poll(timeout_ms=50).values():
                found += records
        return sorted(found, key=lambda record: (record.partition, record.offset))


@on_both_clients
def test_committed_assignments_are_followed_and_aborted_ones_never_seen(
    kafka: Broker, topics: Topics, client: Any
) -> None:
    servers, topic = kafka.bootstrap_servers, topics(3, compacted=True)
    with publisher(servers, topic) as streamduel:
        publish(streamduel, topic, alone("x", 1), alone("p", 1, experiment="ads"))
        publish(streamduel, topic, alone("x", 2))
        publish(streamduel, topic, alone("never", 9), commit=False)
        with Assignments.from_kafka(servers, topic, client=client) as assignments:
            assert assignments.wait_for("search", PATIENCE)
            assert assignments.wait_for("ads", PATIENCE)
            eventually(lambda: assignments.draw("search") == Draw("x", "x", 2))
            assert 0 <= assignments.age("search") < PATIENCE
            publish(streamduel, topic, alone("never", 9), commit=False)
            publish(streamduel, topic, alone("y", 3))
            eventually(lambda: assignments.draw("search") == Draw("y", "y", 3))
            assert assignments.draw("ads") == Draw("p", "p", 1)


@on_both_clients
def test_a_tombstone_does_no_harm(kafka: Broker, topics: Topics, client: Any) -> None:
    servers, topic = kafka.bootstrap_servers, topics(1, compacted=True)
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send(topic, key=b"old", value=None)
        producer.send(topic, key=b"search", value=alone("x").encode())
    with Assignments.from_kafka(servers, topic, client=client) as assignments:
        assert assignments.wait_for("search", PATIENCE)


def test_partitions_that_are_added_are_followed(
    kafka: Broker, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamduel.client.confluent_feed.LOOK_SECONDS", 0.1)
    servers, topic = kafka.bootstrap_servers, topics(1, compacted=True)
    with (
        KafkaProducer(bootstrap_servers=servers, metadata_max_age_ms=100) as producer,
        Assignments.from_kafka(servers, topic, client="confluent") as assignments,
    ):
        producer.send(topic, key=b"search", value=alone("x").encode())
        assert assignments.wait_for("search", PATIENCE)
        with contextlib.closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
            admin.create_partitions({topic: 2})
        eventually(lambda: len(producer.partitions_for(topic)) == 2)
        value = alone("p", experiment="ads").encode()
        producer.send(topic, key=b"ads", value=value, partition=1)
        assert assignments.wait_for("ads", PATIENCE)
        producer.send(topic, key=b"search", value=alone("y", 18).encode(), partition=0)
        eventually(lambda: assignments.draw("search") == Draw("y", "y", 18))


@pytest.mark.parametrize("kind", [KafkaFeed, ConfluentFeed])
def test_a_missing_topic_is_waited_for_and_not_created(
    kind: Any,
    kafka: Broker,
    topics: Topics,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("streamduel.client.feeds.MAX_PAUSE", 0.1)
    missing = f"{topics(1)}-missing"
    feed = kind(kafka.bootstrap_servers, missing)
    for _ in range(2):
        with pytest.raises(ClientError, match=f"^there is no topic '{missing}'"):
            feed.poll()
    with Assignments(feed, defaults={"search": "x"}) as assignments:
        eventually(lambda: f"there is no topic '{missing}'" in caplog.text)
        assert assignments.draw("search") == Draw("x", "x")


def test_records_are_written_to_their_home_partitions(kafka: Broker, topics: Topics) -> None:
    servers, topic = kafka.bootstrap_servers, topics(5)
    names = ["search", "ads", "Größe", "recommendations"]
    with EventLog.to_kafka(servers, topic) as log:
        for name in names:
            impression = log.impression(name, PAIR, SHOWN)
            assert impression is not None
            log.click(name, impression, rank=1)
            log.duel(name, "ltr", "ltr", None)
            log.interleaving(name, PAIR, SHOWN, [0])
        assert log.flush(PATIENCE)
        assert (log.written, log.dropped) == (16, 0)
    found = read(servers, topic)
    for name in names:
        own = [record for record in found if record.key == name.encode()]
        kinds = [json.loads(record.value)["type"] for record in own]
        assert kinds == ["impression", "click", "duel", "interleaving"]
        assert {record.partition for record in own} == {home_partition(name, 5)}
        assert {json.loads(record.value)["experiment"] for record in own} == {name}


@pytest.mark.parametrize("limit", ["the topic's", "the producer's"])
def test_refused_records_are_counted_and_do_not_block_others(
    kafka: Broker, topics: Topics, caplog: pytest.LogCaptureFixture, limit: str
) -> None:
    servers = kafka.bootstrap_servers
    topic = topics(1, max_message_bytes=3000) if limit == "the topic's" else topics(1)
    own = {"max_request_size": 3000} if limit == "the producer's" else {}
    large = Merged([f"{n}" * 1000 for n in range(5)], ["a"] * 5)
    with EventLog.to_kafka(servers, topic, kafka=own) as log:
        for number in range(60):
            log.click("search", "i-1", rank=0, record_id=f"{number}")
            if number in {7, 30}:
                log.impression("search", PAIR, large, record_id=f"large {number}")
        assert log.flush(PATIENCE)
        assert (log.written, log.dropped) == (60, 2)
    begin = '{"type":"impression","id":"'
    refused = re.findall(
        rf"topic '{topic}' refuses a record of (\d+) bytes, beginning with '{begin}([^\"]+)",
        caplog.text,
    )
    # Five documents of 1,000 bytes, and some 160 bytes around them.
    assert sorted(refused) == [("5162", "large 7"), ("5163", "large 30")]
    ids = {json.loads(record.value)["id"] for record in read(servers, topic)}
    assert ids == {f"{number}" for number in range(60)}


def test_refused_records_are_found_among_others(kafka: Broker, topics: Topics) -> None:
    topic = topics(1, max_message_bytes=3000)
    sizes = [100] * 20 + [5000] + [100] * 20 + [5000]
    messages = [Message(b"search", b"%d " % n + b"x" * size) for n, size in enumerate(sizes)]
    with contextlib.closing(KafkaWriter(kafka.bootstrap_servers, topic)) as writer:
        assert writer.write(messages) == Written([], refused=2)
    found = {record.value for record in read(kafka.bootstrap_servers, topic)}
    assert found == {message.value for message in messages if len(message.value) < 1000}


def test_a_missing_topic_to_write_to_is_not_created(
    kafka: Broker, topics: Topics, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(client_kafka, "PRODUCER", {**client_kafka.PRODUCER, "max_block_ms": 300})
    missing = f"{topics(1)}-missing"
    log = EventLog.to_kafka(kafka.bootstrap_servers, missing)
    log.click("search", "i-1", rank=0)
    eventually(lambda: "the event log cannot be written to: " in caplog.text)
    log.close(timeout=0)
    assert log.dropped == 1
    sentence = f"there is no topic '{missing}', or no broker answers."
    assert f"the event log cannot be written to: {sentence}" in caplog.text


ENDING = """
import atexit, logging, sys
from streamduel.client import EventLog, writers

logging.basicConfig(format="%(message)s")
logging.getLogger("kafka").setLevel(logging.ERROR)
writers.EXIT_SECONDS = float(sys.argv[3])
log = EventLog.to_kafka(sys.argv[1], sys.argv[2])
# Runs after the exit handlers of whatever is opened for the first record.
atexit.register(lambda: log.click("search", "i-1", rank=0, record_id="last"))
log.click("search", "i-1", rank=0, record_id="first")
assert log.flush(float(sys.argv[3]))
"""


def test_a_program_that_ends_writes_its_buffer_with_the_open_producer(
    kafka: Broker, topics: Topics
) -> None:
    servers, topic = kafka.bootstrap_servers, topics(1)
    ended = subprocess.run(
        [sys.executable, "-c", ENDING, servers, topic, str(PATIENCE)],
        check=True, stderr=subprocess.PIPE, text=True, timeout=3 * PATIENCE,
    )  # fmt: skip
    assert ended.stderr == ""
    ids = [json.loads(record.value)["id"] for record in read(servers, topic)]
    assert ids == ["first", "last"]


@pytest.mark.slow
def test_an_outage_of_the_broker(
    own_broker: LocalKafka, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    servers = own_broker.bootstrap_servers
    soon = {"delivery_timeout_ms": 1500, "max_block_ms": 1000}
    monkeypatch.setattr(client_kafka, "PRODUCER", {**client_kafka.PRODUCER, **soon})
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        topics = {name: {"num_partitions": 2} for name in ("assignments", "clicks")}
        admin.create_topics(topics, wait_for_metadata=True)
    with publisher(servers, "streamduel") as streamduel:
        publish(streamduel, "assignments", alone("x", 1))
    quick = {"request_timeout_ms": 1000}
    with (
        Assignments.from_kafka(servers) as assignments,
        EventLog.to_kafka(servers, kafka=quick) as log,
    ):
        assert assignments.wait_for("search", PATIENCE)
        log.click("search", "i-1", rank=0, record_id="before")
        assert log.flush(PATIENCE)
        own_broker.kill()
        log.click("search", "i-1", rank=0, record_id="while away")
        eventually(lambda: "topic 'clicks' cannot be written to: " in caplog.text)
        eventually(lambda: "the event log cannot be written to: " in caplog.text)
        assert assignments.draw("search") == Draw("x", "x", 1)
        own_broker.start()
        log.click("search", "i-1", rank=0, record_id="after")
        assert log.flush(PATIENCE)
        with publisher(servers, "streamduel") as streamduel:
            publish(streamduel, "assignments", alone("y", 2))
        eventually(lambda: assignments.draw("search") == Draw("y", "y", 2))
    assert (log.written, log.dropped) == (3, 0)
    ids = [json.loads(record.value)["id"] for record in read(servers, "clicks")]
    # An unconfirmed record may be written twice, with one id.
    assert sorted(set(ids)) == ["after", "before", "while away"]

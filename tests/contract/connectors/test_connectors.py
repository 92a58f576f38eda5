"""Runs the public checks on every connector; a new connector adds a fixture here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from streamduel.connector import load_connector
from streamduel.testing.connectors import CHECKS, ConfiguredConnector, ConnectorFixture
from tests.broker.fixture import Broker as KafkaBroker
from tests.broker.fixture import Topics
from tests.contract.connectors.in_memory import InMemory
from tests.contract.connectors.on_files import on_files


@pytest.fixture
def on_memory() -> ConnectorFixture:
    return InMemory()


@pytest.fixture(name="on_files")
def _on_files(tmp_path: Path) -> ConnectorFixture:
    return on_files(load_connector("files"), tmp_path)


@pytest.fixture
def max_poll_interval_ms(check: Callable[[ConnectorFixture], None]) -> int:
    """Short where a process is to lose its partition by it; a busy machine may pause for longer."""
    return 10_000 if check.__name__ == "check_a_former_owner_commits_nothing" else 60_000


@pytest.fixture
def on_kafka(kafka: KafkaBroker, topics: Topics, max_poll_interval_ms: int) -> ConnectorFixture:
    return _on_kafka(kafka, topics, "kafka-python", max_poll_interval_ms)


@pytest.fixture
def on_confluent(kafka: KafkaBroker, topics: Topics, max_poll_interval_ms: int) -> ConnectorFixture:
    return _on_kafka(kafka, topics, "confluent", max_poll_interval_ms)


def _on_kafka(
    kafka: KafkaBroker, topics: Topics, client: str, max_poll_interval_ms: int
) -> ConnectorFixture:
    topic, letters = topics(1), topics(1)

    def append(values: Sequence[bytes]) -> None:
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for value in values:
                producer.send(topic, value, partition=0)
            producer.flush()

    def dead_letters() -> list[bytes]:
        consumer = KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers, isolation_level="read_committed"
        )
        with closing(consumer):
            part, found = TopicPartition(letters, 0), []
            consumer.assign([part])
            consumer.seek_to_beginning(part)
            end = consumer.end_offsets([part])[part]
            while consumer.position(part) < end:
                for records in consumer.poll(timeout_ms=50).values():
                    found += [record.value for record in records]
            return found

    shared = {
        "connector": "kafka",
        "client": client,
        "bootstrap_servers": kafka.bootstrap_servers,
    }
    timeouts = {"session_timeout_ms": 6000, "max_poll_interval_ms": max_poll_interval_ms}
    return ConfiguredConnector(
        load_connector("kafka"),
        {**shared, "topic": topic, "group": topic, **timeouts},
        {**shared, "assignments": topics(1, compacted=True), "dead_letters": letters},
        {**shared, "topic": topics(1, compacted=True)},
        append,
        dead_letters,
    )


@pytest.fixture(
    params=[
        "memory",
        "files",
        pytest.param("kafka", marks=pytest.mark.kafka),
        pytest.param("confluent", marks=pytest.mark.kafka),
    ]
)
def connector(request: pytest.FixtureRequest) -> ConnectorFixture:
    made: ConnectorFixture = request.getfixturevalue(f"on_{request.param}")
    return made


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_connector(check: Callable[[ConnectorFixture], None], connector: ConnectorFixture) -> None:
    check(connector)

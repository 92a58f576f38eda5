"""Runs the public checks on every connector; a new connector adds a fixture here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from kafka import KafkaProducer

from streamduel.connector import Failpoint, Source, load_connector, no_failpoint
from streamduel.testing import Broker, MemoryOutlet, MemorySource
from streamduel.testing.connectors import CHECKS, ConfiguredConnector, ConnectorFixture
from tests.broker.fixture import Broker as KafkaBroker
from tests.broker.fixture import Topics


class InMemory:
    """The in-memory broker of `streamduel.testing`."""

    def __init__(self) -> None:
        self._broker = Broker([])

    def append(self, values: Sequence[bytes]) -> None:
        self._broker.log = [*self._broker.log, *values]

    def append_one(self, key: bytes, value: bytes) -> str:
        self.append([value])
        return MemorySource.topic

    def source(self) -> Source:
        return self._broker.source()

    def outlet(self, source: Source, failpoint: Failpoint = no_failpoint) -> MemoryOutlet:
        return self._broker.outlet()

    def archive(self) -> MemoryOutlet:
        return self._broker.outlet()


@pytest.fixture
def on_memory() -> ConnectorFixture:
    return InMemory()


@pytest.fixture
def on_files(tmp_path: Path) -> ConnectorFixture:
    log = tmp_path / "clicks.jsonl"
    log.touch()

    def append(values: Sequence[bytes]) -> None:
        with log.open("ab") as file:
            file.writelines(value + b"\n" for value in values)

    return ConfiguredConnector(
        load_connector("files"),
        {"connector": "files", "path": log},
        {"connector": "files", "path": tmp_path / "out"},
        {"connector": "files", "path": tmp_path / "state"},
        append,
    )


@pytest.fixture
def on_kafka(kafka: KafkaBroker, topics: Topics) -> ConnectorFixture:
    return _on_kafka(kafka, topics, "kafka-python")


@pytest.fixture
def on_confluent(kafka: KafkaBroker, topics: Topics) -> ConnectorFixture:
    return _on_kafka(kafka, topics, "confluent")


def _on_kafka(kafka: KafkaBroker, topics: Topics, client: str) -> ConnectorFixture:
    topic = topics(1)

    def append(values: Sequence[bytes]) -> None:
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for value in values:
                producer.send(topic, value, partition=0)
            producer.flush()

    shared = {
        "connector": "kafka",
        "client": client,
        "bootstrap_servers": kafka.bootstrap_servers,
    }
    return ConfiguredConnector(
        load_connector("kafka"),
        {**shared, "topic": topic, "group": topic, "session_timeout_ms": 6000},
        {**shared, "assignments": topics(1, compacted=True), "dead_letters": topics(1)},
        {**shared, "topic": topics(1, compacted=True)},
        append,
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

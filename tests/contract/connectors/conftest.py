"""The Kafka bed: a fresh log of one partition on the real broker."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from kafka import KafkaProducer

from streamduel.connector import load_connector
from tests.broker.fixture import Broker, Topics
from tests.contract.connectors.configured import Configured


@pytest.fixture
def kafka_bed(kafka: Broker, topics: Topics) -> Configured:
    topic = topics(1)

    def append(values: Sequence[bytes]) -> None:
        with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
            for value in values:
                producer.send(topic, value, partition=0)
            producer.flush()

    shared = {"connector": "kafka", "bootstrap_servers": kafka.bootstrap_servers}
    return Configured(
        load_connector("kafka"),
        {**shared, "topic": topic, "group": topic, "session_timeout_ms": 6000},
        {**shared, "assignments": topics(1, compacted=True), "dead_letters": topics(1)},
        {**shared, "topic": topics(1, compacted=True)},
        append,
    )

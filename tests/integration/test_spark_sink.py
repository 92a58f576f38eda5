"""The sink of the Spark job, when Kafka does not take a batch."""

from __future__ import annotations

from contextlib import closing

import pytest
from kafka import KafkaAdminClient

from streamduel.errors import ConnectorError
from streamduel_spark import sink
from tests.broker.fixture import Broker, Topics

pytestmark = pytest.mark.kafka


def test_a_sink_is_closed_with_records_that_kafka_did_not_take(
    kafka: Broker, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, duels, letters = (topics(1) for _ in range(3))
    message = sink.Message(letters, b"search", b"{}")
    with closing(sink.Sink({"bootstrap_servers": [kafka.bootstrap_servers]}, duels, "g")) as opened:
        opened.open(raw, letters)
        assert opened.write("checkpoint", 0, [message])
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            admin.delete_topics([letters])
        monkeypatch.setattr(sink, "ANSWER_MS", 1000)
        with pytest.raises(ConnectorError, match="Kafka did not take batch 1: KafkaTimeoutError"):
            opened.write("checkpoint", 1, [message])

"""The sink of the Spark job: refused and repeated batches."""

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


def test_a_repeated_batch_is_skipped_and_an_older_checkpoint_is_refused(
    kafka: Broker, topics: Topics
) -> None:
    raw, duels, letters = (topics(1) for _ in range(3))
    group, message = f"g-{duels}", sink.Message(letters, b"search", b"{}")
    settings = {"bootstrap_servers": [kafka.bootstrap_servers]}
    with closing(sink.Sink(settings, duels, group)) as opened:
        opened.open(raw, letters)
        assert all(opened.write("checkpoint", number, [message]) for number in range(3))
    with closing(sink.Sink(settings, duels, group)) as opened:
        opened.open(raw, letters)
        assert not opened.write("checkpoint", 2, [message])
        with pytest.raises(ConnectorError, match="with batch 1, and batch 2 was written last"):
            opened.write("checkpoint", 1, [message])
        assert opened.write("checkpoint", 3, [message])
        assert opened.write("another checkpoint", 0, [message])

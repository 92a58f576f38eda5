"""What is left open when opening fails half-way, and how long it may take."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from streamduel.connector import SourceOptions
from streamduel.errors import ConnectorError
from streamduel_kafka import control_log, opening
from streamduel_kafka.client import ConsumerOptions, Found, ProducerOptions
from streamduel_kafka.confluent import consumer_opening as confluent
from streamduel_kafka.control_log import ControlLog
from streamduel_kafka.settings import SourceSettings

SETTINGS = SourceSettings(
    bootstrap_servers=["nowhere:1"], topic="clicks", group="g", control_topic="control"
)


class Closable:
    """A client, or a name."""

    name = "host-0"

    def __init__(self, *_: Any) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def subscribe(self, _topic: str, _listener: Any) -> None:
        """Nothing is assigned."""

    def assign_held(self, _partitions: Any) -> None:
        """Nothing is delivered."""


class Existing(Closable):
    """Topics that are all there."""

    unbounded: dict[str, str] = {}  # noqa: RUF012

    def require_log(self, *_: Any, **_more: Any) -> Found:
        return Found(1, "id")

    def require_every_record(self, _topic: str) -> None:
        """It is not compacted."""

    def require_control(self, *_: Any, **_more: Any) -> Found:
        return Found(1, "id")


@pytest.mark.parametrize("opens", [opening.open_source, opening.open_log])
def test_a_control_topic_that_cannot_be_opened_closes_the_rest(
    monkeypatch: pytest.MonkeyPatch, opens: Any
) -> None:
    consumer, instance = Closable(), Closable()

    def refuse(*_: Any, **_more: Any) -> None:
        raise ConnectorError("refused")

    monkeypatch.setattr(opening, "Topics", Existing)
    monkeypatch.setattr(opening, "Instance", lambda *_: instance)
    monkeypatch.setattr(opening, "connect_at_start", lambda *_: consumer)
    monkeypatch.setattr(opening, "open_control", refuse)
    with pytest.raises(ConnectorError, match="refused"):
        opens(SETTINGS, SourceOptions(until_end=True))
    assert consumer.closed
    assert instance.closed == (opens is opening.open_source)


def test_a_producer_of_markers_that_cannot_be_opened_closes_the_consumer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    consumer = Closable()

    def connect(options: Any, _settings: Any) -> Closable:
        if isinstance(options, ProducerOptions):
            raise ConnectorError("refused")
        return consumer

    monkeypatch.setattr(control_log, "connect_at_start", connect)
    with pytest.raises(ConnectorError, match="refused"):
        ControlLog(SETTINGS, None, forwards=True)
    assert consumer.closed


def test_a_consumer_and_its_admin_client_have_one_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waits = [0.0], []

    def open_admin(_settings: Any, _options: Any, seconds: float) -> Any:
        waits.append(seconds)

    def await_cluster(_client: Any, _heard: Any, seconds: float, _serve: Any) -> None:
        waits.append(seconds)
        now[0] += 4

    monkeypatch.setattr(confluent, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(confluent, "Librdkafka", Closable)
    monkeypatch.setattr(confluent, "await_cluster", await_cluster)
    monkeypatch.setattr(confluent, "open_admin", open_admin)
    confluent.open_consumer({"bootstrap_servers": ["nowhere:1"]}, ConsumerOptions(), 10.0)
    assert waits == [10, 6]

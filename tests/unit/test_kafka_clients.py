"""Clients of kafka-python that fail while they are opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka import KafkaConsumer

from streamduel.kafka_clients import open_client


def test_a_failed_constructor_closes_its_connections() -> None:
    closed: list[Any] = []

    class Half:
        def __init__(self, kafka_client: Callable[..., Any], **settings: Any) -> None:
            made = kafka_client(**KafkaConsumer.DEFAULT_CONFIG)
            closed.append(made.close)
            made.close = lambda: closed.append("closed")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        open_client(Half, {})
    really_close, last = closed
    really_close()
    assert last == "closed"

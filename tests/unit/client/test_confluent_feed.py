"""The choice of the library that reads the assignments, and its settings."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from streamduel.client import Assignments
from streamduel.errors import ClientError


def test_without_confluent_kafka_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "streamduel.client.confluent_feed", None)
    with pytest.raises(ClientError, match=r"need confluent-kafka; install streamduel-client\[fast"):
        Assignments.from_kafka("nowhere:9092", client="confluent")


def test_an_unknown_client_is_refused() -> None:
    unknown: Any = "librdkafka"
    with pytest.raises(ClientError, match=r"must be .* \(found 'librdkafka'\)"):
        Assignments.from_kafka("nowhere:9092", client=unknown)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"security_protocol": "SSL"}, 'No such configuration property: "security_protocol"'),
        ({"isolation.level": "read_uncommitted"}, "'isolation.level' of librdkafka cannot be"),
        ({"group.id": "mine"}, "'group.id' of librdkafka cannot be changed here"),
    ],
)
def test_wrong_settings_are_refused_at_once(settings: dict[str, str], problem: str) -> None:
    with pytest.raises(ClientError, match=problem):
        Assignments.from_kafka("nowhere:9092", client="confluent", kafka=settings)

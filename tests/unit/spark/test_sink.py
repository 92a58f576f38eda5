"""Opening the sink of the Spark job."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import pytest
from kafka.errors import UnknownTopicOrPartitionError

from streamduel.errors import ConnectorError
from streamduel_spark import sink


class Admin:
    """An administrator of a cluster in which some topics are missing."""

    topics: ClassVar[set[str]]

    def __init__(self, **_: Any) -> None:
        """It connects to nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close."""

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        unknown = UnknownTopicOrPartitionError.errno
        return [
            {"name": it, "error_code": 0 if it in self.topics else unknown}
            for it in sorted(topics)
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("topics", "sentence"),
    [
        ({"letters"}, "there are no topics 'raw', 'duels' on a:1; create them first."),
        ({"raw", "letters"}, "there is no topic 'duels' on a:1; create it first."),
    ],
)
def test_all_missing_topics_are_named_at_once(
    topics: set[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "KafkaAdminClient", Admin)
    monkeypatch.setattr(Admin, "topics", topics, raising=False)
    opened = sink.Sink({"bootstrap_servers": ["a:1"]}, "duels", "g")
    with pytest.raises(ConnectorError, match=f"^{sentence}"):
        opened.open("raw", "letters")

"""Opening the sink of the Spark job."""

from __future__ import annotations

from typing import Any, Self

import pytest

from streamduel.errors import ConnectorError
from streamduel_spark import sink


class Consumer:
    """A consumer of a cluster with one topic."""

    def __init__(self, **_: Any) -> None:
        """It connects to nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return {0} if topic == "letters" else None


@pytest.mark.parametrize(
    ("topics", "sentence"),
    [
        (["raw", "duels", "letters"], "there are no topics 'raw', 'duels' on a:1; create them fir"),
        (["letters", "duels"], "there is no topic 'duels' on a:1; create it first."),
    ],
)
def test_all_missing_topics_are_named_at_once(
    topics: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "KafkaConsumer", Consumer)
    opened = sink.Sink({"bootstrap_servers": ["a:1"]}, "duels", "g", 1, "raw")
    with pytest.raises(ConnectorError, match=f"^{sentence}"):
        opened.open(*topics)

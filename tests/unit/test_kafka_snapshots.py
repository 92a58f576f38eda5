"""How a load of a snapshot waits."""

from __future__ import annotations

from typing import Any

import pytest
from kafka import errors
from structlog.typing import EventDict

from streamduel.errors import ConnectorError
from streamduel_kafka.settings import SnapshotSettings
from streamduel_kafka.snapshots import HANGING, SnapshotLoader

TOPIC = {"connector": "kafka", "bootstrap_servers": ["127.0.0.1:9"], "topic": "s"}


class Held:
    """A producer whose former transaction does not end for some attempts; then all is closed."""

    timeout_ms = 60_000

    def __init__(self, *answers: errors.KafkaError) -> None:
        self._answers = list(answers)
        self.loader: SnapshotLoader | None = None

    def settle(self) -> None:
        answer = self._answers.pop(0)
        if not self._answers:
            assert self.loader is not None
            self.loader.close()
        raise answer


def test_a_transaction_that_does_not_end_gets_advice(
    monkeypatch: pytest.MonkeyPatch, logged: list[EventDict]
) -> None:
    held, other = errors.ConcurrentTransactionsError(), errors.NotCoordinatorError()
    monkeypatch.setattr(SnapshotLoader, "_patience", lambda _: 0.0)
    monkeypatch.setattr("streamduel_kafka.snapshots.absent", lambda *_: None)
    transactions: Any = Held(held, held, other, held)
    loader = SnapshotLoader(SnapshotSettings.model_validate(TOPIC), transactions, None)
    transactions.loader = loader
    with pytest.raises(ConnectorError, match="shutting down"):
        loader.load(0)
    found = [line.get("advice") for line in logged if line["event"] == "snapshot not read yet"]
    assert found == [None, HANGING, None, None]

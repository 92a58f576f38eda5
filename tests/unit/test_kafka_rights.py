"""What a refusal of the brokers tells the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kafka import TopicPartition, errors

from streamduel.errors import ConnectorError
from streamduel.kafka_rights import Rights
from streamduel_kafka.connecting import unreachable
from streamduel_kafka.offsets import Offsets
from streamduel_kafka.settings import SnapshotSettings
from streamduel_kafka.snapshots import SnapshotLoader
from streamduel_kafka.transaction import Transactions

LOGIN = {
    "bootstrap_servers": ["127.0.0.1:9"],
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_plain_username": "ada",
    "sasl_plain_password": "correct horse",
}
REFUSED = errors.SaslAuthenticationFailedError("invalid credentials")


class Refused:
    """A consumer of a broker that refuses its password."""

    def begins(self, _partitions: Any, _seconds: float) -> Any:
        raise REFUSED


def _reads() -> None:
    consumer: Any = Refused()
    Offsets(consumer, "clicks", Rights(LOGIN)).bounds(TopicPartition("clicks", 0), 1.0)


def _commits(monkeypatch: pytest.MonkeyPatch) -> Transactions:
    def refuse(*_: object) -> None:
        raise REFUSED

    monkeypatch.setattr("streamduel_kafka.transaction.connect", refuse)
    return Transactions(LOGIN, "streamduel-g-host-0", 60_000)


@pytest.mark.parametrize("what", ["click log", "snapshot", "commit"])
def test_a_changed_password_is_told_as_at_the_start(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    settings = SnapshotSettings.model_validate({"connector": "kafka", "topic": "s", **LOGIN})
    transactions = _commits(monkeypatch)
    asked: dict[str, Callable[[], object]] = {
        "click log": _reads,
        "snapshot": lambda: SnapshotLoader(settings, transactions, None).load(0),
        "commit": transactions.begin,
    }
    with pytest.raises(ConnectorError) as caught:
        asked[what]()
    sentence = str(caught.value)
    at_start = str(unreachable(LOGIN, REFUSED))
    assert at_start.startswith(
        "Kafka at 127.0.0.1:9 refused the credentials "
        "(sasl_mechanism SCRAM-SHA-512, user 'ada'): [Error 58] "
    )
    assert sentence == (
        f"{at_start} A new password in sasl_plain_password_file is read at the next start."
    )

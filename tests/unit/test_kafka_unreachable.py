"""How long it takes to hear that no broker answers."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from kafka import errors
from structlog.testing import capture_logs

from streamduel.connector import SourceOptions
from streamduel.errors import ConnectorError, Fenced
from streamduel_kafka import connecting, transaction
from streamduel_kafka.archive import open_archive
from streamduel_kafka.diagnosis import diagnose
from streamduel_kafka.opening import open_log, open_source
from streamduel_kafka.settings import SinkSettings, SnapshotSettings, SourceSettings

SERVERS = {"connector": "kafka", "bootstrap_servers": ["127.0.0.1:9"]}
SOURCE = SourceSettings.model_validate({**SERVERS, "topic": "clicks", "group": "streamduel"})
OPTIONS = SourceOptions(until_end=True)


@pytest.mark.parametrize(
    ("opens", "seconds"),
    [
        (lambda: open_source(SOURCE, OPTIONS), 30),
        (lambda: open_log(SOURCE, OPTIONS), 10),
        (
            lambda: open_archive(
                SinkSettings.model_validate({**SERVERS, "assignments": "a", "dead_letters": "d"}),
                SnapshotSettings.model_validate({**SERVERS, "topic": "s"}),
            ),
            10,
        ),
    ],
    ids=["run", "replay", "inspect"],
)
def test_a_wrong_address_is_told_soon(
    monkeypatch: pytest.MonkeyPatch, opens: Any, seconds: float
) -> None:
    waited = []

    def connect(_options: Any, _settings: Any, patience: float) -> Any:
        waited.append(patience)
        raise errors.KafkaTimeoutError("Unable to bootstrap")

    monkeypatch.setattr(connecting, "connect", connect)
    with capture_logs() as logs, pytest.raises(ConnectorError, match="cannot be reached"):
        opens()
    assert waited == [2, seconds - 2]
    assert [each["event"] for each in logs] == ["broker not reached"]


@pytest.mark.parametrize("error", [errors.NodeNotReadyError, errors.KafkaTimeoutError])
def test_brokers_that_answer_at_the_first_address_only(
    monkeypatch: pytest.MonkeyPatch, error: type[errors.KafkaError]
) -> None:
    asked = []

    class Admin:
        def find(self, topic: str) -> None:
            asked.append(topic)
            raise error

        def close(self) -> None: ...

    monkeypatch.setattr(connecting, "connect", lambda *_: Admin())
    sink = SinkSettings.model_validate({**SERVERS, "assignments": "a", "dead_letters": "d"})
    found = diagnose(SOURCE, sink, SnapshotSettings.model_validate({**SERVERS, "topic": "s"}))
    assert (found.reachable, asked) == (False, ["clicks"])
    (broker,) = found.findings
    assert broker[:2] == ("broker", "failed")
    assert broker.sentence.endswith(
        ", and whether the brokers' advertised.listeners can be reached from here."
    )


def test_a_refusal_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    def connect(_options: Any, _settings: Any, patience: float) -> Any:
        waited.append(patience)
        raise errors.SaslAuthenticationFailedError("wrong password")

    monkeypatch.setattr(connecting, "connect", connect)
    with capture_logs() as logs, pytest.raises(ConnectorError, match="wrong password"):
        open_source(SOURCE, OPTIONS)
    assert (len(waited), logs) == (1, [])


@pytest.mark.parametrize(
    ("error", "setting"),
    [
        (errors.InvalidSessionTimeoutError(), "source.session_timeout_ms"),
        (errors.KafkaError(errors.InvalidTransactionTimeoutError()), "sink.transaction_timeout_ms"),
        (errors.InvalidTimestampError("One or more were rejected"), "the clock of this machine"),
        (errors.InvalidRecordError("Broker: failed to validate"), "the clock of this machine"),
        (errors.InvalidRecordError("Broker: failed to validate"), "cleanup.policy=compact"),
        (errors.InvalidTimestampError("rejected"), "message.timestamp.after.max.ms, an hour"),
        (errors.InvalidTimestampError("rejected"), "message.timestamp.before.max.ms, unlimited"),
    ],
)
def test_what_to_change_is_named(error: errors.KafkaError, setting: str) -> None:
    assert setting in connecting.reason(error)


def test_a_commit_that_lacks_the_records_of_one_topic_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Sent(NamedTuple):
        done: bool
        error: Exception | None = None

        def wait(self, _seconds: float) -> int:
            if not self.done:
                raise errors.KafkaTimeoutError("Local: Message timed out")
            return 0

    class Producer:
        def init_transactions(self, _seconds: float) -> None: ...

        def begin_transaction(self) -> None: ...

        def send(self, topic: str, *_: object) -> Sent:
            return Sent(done=topic != "deleted")

        def flush(self, _seconds: float) -> None: ...

        def cause(self) -> None: ...

        def discard(self) -> None: ...

    monkeypatch.setattr(transaction, "connect", lambda *_: Producer())
    monkeypatch.setattr(transaction, "absent", lambda *_: None)  # no broker answers
    monkeypatch.setattr(transaction, "obstacle", lambda *_, **_options: None)
    transactions = transaction.Transactions(SERVERS, "streamduel-g-host-0", 60_000)
    for topics, named in ((["kept", "deleted"], " (not written: deleted)"), (["deleted"], "")):
        transactions.begin()
        for topic in topics:
            transactions.send(topic, b"k", b"v")
        with pytest.raises(Fenced) as refused:
            transactions.finish({}, None, lambda _: None, 0.0)
        assert str(refused.value) == (
            f"Kafka did not take a commit: KafkaTimeoutError: Local: Message timed out{named}"
        )

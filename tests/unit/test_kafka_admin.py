"""Requests to brokers that are away, or that do not know a new topic yet."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, OffsetSpec
from kafka import TopicPartition, errors

from streamduel.errors import ConnectorError
from streamduel_kafka import diagnosis, topics
from streamduel_kafka.client import Found
from streamduel_kafka.confluent import brokers
from streamduel_kafka.confluent.admin import ConfluentAdmin
from streamduel_kafka.confluent.brokers import Brokers
from streamduel_kafka.kafka_python.admin import PythonAdmin
from streamduel_kafka.obstacle import NO_COORDINATOR
from streamduel_kafka.settings import SourceSettings
from streamduel_kafka.topics import Topics

FOUND = Found(1, "id")


def answered(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
    return future


class Answers:
    """An admin client of librdkafka with one answer after another."""

    def __init__(self, *answers: Any) -> None:
        self._answers = [
            KafkaException(KafkaError(it)) if isinstance(it, int) else it for it in answers
        ]
        self.served = 0

    def poll(self, _seconds: float) -> int:
        self.served += 1
        return 0

    def describe_topics(self, _topics: Any, **_more: Any) -> Any:
        return {"new": answered(self._answers.pop(0))}

    def describe_cluster(self, **_more: Any) -> Any:
        return answered(None)

    def list_offsets(self, wanted: Any, **_more: Any) -> Any:
        return {place: answered(SimpleNamespace(offset=1)) for place in wanted}


def led(leader: object) -> Any:
    return SimpleNamespace(partitions=[SimpleNamespace(leader=leader)])


def test_a_new_topic_is_awaited_through_errors_that_pass() -> None:
    passing = [
        KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE, KafkaError._TRANSPORT,
        KafkaError._TIMED_OUT, TimeoutError(),
    ]  # fmt: skip
    answers: Any = Answers(*passing, led(None), led("node"))
    ConfluentAdmin(answers).await_topic("new", 10)
    refused: Any = Answers(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(errors.TopicAuthorizationFailedError):
        ConfluentAdmin(refused).await_topic("new", 10)


def test_every_repeated_request_takes_the_reports_of_the_client() -> None:
    answers: Any = Answers(led("node"), led("node"))
    admin = ConfluentAdmin(answers)
    admin.ask("new")
    admin.ping()
    admin.offsets([TopicPartition("new", 0)], OffsetSpec.latest(), 1)
    assert answers.served == 3


def test_a_closed_client_has_ended() -> None:
    admin = ConfluentAdmin(AdminClient({"bootstrap.servers": "127.0.0.1:9", "log_level": 2}))
    asked = admin.ask("new")
    admin.close()
    assert asked.done()
    with pytest.raises(RuntimeError, match="has been closed"):
        admin.ping()


class Slow:
    """An admin client of a cluster in which a broker does not know a new topic for a while."""

    def __init__(self, *found: Any) -> None:
        self._found = list(found)

    def find(self, _topic: str) -> Found | None:
        answer = self._found.pop(0) if len(self._found) > 1 else self._found[0]
        if isinstance(answer, Exception):
            raise answer
        known: Found | None = answer
        return known

    def create(self, *_: Any) -> None:
        """It is created."""

    def await_topic(self, _topic: str, _seconds: float) -> None:
        """Another broker knows it."""


def required(monkeypatch: pytest.MonkeyPatch, *found: Any) -> Found:
    settings = SourceSettings(
        bootstrap_servers=["nowhere:1"], topic="new", group="g", create_topics=True
    )
    monkeypatch.setattr(topics, "connect_at_start", lambda *_: Slow(*found))
    return Topics(settings).require_log("new", 1)


def test_a_new_topic_that_a_broker_does_not_know_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    assert required(monkeypatch, None, None, errors.LeaderNotAvailableError(), FOUND) == FOUND
    monkeypatch.setattr(topics, "CREATE_SECONDS", 0.0)
    with pytest.raises(ConnectorError, match=r"'new' was created, but after 0 s not every broker"):
        required(monkeypatch, None)


def test_settings_of_a_topic_that_a_broker_does_not_know_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = {
        "cleanup.policy": "delete",
        "max.message.bytes": "1000",
        "message.timestamp.type": "CreateTime",
        "retention.ms": "-1",
    }
    found: list[Any] = [errors.UnknownTopicOrPartitionError(), log]

    def configs(_: Slow, _topic: str) -> dict[str, str]:
        answer: dict[str, str] | Exception = found.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(Slow, "configs", configs, raising=False)
    settings = SourceSettings(bootstrap_servers=["nowhere:1"], topic="new", group="g")
    monkeypatch.setattr(topics, "connect_at_start", lambda *_: Slow(FOUND))
    checked = Topics(settings)
    checked.require_every_record("new")
    assert checked.accepted == {"new": 1000}
    found[:] = [errors.UnknownTopicOrPartitionError()]
    monkeypatch.setattr(topics, "CREATE_SECONDS", -1.0)
    with pytest.raises(ConnectorError, match="UnknownTopicOrPartitionError"):
        checked.require_every_record("new")


def test_a_failed_request_is_repeated_and_means_silence_until_one_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(brokers, "time", SimpleNamespace(monotonic=lambda: now[0]))
    found = Brokers()
    asked: list[Future[Any]] = []

    def ask() -> Future[Any]:
        future: Future[Any] = Future()
        asked.append(future)
        return future

    def quiet(at: float) -> bool:
        now[0] = at
        return found.quiet(ask)

    assert (quiet(1), quiet(2), len(asked)) == (False, False, 1)
    asked[0].set_exception(KafkaException(KafkaError(KafkaError._TRANSPORT)))
    assert (quiet(2.1), len(asked)) == (True, 1)
    assert (quiet(4), quiet(5), len(asked)) == (True, True, 2)
    asked[1].set_result(None)
    assert (quiet(5.1), quiet(6), len(asked)) == (False, False, 3)
    assert quiet(9)  # it is not answered in time


def test_other_topics_are_read_with_the_client_that_bounds_decompression(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = []

    def connect(_options: Any, settings: Any, _seconds: float) -> Any:
        used.append(settings["client"])
        raise ConnectorError("enough")

    monkeypatch.setattr(diagnosis, "connect_at_start", connect)
    settings = SourceSettings(
        bootstrap_servers=["nowhere:1"], topic="clicks", group="g", client="confluent"
    )
    with pytest.raises(ConnectorError, match="enough"):
        diagnosis._elsewhere(settings, ["theirs"])
    assert used == ["kafka-python"]


class Old:
    """An admin client of kafka-python on Kafka 3.6, where its `describe_cluster` fails."""

    def __init__(self, *brokers: int) -> None:
        known = [SimpleNamespace(node_id=it) for it in brokers]
        self._manager = SimpleNamespace(cluster=SimpleNamespace(brokers=lambda: known))

    def describe_cluster(self) -> Any:
        raise KeyError("endpoint_type")

    def describe_configs(self, asked: Any, **_more: Any) -> Any:
        entries = {name: {"value": "7"} for name in asked[0].configs}
        return {"broker": {asked[0].name: entries}}


def test_limits_of_brokers_before_kafka_3_7() -> None:
    assert PythonAdmin(Old(3, 4)).broker_configs("limit") == {"limit": "7"}
    with pytest.raises(errors.BrokerNotAvailableError):
        PythonAdmin(Old()).broker_configs("limit")


def test_transactions_without_a_coordinator_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "COORDINATOR_SECONDS", -1.0)
    settings = SourceSettings(bootstrap_servers=["nowhere:1"], topic="clicks", group="g")

    def told(error: errors.KafkaError) -> tuple[str, str]:
        admin: Any = SimpleNamespace(find_transactions=lambda _: answered(error).result())
        return diagnosis._transactions(admin, settings)[1:]

    assert told(errors.CoordinatorNotAvailableError()) == ("failed", f"{NO_COORDINATOR}.")
    assert told(errors.CoordinatorLoadInProgressError())[0] == "unknown"

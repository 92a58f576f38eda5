"""Assignments read with confluent-kafka: its choice, its settings, and its errors."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from streamduel.client import Assignments, confluent_feed
from streamduel.client.confluent_feed import ConfluentFeed
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
        ("group.id=mine", r"^kafka must be a dict of settings \(found str\)\.$"),
    ],
)
def test_wrong_settings_are_refused_at_once(settings: Any, problem: str) -> None:
    with pytest.raises(ClientError, match=problem):
        Assignments.from_kafka("nowhere:9092", client="confluent", kafka=settings)


@pytest.mark.parametrize("topic", ["", "my topic", "x" * 250, ".", "..", None])
def test_a_wrong_topic_is_refused_at_once(topic: Any) -> None:
    with pytest.raises(ClientError, match=r"^topic .* cannot be used: a name has 1 to 249 "):
        Assignments.from_kafka("nowhere:9092", topic, client="confluent")


@pytest.mark.parametrize("topic", [".a", "..a", "a.", "...", "x" * 249])
def test_a_topic_may_have_dots(topic: str) -> None:
    ConfluentFeed("nowhere:9092", topic).close()


@pytest.mark.parametrize("servers", [5, None, ["k-1", 5], "", " , ", []])
def test_wrong_servers_are_refused_at_once(servers: Any) -> None:
    with pytest.raises(ClientError, match=r"^bootstrap_servers must have host:port of one or"):
        Assignments.from_kafka(servers, client="confluent")


TOPIC = "assignments"


class Polled:
    """A consumer of librdkafka that has some polls."""

    def __init__(self, *polls: list[Message[Any, Any]]) -> None:
        self._polls = list(polls)
        self.assigned: list[int] = []
        self.paused: list[int] = []
        self.partitions = {0: None, 1: None}
        self.answers = 1_000
        self.closed = False

    def list_topics(self, topic: str, _seconds: float) -> Any:
        if not self.answers:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "timed out"))
        self.answers -= 1
        described = SimpleNamespace(error=None, partitions=self.partitions)
        return SimpleNamespace(topics={topic: described})

    def incremental_assign(self, places: list[TopicPartition]) -> None:
        self.assigned += [each.partition for each in places]

    def pause(self, places: list[TopicPartition]) -> None:
        self.paused += [each.partition for each in places]

    def resume(self, places: list[TopicPartition]) -> None:
        self.paused = [it for it in self.paused if it not in {each.partition for each in places}]

    def poll(self, _seconds: float) -> Message[Any, Any] | None:
        return self._polls[0].pop(0) if self._polls and self._polls[0] else None

    def consume(self, _number: int, _seconds: float) -> list[Message[Any, Any]]:
        return self._polls.pop(0)

    def close(self) -> None:
        self.closed = True


def record(value: bytes, partition: int = 0) -> Message[Any, Any]:
    return Message(topic=TOPIC, partition=partition, value=value, timestamp=(1, 1000))


def failed(code: int, partition: int = 0) -> Message[Any, Any]:
    return Message(topic=TOPIC, partition=partition, error=KafkaError(code, "the reason"))


def feed(monkeypatch: pytest.MonkeyPatch, *consumers: Polled) -> ConfluentFeed:
    left = iter(consumers)
    monkeypatch.setattr(confluent_feed, "Consumer", lambda _settings: next(left))
    return ConfluentFeed("nowhere:9092", TOPIC)


def test_a_feed_is_named_by_its_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    assert str(feed(monkeypatch, Polled())) == "topic 'assignments'"


def test_an_error_does_not_take_the_records_of_its_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    denied = failed(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    first, second = Polled([record(b"1"), denied, record(b"2")]), Polled([record(b"3")])
    following = feed(monkeypatch, first, second)
    assert [each.value for each in following.poll()] == [b"1", b"2"]
    with pytest.raises(ClientError, match="'assignments' cannot be read: the reason"):
        following.poll()
    assert first.closed
    assert [each.value for each in following.poll()] == [b"3"]


@pytest.mark.parametrize("code", [KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG])
def test_a_damaged_batch_holds_its_partition_alone(
    code: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = failed(code, 1)
    polled = Polled([record(b"1"), damaged, damaged], [record(b"2")], [damaged, record(b"3")])
    following = feed(monkeypatch, polled)
    assert [each.value for each in following.poll()] == [b"1"]
    assert polled.paused == [1, 1]
    monkeypatch.setattr(confluent_feed, "LOOK_SECONDS", 0.0)
    assert [each.value for each in following.poll()] == [b"2"]
    assert not polled.paused
    assert [each.value for each in following.poll()] == [b"3"]
    assert polled.paused == [1]
    assert [each.getMessage() for each in caplog.records] == [
        "partition 1 of topic 'assignments' cannot be read further: the reason"
    ]


def test_new_partitions_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confluent_feed, "LOOK_SECONDS", 0.0)
    polled = Polled()
    following = feed(monkeypatch, polled)
    following.poll()
    polled.partitions[2] = None
    following.poll()
    following.poll()
    assert polled.assigned == [0, 1, 2]


@pytest.mark.parametrize(("answers", "said"), [(0, "timed out (refused)"), (1, "timed out")])
def test_an_error_names_no_reason_from_before_an_answer(
    answers: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confluent_feed, "LOOK_SECONDS", 0.0)
    polled = Polled()
    polled.answers = answers

    def opened(settings: dict[str, Any]) -> Polled:
        settings["error_cb"](KafkaError(KafkaError._TRANSPORT, "refused"))
        return polled

    monkeypatch.setattr(confluent_feed, "Consumer", opened)
    following = ConfluentFeed("nowhere:9092", TOPIC)
    for _ in range(answers):
        following.poll()
    with pytest.raises(ClientError) as unanswered:
        following.poll()
    assert str(unanswered.value) == f"topic 'assignments' cannot be read: {said}."

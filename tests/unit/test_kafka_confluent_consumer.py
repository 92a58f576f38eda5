"""What a consumer of confluent-kafka makes of librdkafka's messages."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from kafka import TopicPartition, errors

from streamduel_kafka.client import Committed, ConsumerOptions, Membership
from streamduel_kafka.confluent.brokers import Brokers
from streamduel_kafka.confluent.consumer import ConfluentConsumer
from streamduel_kafka.confluent.opening import SOCKET_MS, Errors
from streamduel_kafka.settings import LIBRDKAFKA

AT = TopicPartition("clicks", 0)

TRUNCATED = (
    "Partition log truncation detected at offset 5 (leader epoch 0): broker end offset is 3 "
    "(offset leader epoch 0). Reset to INVALID.: Local: Partition log truncation detected "
    "(broker 1)"
)
MOST = 1_000_000

OUT_OF_RANGE = (
    "fetch failed due to requested offset not available on the broker: "
    "Broker: Offset out of range (broker 1)"
)


class Polled:
    """A consumer of librdkafka with one message."""

    def __init__(self, message: Message[Any, Any]) -> None:
        self._message = message

    def assign(self, _places: Any) -> None:
        """All partitions exist."""

    def poll(self, _seconds: float) -> Message[Any, Any]:
        return self._message

    def consume(self, number: int, _seconds: float) -> list[Message[Any, Any]]:
        if not 0 <= number <= MOST:
            raise ValueError(f"num_messages must be between 0 and {MOST} (1M)")
        return []


class Closable:
    """An admin client, or a second consumer."""

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def message(**fields: Any) -> Message[Any, Any]:
    return Message(topic=AT.topic, partition=AT.partition, **fields)


def opened(first: Message[Any, Any], options: ConsumerOptions) -> ConfluentConsumer:
    polled: Any = Polled(first)
    unused: Any = None
    consumer = ConfluentConsumer(polled, unused, Brokers(), unused, options, Errors())
    consumer.assign({AT: 5})
    return consumer


@pytest.mark.parametrize(
    ("text", "kind"),
    [(TRUNCATED, errors.LogTruncationError), (OUT_OF_RANGE, errors.OffsetOutOfRangeError)],
    ids=["truncated", "out of range"],
)
def test_a_truncated_log_is_no_offset_out_of_range(
    text: str, kind: type[errors.KafkaError]
) -> None:
    error = KafkaError(KafkaError._AUTO_OFFSET_RESET, text)
    consumer = opened(message(offset=-1001, error=error), ConsumerOptions())
    with pytest.raises(kind) as raised:
        consumer.poll(0)
    assert type(raised.value) is kind


def test_a_poll_may_allow_more_records_than_librdkafka_hands_out_at_once() -> None:
    click = message(offset=5, value=b"click", timestamp=(1, 1))
    consumer = opened(click, ConsumerOptions(max_records=2_000_000))
    assert [each.value for each in consumer.poll(0)[AT]] == [b"click"]


def test_a_refusal_is_forgotten_while_a_broker_answers() -> None:
    """Also on a topic that is never idle; else it would be the reason of a later outage."""
    polled: Any = Polled(message(offset=5, value=b"click", timestamp=(1, 1)))
    heard = Errors()
    unused: Any = None
    heard(KafkaError(KafkaError._AUTHENTICATION, "wrong password"))
    assert heard.denied is not None
    options = ConsumerOptions()
    consumer = ConfluentConsumer(polled, unused, Brokers(), unused, options, heard)
    consumer.assign({AT: 5})
    assert consumer.poll(0)
    assert heard.denied is None


def test_a_closed_consumer_closes_its_admin_client() -> None:
    polled: Any = Polled(message(offset=5))
    admin: Any = Closable()
    unread: Any = Closable()
    consumer = ConfluentConsumer(polled, admin, Brokers(), unread, ConsumerOptions(), Errors())
    consumer.close()
    assert admin.closed
    assert not consumer.connected


def test_a_consumer_is_destroyed_and_librdkafka_does_not_close_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`close` would call the rebalance callback, which can wait permanently for the group."""
    closed: list[Polled] = []
    monkeypatch.setattr(Polled, "close", closed.append, raising=False)
    polled = Polled(message(offset=5))
    destroyed = weakref.ref(polled)
    closable: Any = Closable()
    member = Membership(
        instance="a", session_timeout_ms=6000, heartbeat_ms=2000, max_poll_interval_ms=6000
    )
    options = ConsumerOptions(membership=member)
    opened: Any = ConfluentConsumer(polled, closable, Brokers(), closable, options, Errors())  # type: ignore[arg-type]
    del polled
    opened.assign({AT: 5})
    opened.close()
    assert destroyed() is None
    assert not closed
    opened.close()


@pytest.mark.parametrize(
    ("client", "key"),
    [
        (Consumer, "session_timeout_ms"),
        (Consumer, "max_poll_interval_ms"),
        (Producer, "transaction_timeout_ms"),
    ],
)
def test_the_largest_values_are_those_of_librdkafka(client: Any, key: str) -> None:
    name, most = key.replace("_", "."), LIBRDKAFKA[key]
    others: dict[str, Any] = {"group.id": "g", "max.poll.interval.ms": 86_400_000}
    if client is Producer:
        others = {"transactional.id": "t", "socket.timeout.ms": SOCKET_MS}
    client({**others, name: most})
    with pytest.raises(KafkaException):
        client({**others, name: most + 1})


class Unended:
    """An offset with a text that does not end with a NUL."""

    offset, error = 5, None

    @property
    def metadata(self) -> str:
        return b"87\xf4U".decode()


class Stored(Polled):
    """A consumer whose group has committed such an offset."""

    def committed(self, _places: Any, _seconds: float) -> list[Any]:
        return [Unended()]


def test_a_text_behind_which_librdkafka_reads_is_left_out() -> None:
    stored: Any = Stored(message(offset=5))
    unused: Any = None
    consumer = ConfluentConsumer(stored, unused, Brokers(), unused, ConsumerOptions(), Errors())
    assert consumer.committed(AT, 1.0) == Committed(5, "")

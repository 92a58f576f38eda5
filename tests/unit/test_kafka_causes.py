"""Why a producer failed, and when one of confluent-kafka ends."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from kafka import TopicPartition, errors
from kafka.producer.producer_batch import ProducerBatch
from kafka.record.memory_records import MemoryRecordsBuilder

from streamduel_kafka.confluent.producer import ConfluentProducer
from streamduel_kafka.kafka_python.producer import PythonProducer


class Failing:
    """A producer that reports a failure of each record, in the wrong order."""

    def __init__(self) -> None:
        self._reports: list[Callable[[KafkaError, Any], None]] = []

    def produce(self, *_: Any, on_delivery: Callable[[KafkaError, Any], None]) -> None:
        self._reports.append(on_delivery)

    def poll(self, _seconds: float) -> int:
        if self._reports:
            refused, purged = self._reports
            self._reports = []
            purged(KafkaError(KafkaError._PURGE_QUEUE), None)
            refused(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), None)
        return 0

    flush = poll


def test_a_purged_record_is_not_the_cause() -> None:
    failing: Any = Failing()
    producer = ConfluentProducer(failing, block_seconds=1.0)
    refused = producer.send("topic", b"k", b"large")
    purged = producer.send("topic", b"k", b"small")
    assert isinstance(producer.cause(), errors.MessageSizeTooLargeError)
    assert refused.done
    assert purged.error is not None


def test_a_record_that_was_not_sent_is_not_too_large() -> None:
    """kafka-python gives it the error of the record that was."""
    error = errors.MessageSizeTooLargeError()
    batches: list[Any] = [
        ProducerBatch(TopicPartition("topic", number), MemoryRecordsBuilder(2, 0, 1000))
        for number in range(2)
    ]

    def append(*_: Any, partition: int, **_more: Any) -> Any:
        return batches[partition].try_append(0, b"k", b"v", [])

    producer = PythonProducer(SimpleNamespace(send=append))
    refused, unsent = (producer.send("topic", b"k", b"v", number) for number in range(2))
    batches[0].complete_exceptionally(error, lambda _: error)
    batches[1].abort(error)
    assert refused.error is error
    assert isinstance(unsent.error, errors.TransactionAbortedError)


class Fatal:
    """A producer that names its fatal error once, when it is polled."""

    def __init__(self) -> None:
        self._named = False
        self.failed = False

    def produce(self, *_: Any, **_more: Any) -> None:
        if self.failed:
            raise KafkaException(KafkaError(KafkaError._FATAL))

    def poll(self, _seconds: float) -> int:
        if self.failed and not self._named:
            self._named = True
            raise KafkaException(
                KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "the reason", fatal=True)
            )
        return 0

    flush = poll


def test_a_fatal_error_is_that_of_each_record() -> None:
    fatal: Any = Fatal()
    producer = ConfluentProducer(fatal, block_seconds=1.0)
    kept = [producer.send("topic", b"k", b"v") for _ in range(2)]
    fatal.failed = True
    for sent in kept:
        assert sent.done
        assert isinstance(sent.error, errors.OutOfOrderSequenceNumberError)
        with pytest.raises(errors.OutOfOrderSequenceNumberError, match="the reason"):
            producer.flush(1.0)
        with pytest.raises(errors.OutOfOrderSequenceNumberError, match="the reason"):
            producer.send("topic", b"k", b"v")
    assert isinstance(producer.cause(), errors.OutOfOrderSequenceNumberError)


class Aborting:
    """A producer whose transaction has failed, or not; its record was purged."""

    def __init__(self, code: int) -> None:
        self._code = code

    def flush(self, _seconds: float) -> int:
        return 0

    def begin_transaction(self) -> None:
        raise KafkaException(KafkaError(self._code, "the reason"))


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, errors.TopicAuthorizationFailedError),
        (KafkaError._STATE, type(None)),
        (KafkaError._NOT_CONFIGURED, type(None)),
    ],
)
def test_the_error_of_a_transaction_is_that_of_its_purged_records(code: int, cause: type) -> None:
    aborting: Any = Aborting(code)
    assert isinstance(ConfluentProducer(aborting, block_seconds=1.0).cause(), cause)


def test_a_fatal_error_that_no_record_has_met_is_named() -> None:
    fatal: Any = Fatal()
    fatal.failed = True
    producer = ConfluentProducer(fatal, block_seconds=1.0)
    with pytest.raises(errors.OutOfOrderSequenceNumberError, match="the reason"):
        producer.send("topic", b"k", b"v")


def test_the_report_of_a_record_lets_go_of_the_producer() -> None:
    failing: Any = Failing()
    producer = ConfluentProducer(failing, block_seconds=1.0)
    kept = [producer.send("topic", b"k", each) for each in (b"large", b"small")]
    producer.cause()
    left = weakref.ref(failing)
    del failing, producer
    assert left() is None
    assert all(each.done for each in kept)


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def producers() -> int:
    return sum(type(each) is Producer for each in gc.get_objects())  # isinstance follows proxies


@pytest.mark.usefixtures("uncollected")
def test_neither_errors_nor_records_keep_a_discarded_producer() -> None:
    before = producers()
    producer = ConfluentProducer(Producer({"transactional.id": "t"}), block_seconds=1.0)
    assert producers() == before + 1
    with pytest.raises(errors.KafkaError, match="not valid in state Init") as refused:
        producer.commit_transaction(1.0)
    producer.discard()
    assert producers() == before
    assert refused.value.__traceback__ is not None


def test_a_record_of_a_discarded_producer_is_done() -> None:
    silent: Any = SimpleNamespace(
        produce=lambda *_, **_more: None, purge=lambda: None, flush=lambda _seconds: 1
    )
    producer = ConfluentProducer(silent, block_seconds=1.0)
    sent = producer.send("topic", b"k", b"v")
    producer.discard()
    assert sent.done
    assert isinstance(sent.error, errors.KafkaConnectionError)

"""Why a transaction of confluent-kafka failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError
from kafka import errors

from streamduel_kafka.confluent.opening import Errors
from streamduel_kafka.confluent.producer import ConfluentProducer


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
    producer = ConfluentProducer(failing, Errors(), block_seconds=1.0)
    refused = producer.send("topic", b"k", b"large")
    purged = producer.send("topic", b"k", b"small")
    assert isinstance(producer.cause(), errors.MessageSizeTooLargeError)
    assert refused.done
    assert purged.error is not None

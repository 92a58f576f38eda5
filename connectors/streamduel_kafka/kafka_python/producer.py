"""Producers of kafka-python."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from kafka import KafkaProducer, OffsetAndMetadata, TopicPartition, errors

from streamduel.kafka_clients import TOO_LARGE, close_producer, producer_error
from streamduel_kafka.client import Committed, ProducerOptions
from streamduel_kafka.kafka_python import private
from streamduel_kafka.kafka_python.opening import opened

PRODUCER: Final[dict[str, Any]] = {
    "acks": "all",
    "enable_idempotence": True,
    "metrics_enabled": False,  # unused, and they cost time for each record
}

TRANSACTIONAL: Final[dict[str, Any]] = {
    # kafka-python sleeps this long while the markers of the former transaction are being written,
    # as is nearly always so when commits follow one another; the markers take some 10 ms.
    "retry_backoff_ms": 10,
}


class _Sent:
    """See `streamduel_kafka.client.Sent`."""

    __slots__ = ("_future",)

    def __init__(self, future: Any) -> None:
        self._future = future

    @property
    def done(self) -> bool:
        """See the protocol."""
        return bool(self._future.is_done)

    @property
    def error(self) -> Exception | None:
        """See the protocol."""
        error: Exception | None = self._future.exception
        if isinstance(error, TOO_LARGE) and private.unsent(self._future):
            error = errors.TransactionAbortedError()
        return error

    def wait(self, seconds: float) -> int:
        """See the protocol."""
        return int(self._future.get(timeout=max(0.0, seconds)).offset)


class PythonProducer:
    """See `streamduel_kafka.client.Producer`."""

    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def send(
        self, topic: str, key: bytes | None, value: bytes, partition: int | None = None
    ) -> _Sent:
        """See the protocol."""
        return _Sent(self._producer.send(topic, value=value, key=key, partition=partition))

    def flush(self, seconds: float) -> None:
        """See the protocol.

        Defect: while a batch that is too large is split, kafka-python raises UnknownError, which it
        raises here for nothing else; the records are then in smaller batches that it has still to
        send.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                self._producer.flush(timeout=max(0.0, deadline - time.monotonic()))
            except errors.UnknownError:
                if time.monotonic() > deadline:
                    raise
            else:
                return

    def init_transactions(self, seconds: float) -> None:  # noqa: ARG002 - `block_seconds`
        """See the protocol."""
        self._producer.init_transactions()

    def begin_transaction(self) -> None:
        """See the protocol."""
        self._producer.begin_transaction()

    def send_offsets(
        self, offsets: Mapping[TopicPartition, Committed], group: Any, seconds: float
    ) -> None:
        """See the protocol.

        The text ends with a NUL, as confluent-kafka writes it: without one, a process of the group
        with that client would read beyond its end.
        """
        stored = {
            at: OffsetAndMetadata(each.offset, f"{each.metadata}\0", -1)
            for at, each in offsets.items()
        }
        private.send_offsets(self._producer, stored, group, seconds)

    def commit_transaction(self, seconds: float) -> None:
        """See the protocol."""
        private.commit_transaction(self._producer, seconds)

    def abort_transaction(self, seconds: float) -> None:
        """See the protocol."""
        private.abort_transaction(self._producer, seconds)

    def cause(self) -> BaseException | None:
        """See the protocol."""
        return producer_error(self._producer)

    def discard(self) -> None:
        """See the protocol."""
        close_producer(self._producer)


def open_producer(
    settings: Mapping[str, Any], options: ProducerOptions, seconds: float
) -> PythonProducer:
    """Connect a producer, within this time."""
    delivery = int(1000 * options.seconds)
    request = min(
        int(1000 * options.request_seconds), max(delivery // 2, delivery - options.linger_ms - 1)
    )
    arguments: dict[str, Any] = {
        **PRODUCER,
        "client_id": options.client_id,
        "request_timeout_ms": request,
        # kafka-python demands more than the two together.
        "delivery_timeout_ms": max(delivery, options.linger_ms + request + 1),
        "max_block_ms": int(1000 * options.block_seconds),
        "max_request_size": options.max_record_bytes,
        "linger_ms": options.linger_ms,
    }
    if options.transactional_id is not None:
        arguments |= TRANSACTIONAL | {
            "transactional_id": options.transactional_id,
            "transaction_timeout_ms": options.transaction_timeout_ms,
            "batch_size": options.batch_bytes,
        }
    return PythonProducer(opened(KafkaProducer, settings, seconds, **arguments))

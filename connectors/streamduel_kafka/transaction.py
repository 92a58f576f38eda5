"""Kafka transactions, one after another."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from kafka import KafkaProducer, TopicPartition, errors

from streamduel.connector import Failpoint
from streamduel.errors import ConnectorError, Fenced
from streamduel_kafka import kafka_python
from streamduel_kafka.clients import connect, is_fatal, name_taken, reason
from streamduel_kafka.rights import Rights

# Longer than an election of a leader or the restart of a broker usually takes, and half of the
# 30 s that orchestrators give a process between SIGTERM and SIGKILL.
COMMIT_SECONDS = 15.0

# Aborting is one request; without an answer, the broker aborts after `transaction_timeout_ms`, or
# when the next producer with the same transactional id registers.
ABORT_SECONDS = 2.0

# A dead letter has at most 1 MB, the snapshot of an experiment with a thousand arms ten times that.
# What a topic accepts is its own setting, 1 MB unless it is raised.
MAX_REQUEST_BYTES = 16 * 1024 * 1024

PRODUCER: dict[str, Any] = {
    "max_request_size": MAX_REQUEST_BYTES,
    # A commit ends with an explicit flush. Until then collect records: fewer, larger requests.
    "linger_ms": 5,
    "batch_size": 512 * 1024,
    # kafka-python sleeps this long while the markers of the former transaction are being written,
    # as is nearly always so when commits follow one another; the markers take some 10 ms.
    "retry_backoff_ms": 10,
    # The controller declares a broker dead 9 s (`broker.session.timeout.ms`) after its last
    # heartbeat, one of which comes every 2 s. Until then the leaders of all partitions with a
    # replica there wait for it. Two seconds more, and a commit succeeds instead of being repeated;
    # not longer, because of a leader that hangs its successor is asked only after this time.
    "request_timeout_ms": 11_000,
    "delivery_timeout_ms": int(1000 * COMMIT_SECONDS),
    "max_block_ms": int(1000 * COMMIT_SECONDS),
    "metrics_enabled": False,  # unused, and they cost time for each record
}

# Another producer registered with this transactional id; the broker has aborted our transaction.
REPLACED = (errors.InvalidProducerEpochError, errors.ProducerFencedError)

TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)


class Transactions:
    """A transactional producer that is replaced after every error.

    Replaced, because kafka-python 3.0 cannot continue safely. It keeps the offsets of a refused
    transaction and would commit them with the next one; and after a failed batch it may renew its
    epoch, which aborts the transaction, and then report the commit as done. So a commit begins
    only when every record is known to be written, and a producer that had an error is never used
    again.

    The next producer registers with the same transactional id: the broker then completes whatever
    the former one left open, and refuses the former one from then on.

    Args:
        settings: the client's settings.
        transactional_id: the same after a restart, different in every process.
        timeout_ms: how long the broker keeps a transaction open.
    """

    def __init__(self, settings: Mapping[str, Any], transactional_id: str, timeout_ms: int) -> None:
        self._settings = dict(settings)
        self._id = transactional_id
        self._rights = Rights(settings, transactional_id=transactional_id)
        self.timeout_ms = timeout_ms
        self._producer: Any = None
        self._sent: list[tuple[Any, str, int]] = []  # futures, topics, and bytes
        # `settle` is called by the threads that load snapshots, too.
        self._lock = threading.Lock()

    def settle(self) -> None:
        """Register a producer if there is none, which ends the former one's transaction.

        Raises:
            KafkaError: the broker cannot be reached, or refuses it.
        """
        with self._lock:
            if self._producer is not None:
                return
            producer = connect(
                KafkaProducer,
                self._settings,
                COMMIT_SECONDS,
                transactional_id=self._id,
                transaction_timeout_ms=self.timeout_ms,
                **PRODUCER,
            )
            try:
                producer.init_transactions()
            except BaseException:
                kafka_python.discard(producer)
                raise
            self._producer = producer

    def refused(self, error: BaseException) -> ConnectorError | None:
        """The error for an answer of `settle` that refuses a right; None for any other."""
        return self._rights.refused(error, "Write")

    def begin(self) -> None:
        """Open a transaction.

        Raises:
            Fenced: it could not be opened.
            ConnectorError: it could not be opened, a permanent error.
        """
        self._sent.clear()
        try:
            self.settle()
            self._producer.begin_transaction()
        except (errors.KafkaError, OSError) as error:
            raise self._failed(error) from error

    def send(
        self, topic: str, key: bytes | None, value: bytes, partition: int | None = None
    ) -> None:
        """Add a record; without a partition, the key decides.

        Raises:
            Fenced: it could not be added; nothing of the transaction will be visible.
            ConnectorError: it could not be added, a permanent error.
        """
        try:
            future = self._producer.send(topic, value=value, key=key, partition=partition)
        except (errors.KafkaError, ValueError) as error:
            # ValueError: the topic, or that partition of it, has disappeared from the metadata.
            raise self._failed(error, _record(topic, len(value))) from error
        self._sent.append((future, topic, len(value)))

    def finish(
        self, offsets: Mapping[TopicPartition, Any], group: Any, failpoint: Failpoint,
        deadline: float,
    ) -> None:  # fmt: skip
        """Commit the records and, as this member of the group, the offsets.

        Until the deadline, by the monotonic clock.

        Raises:
            Fenced: nothing is visible, or that is unknown; the owner of the partitions finds the
                outcome in the snapshots.
            ConnectorError: nothing is visible, a permanent error.
        """
        if self._producer is None:
            raise Fenced("the transaction was aborted; nothing of it is visible")
        try:
            self._flush(deadline)
            failpoint("kafka: records written")
            if group is not None:
                rest = deadline - time.monotonic()
                kafka_python.send_offsets(self._producer, offsets, group, rest)
                failpoint("kafka: offsets written")
            kafka_python.commit_transaction(self._producer, deadline - time.monotonic())
        except errors.KafkaError as error:
            raise self._failed(error) from error
        failpoint("kafka: committed")

    def _flush(self, deadline: float) -> None:
        self._producer.flush(timeout=max(0.0, deadline - time.monotonic()))
        for future, _, _ in self._sent:
            # Done by now, unless the batch had to be split into smaller ones.
            future.get(timeout=max(0.0, deadline - time.monotonic()))

    def _failed(self, error: Exception, what: str = "a commit") -> Fenced | ConnectorError:
        with self._lock:
            producer, self._producer = self._producer, None
        cause: BaseException = error
        if producer is not None:
            cause = kafka_python.transaction_error(producer) or error
            if isinstance(cause, TOO_LARGE) and not isinstance(error, TOO_LARGE):
                what = self._too_large() or what
            if not isinstance(cause, (errors.KafkaTimeoutError, *REPLACED)):
                # An open transaction would delay the next owner of the partitions.
                kafka_python.abort_transaction(producer, ABORT_SECONDS)
            kafka_python.discard(producer)
        if isinstance(cause, TOO_LARGE):
            return ConnectorError(
                f"{what} is too large for Kafka ({reason(cause)}); raise max.message.bytes of the "
                f"topic (at most {MAX_REQUEST_BYTES}), or put less into one record."
            )
        if isinstance(cause, errors.FencedInstanceIdError):
            return name_taken()
        refused = self.refused(cause)
        if refused is not None:
            return refused
        if is_fatal(cause):
            return ConnectorError(f"Kafka does not take {what}: {reason(cause)}.")
        return Fenced(f"Kafka did not take {what}: {reason(cause)}")

    def _too_large(self) -> str | None:
        """The largest record that Kafka refused for its size; its error is reported by later calls.

        The records of one batch are refused together.
        """
        refused = [
            (size, topic) for future, topic, size in self._sent
            if isinstance(future.exception, TOO_LARGE)
        ]  # fmt: skip
        size, topic = max(refused, default=(0, ""))
        return _record(topic, size) if refused else None

    def close(self) -> None:
        """Abort an open transaction and close the producer."""
        with self._lock:
            producer, self._producer = self._producer, None
        if producer is not None:
            kafka_python.abort_transaction(producer, ABORT_SECONDS)
            kafka_python.discard(producer)


def _record(topic: str, size: int) -> str:
    return f"a record of {size} bytes for '{topic}'"

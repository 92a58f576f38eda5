"""One Kafka transaction after another: everything in one becomes visible together, or nothing."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping
from typing import Any

from kafka import KafkaProducer, TopicPartition, errors

from streamduel.connector import Failpoint
from streamduel.errors import ConnectorError, Fenced
from streamduel_kafka.clients import connect, is_fatal, reason, taken

# Longer than an election of a leader or the restart of a broker usually takes, and half of the
# 30 s that orchestrators give a process between SIGTERM and SIGKILL.
COMMIT_SECONDS = 15.0

# To undo is one request; if it is not answered soon, the broker undoes by itself after
# `transaction_timeout_ms`, or when the next producer of the same name registers.
ABORT_SECONDS = 2.0

# A producer with nothing left to send closes in milliseconds.
CLOSE_SECONDS = 1.0

# A dead letter has at most 1 MB, the snapshot of an experiment with a thousand arms ten times that.
# What a topic accepts is its own setting, 1 MB unless it is raised.
MAX_REQUEST_BYTES = 16 * 1024 * 1024

PRODUCER: dict[str, Any] = {
    "max_request_size": MAX_REQUEST_BYTES,
    # A commit ends with an explicit flush. Until then let records gather: fewer, larger requests.
    "linger_ms": 5,
    "batch_size": 512 * 1024,
    # kafka-python sleeps this long whenever the transaction before is still being marked complete,
    # which is nearly always so when commits follow one another; the marks take some 10 ms.
    "retry_backoff_ms": 10,
    "delivery_timeout_ms": int(1000 * COMMIT_SECONDS),
    "max_block_ms": int(1000 * COMMIT_SECONDS),
    "metrics_enabled": False,  # nobody reads them, and each record would pay for them
}

# Somebody else registered under our transactional id, and the broker has undone what we had open.
REPLACED = (errors.InvalidProducerEpochError, errors.ProducerFencedError)

TOO_LARGE = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)


class Transactions:
    """A transactional producer that is replaced after every error.

    Replaced, because kafka-python 3.0 cannot go on safely. The offsets of a transaction that was
    refused stay in `_pending_txn_offset_commits`, and would be committed with the next one; and
    after a failed batch it may renew its epoch, which undoes the transaction, and then report a
    commit as done. So a commit begins only when every record is known to be written, and a
    producer that has seen an error is never used again.

    The next producer registers under the same transactional id: by that the broker finishes
    whatever the one before left behind, and refuses it from then on.

    Args:
        settings: those of the client.
        transactional_id: the same after a restart, different in every process.
        timeout_ms: how long the broker leaves a transaction open.
    """

    def __init__(self, settings: Mapping[str, Any], transactional_id: str, timeout_ms: int) -> None:
        self._settings = dict(settings)
        self._id = transactional_id
        self.timeout_ms = timeout_ms
        self._producer: Any = None
        self._futures: list[Any] = []
        # `settle` is called by the threads that load snapshots.
        self._lock = threading.Lock()

    def settle(self) -> None:
        """Make sure that a producer is registered, and so that none before it has work open.

        Raises:
            KafkaError: the broker cannot be reached, or does not let us.
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
                discard(producer)
                raise
            self._producer = producer

    def begin(self) -> None:
        """Open a transaction.

        Raises:
            Fenced: it could not be opened.
            ConnectorError: and waiting will not mend it.
        """
        self._futures.clear()
        try:
            self.settle()
            self._producer.begin_transaction()
        except (errors.KafkaError, OSError) as error:
            raise self._failed(error) from error

    def send(
        self, topic: str, key: bytes | None, value: bytes, partition: int | None = None
    ) -> None:
        """Add a record; `None` for the partition leaves the choice to the key.

        Raises:
            Fenced: it could not be added; nothing of the transaction will be visible.
            ConnectorError: and waiting will not mend it.
        """
        if self._producer is None:
            raise Fenced("the transaction is gone; nothing of it is visible")
        try:
            future = self._producer.send(topic, value=value, key=key, partition=partition)
        except (errors.KafkaError, ValueError) as error:
            # ValueError: the topic, or that partition of it, has vanished from the metadata.
            raise self._failed(error, f"a record of {len(value)} bytes for '{topic}'") from error
        self._futures.append(future)

    def finish(
        self, offsets: Mapping[TopicPartition, Any], group: Any, failpoint: Failpoint
    ) -> None:
        """Commit the records and, on behalf of this member of the group, the offsets.

        Raises:
            Fenced: nothing is visible, or it is not known; whoever owns the partitions reads the
                outcome from the snapshots.
            ConnectorError: and waiting will not mend it.
        """
        if self._producer is None:
            raise Fenced("the transaction is gone; nothing of it is visible")
        deadline = time.monotonic() + COMMIT_SECONDS
        manager = self._producer._transaction_manager
        try:
            self._flush(deadline)
            failpoint("kafka: records written")
            if group is not None:
                self._await(manager.send_offsets_to_transaction(dict(offsets), group), deadline)
                failpoint("kafka: offsets written")
            self._await(manager.begin_commit(), deadline)
        except errors.KafkaError as error:
            raise self._failed(error) from error
        failpoint("kafka: committed")

    def _flush(self, deadline: float) -> None:
        self._producer.flush(timeout=max(0.0, deadline - time.monotonic()))
        for future in self._futures:
            # Done by now, unless the broker had the batch split into smaller ones.
            future.get(timeout=max(0.0, deadline - time.monotonic()))

    def _await(self, result: Any, deadline: float) -> None:
        # As KafkaProducer's own methods do it, but they wait without end: while the broker is away
        # not even SIGTERM would be heard.
        self._producer._sender.wakeup()
        if not result.wait(timeout_ms=1000 * max(0.0, deadline - time.monotonic())):
            raise errors.KafkaTimeoutError(f"no answer within {COMMIT_SECONDS:.0f} s")

    def _failed(self, error: Exception, what: str = "a commit") -> Fenced | ConnectorError:
        with self._lock:
            producer, self._producer = self._producer, None
        cause: BaseException = error
        if producer is not None:
            cause = producer._transaction_manager.last_error or error
            if not isinstance(cause, (errors.KafkaTimeoutError, *REPLACED)):
                # Else what we left open would delay the next owner of the partitions.
                _abort(producer)
            discard(producer)
        if isinstance(cause, TOO_LARGE):
            return ConnectorError(
                f"{what} is too large for Kafka ({reason(cause)}); raise max.message.bytes of the "
                f"topic (at most {MAX_REQUEST_BYTES}), or have less in one record."
            )
        if isinstance(cause, errors.FencedInstanceIdError):
            return taken()
        if is_fatal(cause):
            return ConnectorError(f"Kafka does not take {what}: {reason(cause)}.")
        return Fenced(f"Kafka did not take {what}: {reason(cause)}")

    def close(self) -> None:
        """Undo what is open and close the producer."""
        with self._lock:
            producer, self._producer = self._producer, None
        if producer is not None:
            _abort(producer)
            discard(producer)


def _abort(producer: Any) -> None:
    # Refused with a KafkaError where there is nothing to undo.
    with contextlib.suppress(errors.KafkaError):
        result = producer._transaction_manager.begin_abort()
        producer._sender.wakeup()
        result.wait(timeout_ms=1000 * ABORT_SECONDS)


def discard(producer: Any) -> None:
    """Close a producer whatever its state; `KafkaProducer.close` gives up if it cannot flush."""
    with contextlib.suppress(errors.KafkaError):
        producer.close(timeout=CLOSE_SECONDS)
    if not producer._closed:
        producer._sender.force_close()
        producer._sender.join(CLOSE_SECONDS)
        with contextlib.suppress(errors.KafkaError):
            producer.close(timeout=0)

"""Kafka transactions, one after another."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import TopicPartition, errors

from streamduel.connector import Failpoint
from streamduel.errors import ConnectorError, Fenced
from streamduel.kafka_clients import TOO_LARGE
from streamduel.kafka_rights import Rights, missing
from streamduel_kafka.client import (
    BATCH_BYTES,
    AdminOptions,
    Committed,
    Producer,
    ProducerOptions,
    Sent,
)
from streamduel_kafka.connecting import connect, is_fatal, name_taken, reason
from streamduel_kafka.obstacle import OFFSETS, obstacle

COMMIT_SECONDS = 15.0
"""Longer than an election of a leader or the restart of a broker usually takes, and half of the 30
s that orchestrators give a process between SIGTERM and SIGKILL."""

ABORT_SECONDS = 2.0
"""Aborting is one request; without an answer, the broker aborts after `transaction_timeout_ms`, or
when the next producer with the same transactional id registers."""

MAX_REQUEST_BYTES = 16 * 1024 * 1024
"""A dead letter has at most 1 MB, the snapshot of an experiment with a thousand arms ten times
that. What a topic accepts is its own setting, 1 MB unless it is raised."""

REQUEST_SECONDS = 11.0
"""The controller declares a broker dead 9 s (`broker.session.timeout.ms`) after its last heartbeat,
one of which comes every 2 s. Until then the leaders of all partitions with a replica there wait for
it. Two seconds more, and a commit succeeds instead of being repeated; not longer, because of a
leader that hangs its successor is asked only after this time."""

LINGER_MS = 5
"""A commit ends with an explicit flush. Until then collect records: fewer, larger requests."""

UNSETTLED = (
    errors.ConcurrentTransactionsError,
    errors.CoordinatorNotAvailableError,
    errors.KafkaTimeoutError,
)
"""Errors of `init_transactions` while a former transaction cannot end, or no broker coordinates it;
the two clients raise different ones."""

REPLACED = (errors.InvalidProducerEpochError, errors.ProducerFencedError)
"""Another producer registered with this transactional id; the broker has aborted our
transaction."""


class Transactions:
    """A transactional producer that is replaced after every error.

    It is replaced because no client documents after which errors it can continue safely, and
    kafka-python 3.0 cannot. kafka-python keeps the offsets of a refused transaction and would
    commit them with the next one; and after a failed batch it may renew its epoch, which aborts the
    transaction, and then report the commit as done. So a commit begins only when every record is
    known to be written, and a producer that had an error is never used again.

    The next producer registers with the same transactional id: the broker then completes whatever
    the former one left open, and refuses the former one from then on.

    Args:
        settings: the client's settings.
        transactional_id: the same after a restart, different in every process.
        timeout_ms: how long the broker keeps a transaction open.
        group: the consumer group whose offsets are committed.
        batch_bytes: see `ProducerOptions`.
        topics: those that are written to.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        transactional_id: str,
        timeout_ms: int,
        group: str | None = None,
        batch_bytes: int = BATCH_BYTES,
        topics: Sequence[str] = (),
    ) -> None:
        self._settings = dict(settings)
        self._id = transactional_id
        self._rights = Rights(settings, group, transactional_id)
        self.timeout_ms = timeout_ms
        self._batch_bytes = batch_bytes
        self._topics = topics if group is None else (*topics, OFFSETS)
        self._producer: Producer | None = None
        self._sent: list[tuple[Sent, str, int]] = []  # with topics and bytes
        # `settle` is called by the threads that load snapshots, too.
        self._lock = threading.Lock()

    def settle(self) -> Producer:
        """Register a producer if there is none, which ends the former one's transaction.

        Raises:
            KafkaError: the broker cannot be reached, or refuses it; or the brokers answer, but do
                not end the former transaction: then the error says why, as far as they tell.
        """
        with self._lock:
            if self._producer is not None:
                return self._producer
            producer = connect(self._options(), self._settings, COMMIT_SECONDS)
            try:
                producer.init_transactions(COMMIT_SECONDS)
            except UNSETTLED as error:
                producer.discard()
                unsettled = error
            except BaseException:
                producer.discard()
                raise
            else:
                self._producer = producer
                return producer
        explained = self._explained(unsettled)
        raise explained from (None if explained is unsettled else unsettled)

    def _options(self) -> ProducerOptions:
        return ProducerOptions(
            client_id=f"streamduel-producer-{self._id}",
            seconds=COMMIT_SECONDS,
            block_seconds=COMMIT_SECONDS,
            request_seconds=REQUEST_SECONDS,
            transactional_id=self._id,
            transaction_timeout_ms=self.timeout_ms,
            max_record_bytes=MAX_REQUEST_BYTES,
            batch_bytes=self._batch_bytes,
            linger_ms=LINGER_MS,
        )

    def _explained(self, error: errors.KafkaError) -> errors.KafkaError:
        """Why a producer was not registered, as far as the brokers tell."""
        try:
            found = obstacle(self._settings, self._topics)
        except (errors.KafkaError, OSError):
            return error  # no broker answers
        return found or errors.ConcurrentTransactionsError(
            f"brokers answer, but '{self._id}' cannot be registered ({reason(error)}): its "
            "coordinator cannot be reached from here (check the brokers' advertised.listeners), or "
            "does not end its former transaction"
        )

    def refused(self, error: BaseException) -> ConnectorError | None:
        """The error if an answer to `settle` refuses a right; None for any other answer."""
        return self._rights.refused(error, "Write")

    def begin(self) -> None:
        """Open a transaction.

        Raises:
            Fenced: it could not be opened.
            ConnectorError: it could not be opened, a permanent error.
        """
        self._sent.clear()
        try:
            self.settle().begin_transaction()
        except (errors.KafkaError, OSError) as error:
            raise self._failed(error) from error

    def send(
        self, topic: str, key: bytes | None, value: bytes, partition: int | None = None
    ) -> Sent:
        """Add a record; without a partition, the key decides.

        Raises:
            Fenced: it could not be added; nothing of the transaction will be visible.
            ConnectorError: it could not be added, a permanent error.
        """
        producer = self._current()
        try:
            sent = producer.send(topic, key, value, partition)
        except (errors.KafkaError, ValueError) as error:
            # ValueError: the topic, or that partition of it, has disappeared from the metadata.
            raise self._failed(error, _record(topic, len(value))) from error
        self._sent.append((sent, topic, len(value)))
        return sent

    def finish(
        self, offsets: Mapping[TopicPartition, tuple[int, Sent]], group: Any,
        failpoint: Failpoint, deadline: float,
    ) -> None:  # fmt: skip
        """Commit the records and, as this member of the group, the offsets.

        With each offset, that of a record of the transaction is stored as metadata. Until the
        deadline, by the monotonic clock.

        Raises:
            Fenced: nothing is visible, or that is unknown; the owner of the partitions finds the
                outcome in the snapshots.
            ConnectorError: nothing is visible, a permanent error.
        """
        producer = self._current()
        try:
            self._flush(producer, deadline)
            failpoint("kafka: records written")
            if group is not None:
                rest = deadline - time.monotonic()
                stored = {
                    at: Committed(offset, str(sent.wait(0)))
                    for at, (offset, sent) in offsets.items()
                }
                producer.send_offsets(stored, group, rest)
                failpoint("kafka: offsets written")
            producer.commit_transaction(deadline - time.monotonic())
        except errors.KafkaError as error:
            raise self._failed(error) from error
        failpoint("kafka: committed")

    def _current(self) -> Producer:
        """The producer of the open transaction.

        Raises:
            Fenced: the transaction was aborted.
        """
        if self._producer is None:
            raise Fenced("the transaction was aborted; nothing of it is visible")
        return self._producer

    def _flush(self, producer: Producer, deadline: float) -> None:
        producer.flush(deadline - time.monotonic())
        for sent, _, _ in self._sent:
            # It is written or refused by now; `flush` does not say which.
            sent.wait(deadline - time.monotonic())

    def _failed(self, error: Exception, what: str = "a commit") -> Fenced | ConnectorError:
        unwritten = self._unwritten()
        with self._lock:
            producer, self._producer = self._producer, None
        cause: BaseException = error
        if producer is not None:
            cause = producer.cause() or error
            if isinstance(cause, TOO_LARGE):
                what = self._too_large() or what
            if not isinstance(cause, (errors.KafkaTimeoutError, *REPLACED)):
                # An open transaction would delay the next owner of the partitions.
                producer.abort_transaction(ABORT_SECONDS)
            producer.discard()
        if isinstance(cause, TOO_LARGE):
            return ConnectorError(
                f"{what} is too large for Kafka ({reason(cause)}); raise max.message.bytes of the "
                f"topic (at most {MAX_REQUEST_BYTES}), or put less into one record."
            )
        if isinstance(cause, errors.FencedInstanceIdError):
            return name_taken()
        forbidden = isinstance(cause, errors.TopicAuthorizationFailedError)
        refused = self._rights.refused(cause, "Write", self._forbidden() if forbidden else "")
        if refused is not None:
            return refused
        if is_fatal(cause):
            return ConnectorError(f"Kafka does not take {what}: {reason(cause)}.")
        if isinstance(cause, (errors.KafkaTimeoutError, errors.UnknownTopicOrPartitionError)):
            unwritten = self._obstacle() or unwritten
        return Fenced(f"Kafka did not take {what}: {reason(cause)}{unwritten}")

    def _obstacle(self) -> str:
        """What keeps a commit from being written, in parentheses."""
        if gone := absent(self._settings, sorted({topic for _, topic, _ in self._sent})):
            return f" (topic '{gone}' does not exist)"
        with contextlib.suppress(errors.KafkaError, OSError):
            if found := obstacle(self._settings, self._topics, registered=True):
                return f" ({found.args[0]})"
        return ""

    def _forbidden(self) -> str:
        """The first topic of the transaction that this client may not write to.

        librdkafka does not name it.
        """
        topics = sorted({topic for _, topic, _ in self._sent})
        with contextlib.suppress(errors.KafkaError, OSError):
            admin = connect(AdminOptions(), self._settings, ABORT_SECONDS)
            try:
                for topic in topics:
                    try:
                        found = admin.find(topic)
                    except errors.TopicAuthorizationFailedError:
                        return topic
                    if found is not None and missing(["Write"], found.rights):
                        return topic
            finally:
                admin.close()
        return " or ".join(topics)

    def _unwritten(self) -> str:
        """The topics whose records are not written, if others are: they may have been deleted."""
        topics = {topic for _, topic, _ in self._sent}
        left = {it for sent, it, _ in self._sent if sent.error is not None or not sent.done}
        return f" (not written: {', '.join(sorted(left))})" if left and left < topics else ""

    def _too_large(self) -> str | None:
        """The largest record that Kafka refused for its size.

        The records of one batch are refused together.
        """
        refused = [
            (size, topic) for sent, topic, size in self._sent
            if isinstance(sent.error, TOO_LARGE)
        ]  # fmt: skip
        size, topic = max(refused, default=(0, ""))
        return _record(topic, size) if refused else None

    def close(self) -> None:
        """Abort an open transaction and close the producer."""
        with self._lock:
            producer, self._producer = self._producer, None
        if producer is not None:
            producer.abort_transaction(ABORT_SECONDS)
            producer.discard()


def _record(topic: str, size: int) -> str:
    return f"a record of {size} bytes for '{topic}'"


def absent(settings: Mapping[str, Any], topics: Sequence[str]) -> str | None:
    """The first of some topics that does not exist; None if all do, or if no broker answers.

    Clients wait for the leader of a topic that was deleted as for one that is being elected.
    """
    with contextlib.suppress(errors.KafkaError, OSError):
        admin = connect(AdminOptions(), settings, ABORT_SECONDS)
        try:
            return next((topic for topic in topics if admin.find(topic) is None), None)
        finally:
            admin.close()
    return None

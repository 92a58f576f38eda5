"""Writing the click log to its Kafka topic."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka import KafkaProducer, errors

from streamduel.client.follower import reason
from streamduel.client.kafka_clients import client_settings, connect
from streamduel.client.outbox import Message, Written

log = logging.getLogger(__name__)

DELIVERY_SECONDS: Final = 30.0
"""kafka-python itself sends again for so long, without a duplicate: longer than an election of a
leader or the restart of a broker usually takes."""

METADATA_SECONDS: Final = 5.0
"""For the topic's partitions to be known; an answer takes milliseconds."""

GRACE_SECONDS: Final = 5.0
"""The producer gives up by itself at the time above; this only bounds its mistakes."""

CLOSE_SECONDS: Final = 1.0
"""A producer with nothing left to send closes in milliseconds."""

PRODUCER: Final[Mapping[str, Any]] = {
    # On every replica in sync, and once even if the producer has to send it again.
    "acks": "all",
    "enable_idempotence": True,
    "transactional_id": None,
    "delivery_timeout_ms": int(1000 * DELIVERY_SECONDS),
    "max_block_ms": int(1000 * METADATA_SECONDS),
    # All records of an experiment must be in one partition: the one where every Kafka client's
    # default puts its name, murmur2.
    "partitioner": KafkaProducer.DEFAULT_CONFIG["partitioner"],
    "key_serializer": None,
    "value_serializer": None,
}

TOO_LARGE: Final = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)


class KafkaWriter:
    """Writes records with an idempotent producer, and waits until all replicas in sync have them.

    A producer that has seen an error is replaced, and what it did not confirm is written again
    under the same id: streamduel counts it once.

    Args:
        servers: `host:port` of one or more brokers, as a list or with commas between.
        topic: the click log.
        chosen: further settings of kafka-python's `KafkaProducer`, such as `security_protocol`.

    Raises:
        ClientError: a setting cannot be used.
    """

    def __init__(
        self, servers: str | Sequence[str], topic: str, chosen: Mapping[str, Any] | None = None
    ) -> None:
        known = KafkaProducer.DEFAULT_CONFIG
        self._settings = client_settings(servers, topic, known, PRODUCER, chosen)
        self._topic = topic
        self._producer: Any = None

    def write(self, messages: Sequence[Message]) -> Written:
        """Write these, and say which of them are not known to be written.

        Raises:
            KafkaError: none of them is.
        """
        try:
            failures = self._attempt(messages)
        except BaseException:
            self.close()
            raise
        if not failures:
            return Written()
        problem = self._cause(failures)
        self.close()
        left = [message for message, _ in failures]
        if isinstance(problem, TOO_LARGE):
            return self._isolate(left, problem)
        log.warning("topic '%s' cannot be written to: %s", self._topic, reason(problem))
        return Written(left)

    def _attempt(self, messages: Sequence[Message]) -> list[tuple[Message, errors.KafkaError]]:
        """Send these together; those that are not confirmed, with the reason."""
        if self._producer is None:
            self._producer = connect(KafkaProducer, **self._settings)
        failures: list[tuple[Message, errors.KafkaError]] = []
        sent = []
        for message in messages:
            try:
                future = self._producer.send(self._topic, value=message.value, key=message.key)
                sent.append((message, future))
            except TOO_LARGE as error:  # for the producer's own limit
                failures.append((message, error))
        deadline = time.monotonic() + DELIVERY_SECONDS + GRACE_SECONDS
        with contextlib.suppress(errors.KafkaError):  # raised for a batch that was split, too
            self._producer.flush(DELIVERY_SECONDS + GRACE_SECONDS)
        for message, future in sent:
            try:
                future.get(timeout=max(0.0, deadline - time.monotonic()))
            except errors.KafkaError as error:
                failures.append((message, error))
        return failures

    def _cause(self, failures: Sequence[tuple[Message, errors.KafkaError]]) -> Exception:
        """What lies behind the failures: one record that is too large ends the whole producer."""
        causes: list[Exception] = [error for _, error in failures]
        if last := self._producer._transaction_manager.last_error:
            causes.append(last)
        causes.sort(key=lambda error: not isinstance(error, TOO_LARGE))
        return causes[0]

    def _isolate(self, messages: Sequence[Message], problem: Exception) -> Written:
        """Find out which of them the topic does not take, by halves: the others must not wait."""
        if len(messages) == 1:
            log.error("topic '%s' does not take a record: %s", self._topic, reason(problem))
            return Written(refused=1)
        middle = len(messages) // 2
        first, second = self.write(messages[:middle]), self.write(messages[middle:])
        return Written([*first.again, *second.again], first.refused + second.refused)

    def close(self) -> None:
        """Close the producer, whatever its state; `KafkaProducer.close` may give up in between."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        with contextlib.suppress(errors.KafkaError):
            producer.close(timeout=CLOSE_SECONDS)
        if not producer._closed:
            producer._sender.force_close()
            producer._sender.join(CLOSE_SECONDS)
            with contextlib.suppress(errors.KafkaError):
                producer.close(timeout=0)

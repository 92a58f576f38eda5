"""Assignments from their Kafka topic, and the click log on Kafka, with kafka-python."""

from __future__ import annotations

import contextlib
import itertools
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer, errors
from kafka.cluster import get_ip_port_afi
from kafka.net.sasl import SASL_MECHANISMS
from kafka.util import ensure_valid_topic_name

from streamduel.client.feeds import FeedRecord, reason
from streamduel.client.kafka_arguments import brokers_in, invalid_brokers, settings_in
from streamduel.client.writers import Message, Written
from streamduel.errors import ClientError, nearest, shown
from streamduel.kafka_batches import bound_reads
from streamduel.kafka_clients import (
    TOO_LARGE,
    Secret,
    close_producer,
    keep_open,
    open_client,
    producer_error,
)
from streamduel.records import Rejected

log = logging.getLogger(__name__)

POLL_MS: Final = 500
"""A poll without records returns after this long; `close` waits for it."""

DELIVERY_SECONDS: Final = 30.0
"""kafka-python retries for this long without duplicates: longer than the election of a leader or
the restart of a broker usually takes."""

METADATA_SECONDS: Final = 5.0
"""Timeout of the topic's metadata; an answer takes milliseconds."""

GRACE_SECONDS: Final = 5.0
"""After `DELIVERY_SECONDS` the producer gives up; this bounds its delay."""

COMMON: Final[Mapping[str, Any]] = {
    # kafka-python's default waits up to 30 s between two attempts to reconnect, too long after the
    # restart of a broker.
    "reconnect_backoff_max_ms": 2000,
    # An unresponsive broker is noticed after this long: well above the slowest regular answer,
    # a fetch that waits half a second for records.
    "request_timeout_ms": 10_000,
    # A running cluster answers within a second, and opening is retried.
    "bootstrap_timeout_ms": 5000,
    "metrics_enabled": False,  # unused, and they cost time for each record
}

MAX_BATCH_BYTES: Final = 32 * 2**20
"""Decompressed bytes of a batch of assignments, which have some kB each."""

RESERVED: Final = frozenset({"bootstrap_servers", "kafka_client", "metrics_enabled"})
"""Settings that a service cannot choose."""

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
CODECS: Final = ("gzip", "snappy", "lz4", "zstd")

ORDERED: Final = ("fetch_max_wait_ms", "request_timeout_ms", "connections_max_idle_ms")
"""Times of a consumer: each must be less than the next."""

MAX_IN_FLIGHT: Final = 5
"""Brokers keep the order of so many requests of an idempotent producer."""

CONSUMER: Final[Mapping[str, Any]] = {
    # Uncommitted assignments are not published yet, and may never be.
    "isolation_level": "read_committed",
    # The topic is compacted: it has little more than the newest assignment of each experiment.
    # Every instance of a service reads all of it, without a group and without offsets.
    "auto_offset_reset": "earliest",
    "group_id": None,
    "group_instance_id": None,
    "enable_auto_commit": False,
    "key_deserializer": None,
    "value_deserializer": None,
}

PRODUCER: Final[Mapping[str, Any]] = {
    # On every replica in sync, without duplicates from retries of the producer.
    "acks": "all",
    "enable_idempotence": True,
    "transactional_id": None,
    "delivery_timeout_ms": int(1000 * DELIVERY_SECONDS),
    "max_block_ms": int(1000 * METADATA_SECONDS),
    # All records of an experiment must be in one partition: the one that every Kafka client chooses
    # for its name by default, with murmur2.
    "partitioner": KafkaProducer.DEFAULT_CONFIG["partitioner"],
    "key_serializer": None,
    "value_serializer": None,
}


class KafkaFeed:
    """Reads a topic of assignments from its beginning, and follows it.

    kafka-python reconnects to brokers. After an error that it raises, the consumer is replaced, and
    the topic is read from its beginning.
    """

    every = 0.0  # `poll` waits

    def __init__(
        self, servers: str | Sequence[str], topic: str, chosen: Mapping[str, Any] | None = None
    ) -> None:
        known = KafkaConsumer.DEFAULT_CONFIG
        self._settings = client_settings(servers, topic, known, CONSUMER, chosen)
        _check_consumer({**known, **self._settings})
        self._topic = topic
        self._consumer: Any = None

    def poll(self) -> list[FeedRecord]:
        """The new records."""
        try:
            if self._consumer is None:
                self._consumer = open_client(KafkaConsumer, self._settings, self._topic)
                bound_reads(self._consumer, MAX_BATCH_BYTES)
                if not self._consumer.partitions_for_topic(self._topic):
                    raise ClientError(f"there is no topic '{self._topic}'.")
            batches = self._consumer.poll(timeout_ms=POLL_MS)
        except BaseException:
            self.close()
            raise
        found = [record for records in batches.values() for record in records]
        for record in found:
            if isinstance(record.value, Rejected):
                log.warning("topic '%s': %s", self._topic, record.value.sentence)
        return [
            FeedRecord(record.value, record.timestamp / 1000)
            for record in found
            if isinstance(record.value, bytes)  # no tombstone
        ]

    def close(self) -> None:
        """Close the consumer."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close(autocommit=False)

    def __str__(self) -> str:
        return f"topic '{self._topic}'"


class KafkaWriter:
    """Writes records with an idempotent producer, and waits until all replicas in sync have them.

    After an error the producer is replaced, and unconfirmed records are written again under the
    same id: streamduel counts them once.
    """

    def __init__(
        self, servers: str | Sequence[str], topic: str, chosen: Mapping[str, Any] | None = None
    ) -> None:
        known = KafkaProducer.DEFAULT_CONFIG
        self._settings = client_settings(servers, topic, known, PRODUCER, chosen)
        _check_producer({**known, **self._settings})
        self._topic = topic
        self._producer: Any = None

    def write(self, messages: Sequence[Message]) -> Written:
        """Write messages and wait for their confirmation."""
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
        """Send messages together; the unconfirmed ones with their errors."""
        if self._producer is None:
            self._producer = open_client(KafkaProducer, self._settings)
            keep_open(self._producer)
        failures: list[tuple[Message, errors.KafkaError]] = []
        sent = []
        for message in messages:
            try:
                future = self._producer.send(self._topic, value=message.value, key=message.key)
                sent.append((message, future))
            except TOO_LARGE as error:  # the producer's own limit
                failures.append((message, error))
            except errors.KafkaTimeoutError:  # of the topic's metadata
                raise ClientError(
                    f"there is no topic '{self._topic}', or no broker answers."
                ) from None
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
        """The cause of the failures: a record that is too large comes first."""
        causes: list[Exception | None] = [error for _, error in failures]
        causes.append(producer_error(self._producer))
        return min(filter(None, causes), key=lambda error: not isinstance(error, TOO_LARGE))

    def _isolate(self, messages: Sequence[Message], problem: Exception) -> Written:
        """Find the messages that the topic refuses by bisection, so that the others are written."""
        if len(messages) == 1:
            value = messages[0].value
            log.error(
                "topic '%s' refuses a record of %d bytes, beginning with %s: %s",
                self._topic, len(value), shown(value.decode(errors="replace")), reason(problem),
            )  # fmt: skip
            return Written(refused=1)
        middle = len(messages) // 2
        first, second = self.write(messages[:middle]), self.write(messages[middle:])
        return Written([*first.again, *second.again], first.refused + second.refused)

    def close(self) -> None:
        """Close the producer, whatever its state."""
        producer, self._producer = self._producer, None
        if producer is not None:
            close_producer(producer)


def client_settings(
    servers: str | Sequence[str],
    topic: str,
    known: Mapping[str, Any],
    fixed: Mapping[str, Any],
    chosen: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The settings of a client of a topic, checked before anything is opened.

    Of the settings `known` by this kind of client, those that streamduel's guarantees need are
    `fixed`, and others are `chosen` by the service. ClientError: a chosen one is unknown or fixed,
    or the topic's name is invalid.
    """
    try:
        ensure_valid_topic_name(topic)
    except (TypeError, ValueError) as error:
        raise ClientError(f"topic {topic!r} cannot be used: {error}.") from None
    chosen = settings_in(chosen)
    for name in chosen:  # without its value, which may be a password
        if name not in known:
            raise ClientError(f"kafka-python has no setting '{name}'{nearest(name, known) or '.'}")
        if name in fixed or name in RESERVED:
            raise ClientError(f"the setting '{name}' of kafka-python cannot be changed here.")
    _check_types(chosen, known)
    _check_protocol(chosen)
    for name, value in chosen.items():
        if "password" in name and isinstance(value, str):
            chosen[name] = Secret(value)
    brokers = _brokers(servers)
    return {**COMMON, **chosen, **fixed, "bootstrap_servers": brokers}


def _brokers(servers: str | Sequence[str]) -> list[str]:
    """The addresses; those are refused to which kafka-python could only fail to connect."""
    brokers = brokers_in(servers)
    for broker in brokers:
        try:
            get_ip_port_afi(broker)
        except ValueError:  # the port is no number
            raise invalid_brokers(repr(broker)) from None
    return brokers


def _check_types(chosen: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Refuse values of another type than the default has; kafka-python would fail on their use."""
    for name, value in chosen.items():
        for kind, title in ((bool, "true or false"), (int | float, "a number"), (str, "a text")):
            if isinstance(known[name], kind):
                if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
                    raise ClientError(f"{name} must be {title} (found {value!r}).")
                break


def _check_protocol(chosen: Mapping[str, Any]) -> None:
    """Refuse a protocol that kafka-python would take for another one.

    It takes any that it does not know, such as `sasl_ssl`, for PLAINTEXT.
    """
    protocol, mechanism = chosen.get("security_protocol", "PLAINTEXT"), chosen.get("sasl_mechanism")
    _check_choice("security_protocol", protocol, PROTOCOLS)
    if protocol.startswith("SASL_"):
        if not mechanism:
            raise ClientError(f"security_protocol {protocol} needs sasl_mechanism.")
        _check_choice("sasl_mechanism", mechanism, sorted(SASL_MECHANISMS))
        if mechanism == "PLAIN" or mechanism.startswith("SCRAM-"):
            for name in ("sasl_plain_username", "sasl_plain_password"):
                if not isinstance(chosen.get(name), str):  # the value may be a password
                    raise ClientError(f"sasl_mechanism {mechanism} needs {name}, a text.")


def _check_choice(name: str, found: object, allowed: Sequence[str]) -> None:
    if found not in allowed:
        raise ClientError(
            f"{name} must be {', '.join(allowed[:-1])} or {allowed[-1]} (found {found!r})."
        )


def _check_consumer(settings: Mapping[str, Any]) -> None:
    """Refuse what `KafkaConsumer` would refuse at each attempt to open it, or at each poll."""
    for name, longer in itertools.pairwise(ORDERED):
        if settings[name] >= settings[longer]:
            raise ClientError(
                f"{name} must be less than {longer}, {settings[longer]} (found {settings[name]})."
            )
    most = settings["max_poll_records"]
    if not isinstance(most, int) or most < 1:
        raise ClientError(f"max_poll_records must be an integer of at least 1 (found {most!r}).")


def _check_producer(settings: Mapping[str, Any]) -> None:
    """Refuse what `KafkaProducer` would refuse at each attempt to open it, when connected."""
    name, codec = settings["client_id"], settings["compression_type"]
    if name is not None and not isinstance(name, str):
        raise ClientError(f"client_id must be a text (found {name!r}).")
    if codec is not None:
        _check_choice("compression_type", codec, CODECS)
    if settings["retries"] < 1:
        raise ClientError(f"retries must be at least 1 (found {settings['retries']}).")
    requests = settings["max_in_flight_requests_per_connection"]
    if not 1 <= requests <= MAX_IN_FLIGHT:
        raise ClientError(
            "max_in_flight_requests_per_connection must be between 1 and "
            f"{MAX_IN_FLIGHT} (found {requests})."
        )
    linger, request = settings["linger_ms"], settings["request_timeout_ms"]
    if linger + request > settings["delivery_timeout_ms"]:
        raise ClientError(
            "linger_ms and request_timeout_ms together must be at most "
            f"{settings['delivery_timeout_ms']} (found {linger} and {request})."
        )

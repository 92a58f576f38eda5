"""Assignments from their Kafka topic, read with confluent-kafka."""

from __future__ import annotations

import contextlib
import logging
import re
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from streamduel.client.feeds import FeedRecord
from streamduel.client.kafka_arguments import brokers_in, settings_in
from streamduel.errors import ClientError

log = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.5
"""A poll without records returns after this long; `close` waits for it."""

MOST_RECORDS: Final = 1000
"""The most messages of one poll."""

METADATA_SECONDS: Final = 5.0
"""Timeout of the topic's metadata; an answer takes milliseconds."""

LOOK_SECONDS: Final = 60.0
"""The time between two looks for new partitions, which librdkafka does not assign, and between two
attempts to read a damaged batch. The other experiments do not wait for either. A look that fails
replaces the consumer: librdkafka reads certificates only when it is opened."""

DAMAGED: Final = frozenset({KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG})
"""Errors of a batch, which librdkafka fetches again at once, and again."""

UNANSWERED: Final = frozenset({KafkaError._TIMED_OUT, KafkaError._TRANSPORT})
"""Errors of a request; why it failed is reported beside it."""

FIXED: Final[Mapping[str, Any]] = {
    # Uncommitted assignments are not published yet, and may never be.
    "isolation.level": "read_committed",
    # The topic is compacted: it has little more than the newest assignment of each experiment.
    # Every instance of a service reads all of it, without offsets.
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "allow.auto.create.topics": False,
    "check.crcs": True,
}

DEFAULTS: Final[Mapping[str, Any]] = {
    # librdkafka's default waits up to 10 s between two attempts to reconnect.
    "reconnect.backoff.max.ms": 2000,
    # What was fetched and not polled yet; the topic has some kB for each experiment.
    "queued.max.messages.kbytes": 16 * 1024,
    "log_level": 2,  # what goes wrong is in `_note`
}

RESERVED: Final = frozenset({"bootstrap.servers", "group.id", "group.instance.id", "error_cb"})
"""Settings that a service cannot choose."""


_TOPIC: Final = re.compile(r"(?!\.\.?\Z)[A-Za-z0-9._-]{1,249}")


class ConfluentFeed:
    """Reads a topic of assignments from its beginning, and follows it.

    librdkafka reconnects to brokers. After an error from which it does not recover the consumer is
    replaced, and the topic is read from its beginning.
    """

    every = 0.0  # `poll` waits

    def __init__(
        self, servers: str | Sequence[str], topic: str, chosen: Mapping[str, Any] | None = None
    ) -> None:
        if not isinstance(topic, str) or not _TOPIC.fullmatch(topic):
            raise ClientError(
                f"topic {topic!r} cannot be used: a name has 1 to 249 characters of letters, "
                "digits, '.', '_' and '-', and is not '.' or '..'."
            )
        settings = settings_in(chosen)
        for name in settings:  # without its value, which may be a password
            if name in FIXED or name in RESERVED:
                raise ClientError(f"the setting '{name}' of librdkafka cannot be changed here.")
        self._settings = {
            **DEFAULTS,
            **settings,
            **FIXED,
            "bootstrap.servers": ",".join(brokers_in(servers)),
            # librdkafka needs one, and does not join it.
            "group.id": f"streamduel-client-{uuid.uuid4()}",
        }
        self._topic = topic
        self._reset()
        # Only this shows whether the settings are valid; a wrong one is an error of the caller.
        self._consumer: Consumer | None = self._open()

    def _reset(self) -> None:
        self._partitions: set[int] = set()
        self._looked = 0.0
        self._held: set[int] = set()  # those with a damaged batch
        self._failed: KafkaError | None = None
        self._noted: str | None = None

    def _open(self) -> Consumer:
        try:
            return Consumer({**self._settings, "error_cb": self._note})
        except (KafkaException, TypeError, ValueError) as error:
            raise ClientError(f"confluent-kafka refuses its settings: {_said(error)}.") from None

    def poll(self) -> list[FeedRecord]:
        """The new records."""
        try:
            if self._failed is not None:
                raise KafkaException(self._failed)
            if self._consumer is None:
                self._consumer = self._open()
            if not self._partitions or time.monotonic() - self._looked > LOOK_SECONDS:
                self._look(self._consumer)
            first = self._consumer.poll(POLL_SECONDS)
            messages = [] if first is None else [first]
            if messages:  # with a timeout, `consume` would wait for so many
                messages += self._consumer.consume(MOST_RECORDS - 1, 0)
            return list(self._records(self._consumer, messages))
        except KafkaException as error:
            said = _said(error)
            if self._noted is not None and error.args[0].code() in UNANSWERED:
                said += f" ({self._noted})"
            self.close()
            raise ClientError(f"topic '{self._topic}' cannot be read: {said}.") from None
        except BaseException:
            self.close()
            raise

    def _look(self, consumer: Consumer) -> None:
        """Read the partitions that are not read yet."""
        self._looked = time.monotonic()
        try:
            described = consumer.list_topics(self._topic, METADATA_SECONDS).topics[self._topic]
            if described.error is not None:
                raise KafkaException(described.error)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise ClientError(f"there is no topic '{self._topic}'.") from None
            raise
        self._noted = None  # brokers answer: what was noted before explains no later error
        new = described.partitions.keys() - self._partitions
        consumer.incremental_assign(
            [TopicPartition(self._topic, it, OFFSET_BEGINNING) for it in sorted(new)]
        )
        self._partitions |= new
        consumer.resume([TopicPartition(self._topic, it) for it in self._held])

    def _records(self, consumer: Consumer, messages: Sequence[Message]) -> Iterator[FeedRecord]:
        """The records among messages; an error is raised by the next poll."""
        for message in messages:
            error, value = message.error(), message.value()
            if error is None:
                if value is not None:  # no tombstone
                    yield FeedRecord(value, message.timestamp()[1] / 1000)
            elif error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
                log.debug("topic '%s': %s", self._topic, error.str())  # the group is not used
            elif error.code() in DAMAGED:
                self._hold(consumer, message, error)
            else:
                self._failed = error

    def _hold(self, consumer: Consumer, message: Message, error: KafkaError) -> None:
        """Leave a partition with a damaged batch for a while."""
        number = message.partition()
        assert number is not None
        consumer.pause([TopicPartition(self._topic, number)])
        if number not in self._held:
            self._held.add(number)
            log.warning(
                "partition %d of topic '%s' cannot be read further: %s",
                number, self._topic, error.str(),
            )  # fmt: skip

    def _note(self, error: KafkaError) -> None:
        """Called by librdkafka, which continues by itself."""
        log.debug("%s", error.str())
        if error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._noted = error.str()

    def close(self) -> None:
        """Close the consumer."""
        consumer, self._consumer = self._consumer, None
        self._reset()
        if consumer is not None:
            with contextlib.suppress(KafkaException, RuntimeError):
                consumer.close()

    def __str__(self) -> str:
        return f"topic '{self._topic}'"


def _said(error: Exception) -> str:
    first = error.args[0] if error.args else error
    said = first.str() if isinstance(first, KafkaError) else str(first)
    return said.rstrip(".")

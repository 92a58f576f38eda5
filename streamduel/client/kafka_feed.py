"""Assignments from their Kafka topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka import KafkaConsumer

from streamduel.client.feed import News
from streamduel.client.kafka_clients import client_settings, connect
from streamduel.errors import ClientError

POLL_MS: Final = 500
"""A poll returns at once when there is news, and after this long at the latest: `close` waits."""

CONSUMER: Final[Mapping[str, Any]] = {
    # What streamduel has not committed is not published yet, and may never be.
    "isolation_level": "read_committed",
    # The topic is compacted: what it holds is the newest assignment of each experiment, and little
    # more. Every instance of a service reads all of it, so there is no group and no position.
    "auto_offset_reset": "earliest",
    "group_id": None,
    "group_instance_id": None,
    "enable_auto_commit": False,
    "key_deserializer": None,
    "value_deserializer": None,
}


class KafkaFeed:
    """Reads a topic of assignments from its beginning, and on as it grows.

    kafka-python itself reconnects to brokers that were away. After an error that it reports, the
    consumer is replaced, and the topic read anew.

    Args:
        servers: `host:port` of one or more brokers, as a list or with commas between.
        topic: of the assignments.
        chosen: further settings of kafka-python's `KafkaConsumer`, such as `security_protocol`.

    Raises:
        ClientError: a setting cannot be used.
    """

    every = 0.0  # `poll` waits by itself

    def __init__(
        self, servers: str | Sequence[str], topic: str, chosen: Mapping[str, Any] | None = None
    ) -> None:
        known = KafkaConsumer.DEFAULT_CONFIG
        self._settings = client_settings(servers, topic, known, CONSUMER, chosen)
        self._topic = topic
        self._consumer: Any = None

    def poll(self) -> list[News]:
        """The records that have come.

        Raises:
            KafkaError: the brokers cannot be reached, or do not let us read.
            ClientError: there is no such topic.
        """
        try:
            if self._consumer is None:
                self._consumer = connect(KafkaConsumer, self._topic, **self._settings)
                if not self._consumer.partitions_for_topic(self._topic):
                    raise ClientError(f"there is no topic '{self._topic}'.")
            batches = self._consumer.poll(timeout_ms=POLL_MS)
        except BaseException:
            self.close()
            raise
        return [
            News(record.value, record.timestamp / 1000)
            for records in batches.values()
            for record in records
            if record.value is not None  # a tombstone: somebody has cleaned the topic up
        ]

    def close(self) -> None:
        """Close the consumer."""
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close(autocommit=False)

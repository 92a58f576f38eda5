"""A consumer of confluent-kafka that is a static member of a group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import structlog
from kafka import TopicPartition, errors

from streamduel.connector import LogRecord
from streamduel_kafka.client import Listener
from streamduel_kafka.confluent.consumer import ConfluentConsumer

log = structlog.stdlib.get_logger(__name__)

OPEN_SECONDS: Final = 5.0
"""For opening it again within a poll; the next poll tries again."""


class GroupMember:
    """Opens its consumer again where librdkafka has fenced it without another process.

    What is not defined here is the consumer's.

    Defect: a static member whose session times out, because the coordinator of the group is away,
    forgets its member id, and sends heartbeats without one until a poll handles the loss of the
    partitions. The next coordinator takes them for those of another process of the same name, and
    librdkafka never works again after that answer.

    Args:
        open_consumer: opens a consumer within so many seconds.
        seconds: for the first one.
    """

    def __init__(self, open_consumer: Callable[[float], ConfluentConsumer], seconds: float) -> None:
        self._open = open_consumer
        self._consumer = open_consumer(seconds)
        self._join: Callable[[], None] = lambda: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def subscribe(self, topic: str, listener: Listener) -> None:
        """See `streamduel_kafka.client.Consumer`."""
        self._join = lambda: self._consumer.subscribe(topic, listener)
        self._join()

    def poll(self, seconds: float) -> Mapping[TopicPartition, Sequence[LogRecord]]:
        """See `streamduel_kafka.client.Consumer`."""
        try:
            return self._consumer.poll(seconds)
        except errors.FencedInstanceIdError:
            # Another process is noticed before this member has lost anything.
            if not self._consumer.lost:
                raise
        opened = self._open(OPEN_SECONDS)  # if it fails, the next poll comes here again
        log.warning("session lost", advice="this process joins the group again")
        self._consumer.close()
        self._consumer = opened
        self._join()
        return {}

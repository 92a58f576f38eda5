"""The newest metadata of topics, for consumers of confluent-kafka, whose own has no ids."""

from __future__ import annotations

import time
from typing import Any

import structlog
from kafka import errors

from streamduel_kafka.client import Found
from streamduel_kafka.confluent.admin import ConfluentAdmin

log = structlog.stdlib.get_logger(__name__)


class NewestTopics:
    """The newest known metadata of topics, asked for in the background.

    Args:
        admin: asks for them.
        seconds: the time between two requests for a topic.
    """

    def __init__(self, admin: ConfluentAdmin, seconds: float) -> None:
        self._admin = admin
        self._seconds = seconds
        self._known: dict[str, Found | None] = {}
        self._asked: dict[str, tuple[Any, float]] = {}

    def note(self, topic: str, found: Found | None) -> None:
        """Note the answer to another request."""
        self._known[topic] = found

    def newest(self, topic: str) -> Found | None:
        """The newest answer; None if there is none, or no such topic. Does not wait."""
        now = time.monotonic()
        asked, since = self._asked.get(topic, (None, -self._seconds))
        if asked is not None and asked.done():
            try:
                found = self._admin.found(asked, 0)
            except errors.KafkaError as error:
                log.debug("topic id unknown", topic=topic, error=str(error))
            else:
                self.note(topic, found)
            self._asked[topic] = None, since
            asked = None
        if asked is None and now - since >= self._seconds:
            self._asked[topic] = self._admin.ask(topic), now
        return self._known.get(topic)

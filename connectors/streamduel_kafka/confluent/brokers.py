"""Which brokers answer a client of confluent-kafka, by its statistics."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, ClassVar, Final

import msgspec
import structlog
from kafka import TopicPartition

log = structlog.stdlib.get_logger(__name__)

ANSWER_MICROSECONDS: Final = 2_500_000
"""Answers take milliseconds, a fetch without records 50; on a slow network, a second. With the time
between two statistics this must stay below the 5 s within which an absent broker makes a process
not ready."""


QUIET_SECONDS: Final = 1.5
"""The time without statistics before a request, and between two requests."""


class _Throttle(msgspec.Struct):
    max: int = 0  # milliseconds


class _Broker(msgspec.Struct):
    nodeid: int
    state: str
    rxidle: int = -1
    waitresp_cnt: int = 0
    throttle: _Throttle = msgspec.field(default_factory=_Throttle)


class _Partition(msgspec.Struct):
    leader: int = -1


class _Topic(msgspec.Struct):
    partitions: dict[str, _Partition]


class _Statistics(msgspec.Struct):
    brokers: dict[str, _Broker]
    topics: dict[str, _Topic]


_decode: Final = msgspec.json.Decoder(_Statistics).decode


class Brokers:
    """The newest statistics of a client, as far as they say which brokers answer.

    Statistics arrive within polls. While nothing is polled, a request is sent to a broker in the
    background.
    """

    INTERVAL_MS: ClassVar[int] = 500

    def __init__(self) -> None:
        self._newest: _Statistics | None = None
        self._updated = time.monotonic()
        self._throttled: dict[int, float] = {}  # by node: until when its quota keeps it silent
        self._asked: tuple[Any, float] | None = None  # a future, and since when
        self._failed = False  # the last request that ended

    def update(self, statistics: str) -> None:
        """Called by librdkafka, within a poll."""
        self._newest = _decode(statistics)
        self._updated = now = time.monotonic()
        for each in self._newest.brokers.values():
            if each.throttle.max:
                self._throttled[each.nodeid] = now + each.throttle.max / 1000
                log.warning(
                    "throttled by a quota", broker=each.nodeid, milliseconds=each.throttle.max
                )
        self._asked, self._failed = None, False

    def quiet(self, ask: Callable[[], Any]) -> bool:
        """Whether nothing was polled for a while, and a request failed or is not answered in time.

        Args:
            ask: sends any request to a broker, and returns a future.
        """
        now, asked = time.monotonic(), self._asked
        if now - self._updated < QUIET_SECONDS:
            return False
        ended = asked is None or asked[0].done()
        if asked is not None and ended:
            self._failed = asked[0].exception() is not None
        if asked is None or (ended and now - asked[1] >= QUIET_SECONDS):
            self._asked = ask(), now
            return self._failed
        return self._failed or now - asked[1] > ANSWER_MICROSECONDS / 1e6

    def connected(self, assigned: Collection[TopicPartition] = ()) -> bool:
        """Whether a broker answers, and the leaders of these partitions do."""
        found = self._newest
        if found is None:
            return True  # it answered when the client was opened
        overdue = {each.nodeid for each in found.brokers.values() if self._overdue(each)}
        up = {each.nodeid for each in found.brokers.values() if each.state == "UP"}
        answering, silent = up - overdue, overdue - {-1}
        leaders = {_leader(found, at) for at in assigned}
        return bool(answering) and not leaders & silent

    def _overdue(self, broker: _Broker) -> bool:
        """Whether nothing arrives although an answer is due."""
        throttled = self._throttled.get(broker.nodeid, 0.0) > time.monotonic()
        late = broker.rxidle > ANSWER_MICROSECONDS
        return bool(broker.waitresp_cnt) and late and not throttled


def _leader(found: _Statistics, at: TopicPartition) -> int:
    topic = found.topics.get(at.topic)
    partition = topic.partitions.get(str(at.partition)) if topic is not None else None
    return partition.leader if partition is not None else -1

"""Requests to the brokers for the offsets of the click log."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import structlog
from kafka import TopicPartition, errors

from streamduel.errors import ConnectorError
from streamduel.kafka_rights import Rights
from streamduel_kafka.client import METADATA_SECONDS, Consumer, Found, no_leader
from streamduel_kafka.connecting import is_fatal, reason

log = structlog.stdlib.get_logger(__name__)

ASK_SECONDS: Final = 5.0
"""The longest that a request for offsets may block everything else. Answers take milliseconds;
while the broker is down, the loop of polls is the better place to wait."""

TRY_SECONDS: Final = 2.0
"""Timeout of one broker, which may be down, for a request that every broker can answer."""

LAG_SECONDS: Final = 1.0
"""Timeout of the lag, which is for monitoring only and may be missing."""

PAUSE_SECONDS: Final = 0.1
"""The time between two attempts, where a client reports an error immediately instead of waiting."""

STANDSTILL_SECONDS: Final = 90.0
"""By default the broker aborts a transaction 60 s after it began, and checks that every 10 s: one
that is open for longer has been given more time, or hangs."""

LEADER_SECONDS: Final = METADATA_SECONDS + 1
"""Until then a leader may be being elected, and only one answer of the brokers may say so."""


class Bounds(NamedTuple):
    """The offsets of a partition.

    Attributes:
        begin: its first record.
        end: the last stable offset, up to which records can be read: the beginning of the oldest
            open transaction, and without any, the high watermark.
        high: the high watermark, the offset of its next record.
    """

    begin: int
    end: int
    high: int


class Standstill:
    """Notices a last stable offset that does not move although records are behind it."""

    def __init__(self) -> None:
        self._seen: dict[TopicPartition, tuple[int, float]] = {}
        self._logged: set[TopicPartition] = set()

    def see(self, at: TopicPartition, stable: int, lag: int) -> None:
        """Log it once when it has not moved for `STANDSTILL_SECONDS`."""
        now = time.monotonic()
        offset, since = self._seen.get(at, (-1, now))
        if not lag or stable != offset:
            self._seen[at] = stable, now
            self._logged.discard(at)
        elif now - since >= STANDSTILL_SECONDS and at not in self._logged:
            self._logged.add(at)
            log.error(
                "stable offset stands still", topic=at.topic, partition=at.partition,
                offset=stable, records=lag, seconds=round(now - since),
                advice="a producer of the click log has left a transaction open, and no reader "
                "gets the records behind it: find it with 'kafka-transactions.sh describe-"
                "producers', and end it with its 'abort'",
            )  # fmt: skip


class Leaderless:
    """Notices partitions that have no leader for longer than an election takes.

    Args:
        topic: the click log.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._since: dict[int, float] = {}

    def see(self, found: Found | None, owned: Collection[int]) -> str:
        """Which of the owned partitions have had no leader for `LEADER_SECONDS`; else empty."""
        now = time.monotonic()
        lost = set(owned).intersection(found.leaderless if found is not None else ())
        self._since = {number: self._since.get(number, now) for number in lost}
        due = [number for number, since in self._since.items() if now - since >= LEADER_SECONDS]
        return no_leader([TopicPartition(self._topic, it) for it in due]) if due else ""


class Offsets:
    """Requests offsets from the brokers.

    Args:
        consumer: the source's.
        topic: the click log.
        rights: what this client may do.
    """

    def __init__(self, consumer: Consumer, topic: str, rights: Rights) -> None:
        self._consumer = consumer
        self._topic = topic
        self._rights = rights
        self._standstill = Standstill()

    def bounds(self, at: TopicPartition, seconds: float) -> Bounds | None:
        """The present bounds of a partition; None without an answer in time.

        Raises:
            ConnectorError: the question was refused.
        """
        deadline = time.monotonic() + seconds
        while (rest := deadline - time.monotonic()) > 0:
            wait = min(rest, ASK_SECONDS)
            try:
                begin = self._consumer.begins([at], wait)[at]
                high = self._consumer.high_watermarks([at], wait)[at]
                # After the high watermark, so that it is never behind the last stable offset.
                end = self._consumer.stable_ends([at], wait)[at]
            except errors.KafkaError as error:
                if is_fatal(error):
                    raise self.unreadable(error) from error
                log.warning(
                    "offsets unknown", topic=at.topic, partition=at.partition, error=reason(error)
                )
                time.sleep(min(rest, PAUSE_SECONDS))
            else:
                return Bounds(begin, end, max(end, high))
        return None

    def unreadable(self, error: errors.KafkaError) -> ConnectorError:
        """The error for a permanent refusal to read the topic."""
        refused = self._rights.refused(error, "Read", self._topic, "source.topic")
        return refused or ConnectorError(f"topic '{self._topic}' cannot be read: {reason(error)}.")

    def high_watermarks(self, partitions: Sequence[int]) -> dict[int, int]:
        """The high watermark of each partition that has a leader; empty without an answer."""
        asked = [TopicPartition(self._topic, partition) for partition in partitions]
        try:
            found = self._consumer.high_watermarks(asked, LAG_SECONDS)
        except errors.KafkaError as error:
            log.debug("lag unknown", topic=self._topic, error=reason(error))
            return {}
        return {at.partition: high for at, high in found.items()}

    def stable_offset_lags(self, partitions: Sequence[int]) -> dict[int, int]:
        """High watermark less last stable offset; see `high_watermarks`."""
        asked = [TopicPartition(self._topic, partition) for partition in partitions]
        try:
            # In this order a record written in between does not look as if it were held back.
            high = self._consumer.high_watermarks(asked, LAG_SECONDS)
            stable = self._consumer.stable_ends(asked, LAG_SECONDS)
        except errors.KafkaError as error:
            log.debug("lag unknown", topic=self._topic, error=reason(error))
            return {}
        lags: dict[int, int] = {}
        for at in high.keys() & stable.keys():
            lags[at.partition] = lag = max(0, high[at] - stable[at])
            self._standstill.see(at, stable[at], lag)
        return lags


def truncated(at: TopicPartition, offset: int, end: int) -> ConnectorError:
    """The error for a partition that ends before an offset that was reached."""
    return ConnectorError(
        f"{name(at)} ends at offset {end}, but {offset} was reached before; was the topic "
        "recreated? 'streamduel repair new-log CONFIG' continues with the present state from its "
        "start, and with --at-end from its end, where brokers have lost its newest records; to "
        "begin with nothing, use a new group and a new topic for the snapshots."
    )


def overwritten(at: TopicPartition, offset: int) -> ConnectorError:
    """The error for a partition that has lost records, and has others at their offsets."""
    return ConnectorError(
        f"the brokers have lost the newest records of {name(at)} below offset {offset}, which was "
        "reached before, and new records have these offsets now. Start again: the fold continues "
        "at the next offset of the snapshot. New records below that offset are not folded."
    )


def check_same(topic: str, former: str | None, found: str | None) -> None:
    """Check that a topic still has the id that it had; None is an unknown one.

    Raises:
        ConnectorError: it has another.
    """
    if None not in (former, found) and former != found:
        raise ConnectorError(
            f"topic '{topic}' was deleted and created again while it was read: its id was "
            f"{former}, and is {found} now. Its offsets begin again, so nothing of it is "
            "committed; 'streamduel repair new-log CONFIG' continues with the present state from "
            "the start of the new topic."
        )


def name(at: TopicPartition) -> str:
    """A partition, in a sentence."""
    return f"partition {at.partition} of topic '{at.topic}'"

"""The control topic: its records take effect where the click log has their markers.

The owner of partition n reads partition n of the control topic, and appends a marker for each
record to partition n of the click log. A reader of the click log that finds a marker delivers the
record itself. So the click log alone defines the order, which is the same for every reader.

A program that may write clicks can write markers, too. A marker has the digest of its record, so it
can only name a record that exists: its author can make a control record that is already written
take effect a moment earlier, and nothing else.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec
import structlog
from kafka import TopicPartition, errors

from streamduel.connector import ControlMarker, ControlRecord, LogRecord
from streamduel.control_markers import Marker, digest, marker_in
from streamduel.errors import ConnectorError, control_topic_cut_off
from streamduel.kafka_rights import Rights
from streamduel_kafka.client import (
    METADATA_SECONDS,
    ConsumerOptions,
    Found,
    Producer,
    ProducerOptions,
    Sent,
)
from streamduel_kafka.connecting import connect, connect_at_start, is_fatal, reason
from streamduel_kafka.offsets import check_same
from streamduel_kafka.settings import SourceSettings

log = structlog.stdlib.get_logger(__name__)

LOOK_SECONDS: Final = 0.1
"""The time between two reads of the control topic; an action then takes effect with the next commit
or the one after it."""

ASK_SECONDS: Final = 2.0
"""The longest that a request for offsets, or a record for the click log, may block a poll."""

READER: Final = ConsumerOptions(client_id="streamduel-control", metadata_seconds=METADATA_SECONDS)
"""It continues behind deleted records, which `_check_unread` and `_check_deleted` notice."""

# Not in the transaction of a commit: a marker that is written twice has no effect, so it needs no
# transaction; and in one it would be visible only after the commit, and fold with the next.
WRITER: Final = ProducerOptions(
    client_id="streamduel-markers", seconds=120.0, block_seconds=ASK_SECONDS
)


MAX_KEY: Final = 1024
"""Bytes of a control record's key in its marker: more than an experiment's name has. With all of a
huge key, which a marker has twice, the click log would never accept the marker."""


@dataclass
class _Partition:
    """The control records of a partition.

    Attributes:
        next: the first offset that is not delivered yet.
        marked: the first offset for which this process has to write a marker.
        position: the first offset that is not read yet.
        counts: whether a marker at an offset of the click log counts.
        end: the end at the time of `seek`; None while it is unknown.
        records: those read and not delivered, in order.
    """

    next: int
    marked: int
    position: int
    counts: Callable[[int], bool]
    end: int | None
    # Thousands may wait; a plain dict looks for its first key among all that were removed before.
    records: OrderedDict[int, ControlRecord] = field(default_factory=OrderedDict)


class ControlLog:
    """Reads the control topic, writes markers, and resolves them.

    Args:
        settings: the source's, with a control topic.
        log_id: of the control topic; None with brokers before Kafka 2.8.
        forwards: whether to write markers: a replay only reads.
    """

    def __init__(self, settings: SourceSettings, log_id: str | None, *, forwards: bool) -> None:
        assert settings.control_topic is not None
        self.log_id = log_id
        self._topic = settings.control_topic
        self._click_topic = settings.topic
        self._forwards = forwards
        self._settings = settings.client_settings
        self._rights = Rights(self._settings)
        self._partitions: dict[int, _Partition] = {}
        self._looked_at = 0.0
        self._waiting = False
        self._reported: dict[int, int] = {}  # the beginnings of partitions, as last logged
        self._sent: list[Sent] = []
        self._ends: dict[TopicPartition, int] | None = None
        self._producer: Producer | None = None
        with ExitStack() as opened:
            self._consumer = connect_at_start(READER, self._settings)
            opened.callback(self._consumer.close)
            if forwards:
                self._producer = connect_at_start(WRITER, self._settings)
            opened.pop_all()

    def seek(self, partition: int, offset: int, counts: Callable[[int], bool]) -> None:
        """Deliver the records of a partition from this offset on, at the markers that count.

        Raises:
            ConnectorError: the control topic ends before it.
        """
        at = self._at(partition)
        end = self._end(at)
        self._ends = None
        if end is not None and offset > end:
            raise ConnectorError(control_topic_cut_off(self._topic, partition, end, offset))
        self._partitions[partition] = _Partition(offset, offset, offset, counts, end)
        self._assign()

    def forwarded(self, partition: int) -> bool:
        """Whether all records up to the partition's end at the time of `seek` have markers.

        A replay needs no others than those that it finds.
        """
        if not self._forwards:
            return True
        it = self._partitions[partition]
        if it.end is None:
            it.end = self._end(self._at(partition))
        if it.end is None or it.position < it.end or self._sent:
            return False
        return next(reversed(it.records), -1) < it.marked

    def keep(self, partitions: Sequence[int]) -> None:
        """Forget all partitions but these, which this process still owns."""
        kept = {number: it for number, it in self._partitions.items() if number in partitions}
        if kept.keys() != self._partitions.keys():
            self._partitions = kept
            self._assign()

    def _assign(self) -> None:
        self._consumer.assign({self._at(n): it.position for n, it in self._partitions.items()})

    def look(self) -> None:
        """Read new control records, and write a marker for each.

        Raises:
            ConnectorError: Kafka does not allow it, or the topic was deleted and created again.
        """
        now = time.monotonic()
        if not self._partitions or (now - self._looked_at < LOOK_SECONDS and not self._waiting):
            return
        self._looked_at = now
        try:
            fetched = self._consumer.poll(0)
        except errors.KafkaError as error:
            if is_fatal(error) or not error.retriable:
                setting = "source.control_topic"
                refused = self._rights.refused(error, "Read", self._topic, setting)
                raise refused or ConnectorError(
                    f"{setting} '{self._topic}' cannot be read: {reason(error)}."
                ) from error
            log.warning("read failed", topic=self._topic, error=reason(error))
            return
        if known := self._consumer.known(self._topic):
            check_same(self._topic, self.log_id, known.id)
        for at, found in fetched.items():
            records = self._partitions[at.partition].records
            for record in found:
                records[record.offset] = ControlRecord(record.offset, record.key, record.value)
        for number, partition in self._partitions.items():
            position = self._consumer.position(self._at(number))
            unread = partition.position
            while unread in partition.records:
                unread += 1
            if unread < position and self._forwards:
                self._check_unread(number, unread)
            partition.position = max(partition.position, position)
        if self._forwards:
            self._mark()

    def _mark(self) -> None:
        """Write a marker for each new record.

        A producer that had an error is never used again (see `Transactions`), and what is not
        delivered gets another marker.
        """
        due = [
            (number, control)
            for number, partition in self._partitions.items()
            for offset, control in partition.records.items()
            if offset >= partition.marked
        ]
        try:
            if self._producer is None and due:
                self._producer = connect(WRITER, self._settings, ASK_SECONDS)
            if self._producer is not None:
                self._check_sent(self._producer)
                for number, control in due:
                    self._send(self._producer, number, control)
        except (errors.KafkaError, OSError, ValueError) as error:
            self._not_sent(error)

    def _check_sent(self, producer: Producer) -> None:
        if not self._sent:
            producer.flush(0)  # librdkafka keeps its reports of lost connections until a call
        waiting: list[Sent] = []
        done: list[Sent] = []
        for sent in self._sent:
            (done if sent.done else waiting).append(sent)
        self._sent = waiting
        for sent in done:
            if sent.error is not None:
                raise sent.error

    def _send(self, producer: Producer, number: int, control: ControlRecord) -> None:
        key = None if control.key is None else control.key[:MAX_KEY]
        name = (key or b"").decode(errors="replace")
        id_ = f"{self._topic}-{number}@{control.offset}"
        marker = Marker(id_, name, control.offset, digest(control.value))
        value = msgspec.json.encode(marker)
        self._sent.append(producer.send(self._click_topic, key, value, number))
        self._partitions[number].marked = control.offset + 1

    def _not_sent(self, error: Exception) -> None:
        if is_fatal(error):
            refused = self._rights.refused(error, "Write", self._click_topic, "source.topic")
            raise refused or ConnectorError(
                f"markers of control records cannot be written to source.topic "
                f"'{self._click_topic}': {reason(error)}."
            ) from error
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.discard()
        self._sent.clear()
        for number, partition in self._partitions.items():
            partition.marked = partition.next
            for offset in list(partition.records)[:1]:
                log.warning(
                    "control record delayed", partition=number, offset=offset, error=reason(error)
                )

    def merge(
        self,
        records: Mapping[int, Sequence[LogRecord]],
        rewind: Callable[[int, int], None],
    ) -> dict[int, Sequence[LogRecord]]:
        """Replace each marker that counts by a `ControlMarker`.

        A marker whose control record is not read yet holds its partition back: `rewind` is called
        with the partition and the marker's offset, from which to deliver again.

        Raises:
            ConnectorError: a control record was deleted, and this is a replay.
        """
        self._waiting, self._ends = False, None
        merged: dict[int, Sequence[LogRecord]] = {}
        for number, batch in records.items():
            marked = [(at, it) for at, it in enumerate(map(marker_in, batch)) if it is not None]
            if number not in self._partitions or not marked:
                merged[number] = batch
                continue
            delivered = list(batch)
            for at, marker in marked:
                record = batch[at]
                if not self._partitions[number].counts(record.offset):
                    continue
                controls = self._resolve(number, marker)
                if controls == "waits":
                    self._waiting = True
                    rewind(number, record.offset)
                    del delivered[at:]
                    break
                if controls != "unknown":
                    delivered[at] = ControlMarker(
                        record.offset, record.timestamp, record.key, controls
                    )
            if delivered:
                merged[number] = delivered
        return merged

    def _resolve(
        self, number: int, marker: Marker
    ) -> Sequence[ControlRecord] | Literal["waits", "unknown"]:
        """The control records that take effect at a marker, with earlier ones without a marker."""
        partition, wanted = self._partitions[number], marker.control_offset
        if wanted < partition.next:
            return ()
        if wanted >= partition.position:
            end = self._end(self._at(number))
            return "waits" if end is None or wanted < end else "unknown"
        found = partition.records.get(wanted)
        if found is None:
            self._check_deleted(number, wanted)
            return "unknown"
        if digest(found.value) != marker.digest:
            return "unknown"
        due = []
        while partition.records and next(iter(partition.records)) <= wanted:
            due.append(partition.records.popitem(last=False)[1])
        partition.next = wanted + 1
        return due

    def _check_unread(self, number: int, first: int) -> None:
        """Log the records from this one on that were deleted before they were read."""
        begin = self._begin(number)
        if begin <= max(first, self._reported.get(number, 0)):
            return
        self._reported[number] = begin
        log.error(
            "control records missed", topic=self._topic, partition=number,
            first=first, last=begin - 1,
            advice="the control topic deleted them before they were read, so they have no effect: "
            "repeat the actions, and set its retention longer than the service may be down",
        )  # fmt: skip

    def _begin(self, number: int) -> int:
        """The offset of the first record; 0 if the broker does not return it."""
        try:
            return self._consumer.begins([self._at(number)], ASK_SECONDS)[self._at(number)]
        except errors.KafkaError:
            return 0

    def _check_deleted(self, number: int, wanted: int) -> None:
        if wanted >= self._begin(number):
            return
        sentence = (
            f"source.control_topic '{self._topic}' no longer has record {wanted} of partition "
            f"{number}, to which the click log refers; keep its records at least as long as the "
            f"click log (retention.ms)."
        )
        if not self._forwards:
            raise ConnectorError(sentence)
        log.error("control record missed", partition=number, offset=wanted, advice=sentence)

    def _end(self, at: TopicPartition) -> int | None:
        """The present end of a partition, asked once per poll: what was polled is older."""
        if self._ends is None or at not in self._ends:
            try:
                found = self._consumer.stable_ends([at], ASK_SECONDS)
            except errors.KafkaError as error:
                log.debug("end unknown", topic=self._topic, error=reason(error))
                return None
            self._ends = {**(self._ends or {}), **found}
        return self._ends[at]

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)

    def close(self) -> None:
        """Close the clients."""
        self._consumer.close()
        if self._producer is not None:
            self._producer.discard()


def open_control(
    settings: SourceSettings, found: Found | None, *, forwards: bool
) -> ControlLog | None:
    """The control topic, if there is one; see `ControlLog`."""
    return None if found is None else ControlLog(settings, found.id, forwards=forwards)

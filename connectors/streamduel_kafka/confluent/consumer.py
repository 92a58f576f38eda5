"""Consumers of confluent-kafka."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import structlog
from confluent_kafka import Consumer, IsolationLevel, KafkaError, Message
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import OffsetSpec
from kafka import TopicPartition, errors

from streamduel.connector import LogRecord
from streamduel_kafka.client import Committed, ConsumerOptions, Found, Listener
from streamduel_kafka.confluent.admin import ConfluentAdmin
from streamduel_kafka.confluent.brokers import Brokers
from streamduel_kafka.confluent.failures import TRUNCATED, translated, translating
from streamduel_kafka.confluent.newest_topics import NewestTopics
from streamduel_kafka.confluent.opening import Errors
from streamduel_kafka.confluent.positions import Positions
from streamduel_kafka.confluent.records import records_of, runs
from streamduel_kafka.confluent.unread import UnreadBatches

log = structlog.stdlib.get_logger(__name__)

CLOSE_SECONDS: Final = 3.0
"""librdkafka has no limit of its own."""

CONTROL: Final = frozenset({KafkaError._MAX_POLL_EXCEEDED, KafkaError._ALL_BROKERS_DOWN})
"""Errors that librdkafka reports, and after which it continues by itself."""

ASK_SECONDS: Final = 2.0
"""The longest that a request for the ends of partitions may block a poll; it takes milliseconds."""

MOST_MESSAGES: Final = 1_000_000
"""The largest argument that `Consumer.consume` accepts."""


class ConfluentConsumer:
    """See `streamduel_kafka.client.Consumer`.

    Attributes:
        lost: whether the group has taken back all partitions, and assigned none since.
    """

    def __init__(
        self,
        consumer: Consumer,
        admin: ConfluentAdmin,
        brokers: Brokers,
        unread: UnreadBatches,
        options: ConsumerOptions,
        heard: Errors,
    ) -> None:
        self._consumer = consumer
        self._admin = admin
        self._brokers = brokers
        self._heard = heard
        self._unread = unread
        self._options = options
        self._more = min(options.max_records - 1, MOST_MESSAGES)  # behind the first of a poll
        self._positions = Positions(consumer)
        self._closing = False
        self._failed: deque[errors.KafkaError] = deque()
        self._fatal: errors.KafkaError | None = None
        self.lost = False
        self._reread: set[TopicPartition] = set()  # in the present poll
        self._suspected: list[TopicPartition] = []  # of a batch that is too large for an answer
        self._rejoin: Callable[[], None] | None = None  # at the next poll
        self._newest_topics = NewestTopics(admin, options.metadata_seconds)

    @property
    def connected(self) -> bool:
        """See the protocol."""
        if self._closing or self._brokers.quiet(self._admin.ping):
            return False
        return self._brokers.connected(self._positions.assigned)

    def subscribe(self, topic: str, listener: Listener) -> None:
        """See the protocol."""

        def assigned(consumer: Consumer, places: list[Place]) -> None:
            if any(each.topic != topic for each in places):
                # A static member gets what its predecessor had, whatever it subscribes to.
                consumer.assign([])
                self._rejoin = lambda: self.subscribe(topic, listener)
                return
            partitions = [TopicPartition(each.topic, each.partition) for each in places]
            self._positions.hold_all(partitions)
            self.lost = False
            listener.assigned(partitions, consumer.consumer_group_metadata())

        def revoked(_consumer: Consumer, _places: list[Place]) -> None:
            self._positions.drop()
            self.lost = True
            listener.revoked()

        with translating():
            self._consumer.subscribe(
                [topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked
            )

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See the protocol."""
        with translating():
            self._positions.assign(positions)

    def assign_held(self, partitions: Collection[TopicPartition]) -> None:
        """See the protocol."""
        with translating():
            self._positions.hold_all(partitions)

    def assignment(self) -> set[TopicPartition]:
        """See the protocol."""
        return set(self._positions.assigned)

    def hold(self, partitions: Collection[TopicPartition]) -> None:
        """See the protocol."""
        with translating():
            self._positions.hold(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """See the protocol."""
        with translating():
            self._positions.resume(partitions)

    def seek(self, at: TopicPartition, offset: int) -> None:
        """See the protocol."""
        with translating():
            self._positions.seek(at, offset)

    def position(self, at: TopicPartition) -> int:
        """See the protocol."""
        return self._positions.of(at)

    def poll(self, seconds: float) -> Mapping[TopicPartition, Sequence[LogRecord]]:
        """See the protocol."""
        if self._failed:
            raise self._failed.popleft()
        self._check_denied()  # each time: an old refusal does not explain a later outage
        with translating():
            if self._rejoin is not None:
                self._rejoin()
                self._rejoin = None
            self._positions.restart()  # where the last poll met an offset out of range
            # `consume` with a timeout would wait for all its records.
            first = self._consumer.poll(seconds)
            messages = [] if first is None else [first, *self._consumer.consume(self._more, 0)]
        found: dict[TopicPartition, Sequence[LogRecord]] = {}
        self._reread.clear()
        for at, run in runs(messages):
            self._take(found, at, run)
        self._read_unreceived(found)
        if self._fatal is not None:
            raise self._fatal
        if not found and self._failed:
            raise self._failed.popleft()
        return found

    def _take(
        self,
        found: dict[TopicPartition, Sequence[LogRecord]],
        at: TopicPartition,
        messages: list[Message],
    ) -> None:
        """Add consecutive messages of one partition."""
        if at in self._reread:
            return
        if any(map(Message.error, messages)):
            for failed, group in groupby(messages, lambda each: bool(each.error())):
                if failed:
                    for each in group:
                        self._report(found, at, each)
                else:
                    self._take(found, at, list(group))
            return
        records = self._positions.passed(at, records_of(messages))
        if records:
            found[at] = [*found[at], *records] if at in found else records

    def _report(
        self,
        found: dict[TopicPartition, Sequence[LogRecord]],
        at: TopicPartition,
        message: Message,
    ) -> None:
        """Handle an error, which librdkafka delivers as a message."""
        error = message.error()
        assert error is not None
        code, offset = error.code(), message.offset()
        if at in self._reread:
            return
        if code == KafkaError._PARTITION_EOF:
            self._positions.reach(at, -1 if offset is None else offset)
        elif code in CONTROL:
            log.warning("reading interrupted", error=error.str())
        elif code == KafkaError._AUTO_OFFSET_RESET:
            if at in self._positions.delivering:
                self._positions.stop(at)
                cut = TRUNCATED in error.str()
                kind = errors.LogTruncationError if cut else errors.OffsetOutOfRangeError
                self._failed.append(kind({at: self._positions.of(at)}))
        elif code in (KafkaError._BAD_COMPRESSION, KafkaError._BAD_MSG):
            if at in self._positions.delivering:
                self._read_batch(found, at)
        elif code == KafkaError._FATAL:
            # The one error that is fatal for a consumer of the classic protocol.
            self._fatal = errors.FencedInstanceIdError(error.str())
        elif code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            self._failed.append(errors.TopicAuthorizationFailedError({at.topic}))
        elif code == KafkaError.GROUP_AUTHORIZATION_FAILED and self._options.membership is None:
            log.debug("group not allowed", error=error.str())  # a reader asks it for nothing
        else:
            self._failed.append(translated(error))

    def _read_batch(
        self, found: dict[TopicPartition, Sequence[LogRecord]], at: TopicPartition
    ) -> None:
        """Read the batch at the position with the other client, and continue behind it.

        librdkafka may have reported the batch several times before this poll, so what else the
        poll has of the partition is ignored; it is fetched again. So is a batch of a second
        partition: a poll must not take as long as many of them. A failure is raised by a later
        poll: this one has records of other partitions.
        """
        position = self._positions.of(at)
        if not self._reread:
            try:
                records, position = self._unread.read(at, position)
            except errors.KafkaError as error:
                self._failed.append(error)
            else:
                if records:
                    found[at] = [*found.get(at, ()), *records]
        self._reread.add(at)
        self._positions.seek(at, position)

    def _read_unreceived(self, found: dict[TopicPartition, Sequence[LogRecord]]) -> None:
        """Read past a batch for which librdkafka allows no answer: it asks for it again and again.

        It does not say of which partition: each that is not at its end is suspected, one a poll.
        """
        if self._heard.unreceived and not self._suspected:
            self._heard.unreceived = False
            try:
                ends = self.stable_ends([*self._positions.delivering], ASK_SECONDS)
            except errors.KafkaError as error:
                self._failed.append(error)
                return
            self._suspected = [at for at, end in ends.items() if self.position(at) < end]
        if self._suspected and not self._reread:
            at = self._suspected.pop()
            if at in self._positions.delivering:
                self._read_batch(found, at)

    def _check_denied(self) -> None:
        """Raise the error with which brokers refuse this process, if none of them answers."""
        denied, self._heard.denied = self._heard.denied, None
        if denied is not None and not self._brokers.connected():
            raise denied

    def begins(
        self, partitions: Sequence[TopicPartition], seconds: float
    ) -> dict[TopicPartition, int]:
        """See the protocol."""
        return self._admin.offsets(partitions, OffsetSpec.earliest(), seconds)

    def stable_ends(
        self, partitions: Sequence[TopicPartition], seconds: float
    ) -> dict[TopicPartition, int]:
        """See the protocol."""
        return self._admin.offsets(partitions, OffsetSpec.latest(), seconds)

    def high_watermarks(
        self, partitions: Sequence[TopicPartition], seconds: float
    ) -> dict[TopicPartition, int]:
        """See the protocol."""
        return self._admin.offsets(
            partitions, OffsetSpec.latest(), seconds, IsolationLevel.READ_UNCOMMITTED
        )

    def committed(self, at: TopicPartition, seconds: float) -> Committed | None:
        """See the protocol.

        Defect: librdkafka returns bytes of its memory behind a text that does not end with a NUL,
        as other programs write it.
        """
        with translating():
            found = self._consumer.committed([Place(*at)], seconds)[0]
        if found.error is not None:
            raise translated(found.error)
        try:
            text = found.metadata or ""
        except UnicodeDecodeError:
            text = ""
        return Committed(found.offset, text) if found.offset >= 0 else None

    def answers(self, seconds: float) -> bool:
        """See the protocol."""
        try:
            self._admin.reach(seconds)
        except errors.KafkaError:
            return False
        return True

    def partitions(self, topic: str, seconds: float) -> list[int]:
        """See the protocol."""
        found = self._admin.found(self._admin.ask(topic, seconds), seconds)
        return list(range(found.partitions)) if found is not None else []

    def known(self, topic: str) -> Found | None:
        """See the protocol."""
        return self._newest_topics.newest(topic)

    def ask_topic(self, topic: str) -> Any:
        """See the protocol."""
        return self._admin.ask(topic)

    def await_answer(self, topic: str, asked: Any, seconds: float) -> Found | None:
        """See the protocol."""
        found = self._admin.found(asked, seconds)
        self._newest_topics.note(topic, found)
        return found

    def close(self) -> None:
        """See the protocol.

        Defect: librdkafka's own `close` calls the rebalance callback for decisions of the group
        that have not been polled. The callback can wait permanently for the group, which has
        ended, and holds Python's lock. Destroying the consumer ends it without callbacks. Neither
        makes a static member leave its group.
        """
        if self._closing:
            return
        self._closing = True
        self._unread.close()
        self._positions.close()
        last_reference = [self._consumer]
        del self._consumer
        closer = threading.Thread(target=last_reference.clear, name="closing", daemon=True)
        closer.start()
        closer.join(CLOSE_SECONDS)
        self._admin.close()

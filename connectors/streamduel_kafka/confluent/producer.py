"""Producers of confluent-kafka."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka import TopicPartition as Place
from kafka import TopicPartition, errors

from streamduel_kafka.client import Committed, ProducerOptions
from streamduel_kafka.confluent.failures import TransientError, translated, translating
from streamduel_kafka.confluent.opening import SOCKET_MS, Errors, await_cluster, configuration

PRODUCER: Final[dict[str, Any]] = {
    "acks": "all",
    "enable.idempotence": True,
    # As in every other client: murmur2 of the key; without a key, any partition.
    "partitioner": "murmur2_random",
    # The most bytes of waiting records: a commit has some megabytes.
    "queue.buffering.max.kbytes": 256 * 1024,
}

IDLE_MS: Final = 2000
"""The time after which an idle connection is closed.

A commit sends offsets to the coordinator of the group that librdkafka knows from the commit before.
If that coordinator is dead, librdkafka asks for its successor only when some connection opens or
closes, and otherwise waits without limit. While it waits, the other connections are idle.

Connections that wait for a slow answer count as idle, too: they open again, and librdkafka repeats
the request, which the broker executes once.
"""

PAUSE_SECONDS: Final = 0.01
"""The time between two attempts while the queue is full."""

FOLLOWING: Final = frozenset(
    {KafkaError._FATAL, KafkaError._PURGE_INFLIGHT, KafkaError._PURGE_QUEUE}
)
"""Of records that are not written because of another error."""

CAUSE_SECONDS: Final = 0.5
"""Timeout of the reports of a failed transaction; the first ones may be of purged records."""

CLOSE_SECONDS: Final = 1.0
"""Timeout of closing: what is still unsent then belongs to no commit."""

GRACE_SECONDS: Final = 1.0
"""The extra time in which librdkafka should end a call by its own timeout."""


class _Sent:
    """See `streamduel_kafka.client.Sent`; has the producer until it is written or has failed."""

    __slots__ = ("_error", "_offset", "_producer")

    def __init__(self, producer: ConfluentProducer) -> None:
        self._producer: ConfluentProducer | None = producer
        self._error: errors.KafkaError | None = None
        self._offset: int | None = None

    def delivered(self, error: KafkaError | None, message: Message[Any, Any]) -> None:
        """Called by librdkafka."""
        producer, self._producer = self._producer, None
        if error is None:
            self._offset = message.offset()
            return
        self._error = self._error or translated(error)
        if producer is not None and error.code() not in FOLLOWING:
            producer.failures.append(self._error)

    def _serve(self, seconds: float) -> None:
        """Wait for the report of delivery; without one, a fatal error is that of this record."""
        if self._producer is None:
            return
        try:
            self._producer.serve(seconds)
        except errors.KafkaError as error:
            if self._producer is not None:
                self._producer, self._error = None, error

    @property
    def done(self) -> bool:
        """See the protocol."""
        self._serve(0)
        return self._producer is None

    @property
    def error(self) -> Exception | None:
        """See the protocol."""
        return self._error

    def wait(self, seconds: float) -> int:
        """See the protocol."""
        deadline = time.monotonic() + seconds
        while not self.done:
            rest = deadline - time.monotonic()
            if rest <= 0:
                raise errors.KafkaTimeoutError(f"no answer within {seconds:.0f} s")
            self._serve(rest)
        if self._error is not None:
            raise self._error
        assert self._offset is not None
        return self._offset


class ConfluentProducer:
    """See `streamduel_kafka.client.Producer`.

    Attributes:
        failures: of records, without those that follow from another error.
    """

    def __init__(self, producer: Producer, block_seconds: float) -> None:
        self._producer = producer
        self._block = block_seconds
        self._fatal: errors.KafkaError | None = None
        self.failures: list[errors.KafkaError] = []

    def send(
        self, topic: str, key: bytes | None, value: bytes, partition: int | None = None
    ) -> _Sent:
        """See the protocol."""
        sent = _Sent(self)
        deadline = time.monotonic() + self._block
        place: dict[str, Any] = {} if partition is None else {"partition": partition}
        while True:
            try:
                with translating():
                    self._producer.produce(topic, value, key, on_delivery=sent.delivered, **place)
            except BufferError:
                if time.monotonic() > deadline:
                    raise errors.KafkaTimeoutError("the queue of records is full") from None
                self.serve(PAUSE_SECONDS)
            except errors.KafkaError as error:
                refused = error
                break
            else:
                return sent
        self.serve(0)  # raises a fatal error, if that is why
        raise refused

    def serve(self, seconds: float) -> None:
        """Wait for reports of delivery; raises a fatal error of the producer, from then on."""
        with self._reporting():
            if self._fatal is None:
                self._producer.poll(seconds)

    @contextlib.contextmanager
    def _reporting(self) -> Iterator[None]:
        """Around a call that raises none but a fatal error, which librdkafka names only once."""
        try:
            with translating():
                yield
        except errors.KafkaError as error:
            self._fatal = self._fatal or error
        if self._fatal is not None:
            raise self._fatal

    def flush(self, seconds: float) -> None:
        """See the protocol."""
        with self._reporting():
            left = self._producer.flush(max(0.0, seconds))
        if left:
            raise errors.KafkaTimeoutError(f"no answer within {seconds:.0f} s")

    def init_transactions(self, seconds: float) -> None:
        """See the protocol."""
        _within(seconds, lambda rest: self._producer.init_transactions(rest))  # noqa: PLW0108

    def begin_transaction(self) -> None:
        """See the protocol."""
        with translating():
            self._producer.begin_transaction()

    def send_offsets(
        self, offsets: Mapping[TopicPartition, Committed], group: Any, seconds: float
    ) -> None:
        """See the protocol."""
        places = [Place(at.topic, at.partition, *each) for at, each in offsets.items()]
        _within(
            seconds,
            lambda rest: self._producer.send_offsets_to_transaction(places, group, rest),
        )

    def commit_transaction(self, seconds: float) -> None:
        """See the protocol."""
        _within(seconds, lambda rest: self._producer.commit_transaction(rest))  # noqa: PLW0108

    def abort_transaction(self, seconds: float) -> None:
        """See the protocol."""
        with contextlib.suppress(errors.KafkaError), translating():
            self._producer.purge()
            _within(seconds, lambda rest: self._producer.abort_transaction(rest))  # noqa: PLW0108

    def cause(self) -> BaseException | None:
        """See the protocol.

        In another thread, because this one handles an error: confluent-kafka never frees the error
        that a thread handles while it raises one there.
        """
        with contextlib.suppress(errors.KafkaError):
            _within(CAUSE_SECONDS, self.flush)
        return next(iter(self.failures), None) or self._fatal or self._transaction_error()

    def _transaction_error(self) -> errors.KafkaError | None:
        """The error that a transaction has failed with, if it has; its records are only purged.

        librdkafka reports it instead of beginning another one.
        """
        try:
            _within(CAUSE_SECONDS, lambda _: self._producer.begin_transaction())
        except (TransientError, errors.KafkaTimeoutError):
            return None  # it has not failed
        except errors.KafkaError as error:
            return error
        return None

    def discard(self) -> None:
        """See the protocol.

        librdkafka ends when nothing refers to its producer any more. Records, and the tracebacks of
        errors, refer to this object for longer.
        """
        with contextlib.suppress(errors.KafkaError), translating():
            self._producer.purge()
            self._producer.flush(CLOSE_SECONDS)
        self._fatal = self._fatal or errors.KafkaConnectionError("the producer is closed")
        del self._producer


def _within(seconds: float, call: Callable[[float], object]) -> None:
    """Make a call of a transaction, and wait no longer than this.

    librdkafka exceeds its own timeout: seen with `send_offsets_to_transaction` when the
    leader of a partition was killed. The thread that waits for the call is abandoned, with a
    producer that is never used again.

    Args:
        seconds: how long.
        call: gets librdkafka's producer late, when it runs: the traceback of an error refers to the
            call.

    Raises:
        KafkaError: refused, or not answered in time.
    """
    outcome: list[BaseException | None] = []
    rest = max(0.001, seconds)

    def run() -> None:
        try:
            call(rest)
        except BaseException as error:
            outcome.append(error)
        else:
            outcome.append(None)

    thread = threading.Thread(target=run, name="transaction", daemon=True)
    thread.start()
    thread.join(rest + GRACE_SECONDS)
    if not outcome:
        raise errors.KafkaTimeoutError(f"no answer within {seconds:.0f} s")
    with translating():
        if outcome[0] is not None:
            raise outcome[0]


def open_producer(
    settings: Mapping[str, Any], options: ProducerOptions, seconds: float
) -> ConfluentProducer:
    """Connect a producer, within this time."""
    heard = Errors()
    milliseconds = int(1000 * options.seconds)
    more: dict[str, Any] = {
        **PRODUCER,
        "client.id": options.client_id,
        "request.timeout.ms": int(1000 * options.request_seconds),
        "message.max.bytes": options.max_record_bytes,
        "batch.size": options.batch_bytes,
        "linger.ms": options.linger_ms,
    }
    if options.transactional_id is not None:
        # librdkafka requires both times to be within that of the transaction.
        milliseconds = min(milliseconds, options.transaction_timeout_ms)
        more |= {
            "transactional.id": options.transactional_id,
            "transaction.timeout.ms": options.transaction_timeout_ms,
            "socket.timeout.ms": min(SOCKET_MS, options.transaction_timeout_ms),
            "connections.max.idle.ms": IDLE_MS,
        }
    more["message.timeout.ms"] = max(milliseconds, options.linger_ms + 1)
    with translating():
        producer = Producer(configuration(settings, heard, **more))
    try:
        await_cluster(producer, heard, seconds, lambda: producer.poll(0))
    except BaseException:
        producer.purge()
        raise
    return ConfluentProducer(producer, options.block_seconds)

"""Clients of kafka-python, opened and closed; for the service, the client and the Spark job.

A subclass and uses of private parts of kafka-python, written for 3.0.12. Each docstring names the
defect of it that makes the code necessary; when a release fixes one, delete the code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from kafka import errors
from kafka.net.compat import KafkaNetClient

READY_SECONDS: Final = 1.0
"""A connection takes milliseconds. On a slow network it may take longer: the attempt continues, and
meanwhile another broker may have become the coordinator."""

PAUSE_SECONDS: Final = 0.1
"""The time between two requests for the coordinator of a transaction, while it is down."""

CLOSE_SECONDS: Final = 1.0
"""A producer with nothing left to send closes in milliseconds."""

TOO_LARGE: Final = (errors.MessageSizeTooLargeError, errors.RecordListTooLargeError)
"""The errors of a record that is too large, or of a batch of such records."""


class Secret(str):
    """A password for kafka-python, which writes its settings to the debug log, without its text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'**********'"


class NetClient(KafkaNetClient):  # type: ignore[misc] # kafka-python is untyped
    """kafka-python's network client, for producers whose broker is down."""

    def await_ready(self, node_id: Any, timeout_ms: float = 1000 * READY_SECONDS) -> bool:
        """Wait until there is a connection to a broker; False if there is none in time.

        Defect: it raises instead, and the sender of a producer then drops the request of a
        transaction that it was about to send. Nothing sends it again, so the transaction, and with
        it the commit, could only time out, however soon the broker had a successor.
        """
        try:
            super().await_ready(node_id, min(timeout_ms, 1000 * READY_SECONDS))
        except errors.KafkaConnectionError:
            self.poll(timeout_ms=1000 * PAUSE_SECONDS)
            return False
        return True

    def connection_delay(self, node_id: Any) -> float:
        """Milliseconds until the next attempt to connect to a broker.

        Defect: it returns seconds, which the sender takes for milliseconds: until the attempt, it
        asks again without pause, at the cost of a whole core.
        """
        return 1000 * float(super().connection_delay(node_id))


def open_client(
    kind: Callable[..., Any],
    settings: Mapping[str, Any],
    *topics: str,
    of_connections: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Open a client of this class, or leave nothing open.

    The settings `of_connections` are those that the class itself refuses.

    Defects: `allow_auto_create_topics` does not reach the cluster metadata, and a constructor that
    raises leaves its connections open. A client factory (the public option `kafka_client`) sets the
    one and closes the others.
    """
    opened: list[Any] = []

    def client(**configs: Any) -> Any:
        made = NetClient(**{**configs, **of_connections})
        # A missing topic must be an error, not created by the broker with the wrong settings.
        made.cluster.config["allow_auto_create_topics"] = False
        opened.append(made)
        return made

    try:
        return kind(*topics, kafka_client=client, **settings)
    except BaseException:
        for each in opened:
            each.close()
        raise


def keep_open(producer: Any) -> None:
    """Leave it to the owner of a producer to close it, also when the program ends.

    Defect: it registers an exit handler, which closes it before the handlers registered earlier,
    such as the one that writes the buffer of an event log, have run.
    """
    producer._unregister_cleanup()


def producer_error(producer: Any) -> Exception | None:
    """The error that made an idempotent producer fail as a whole; None if it has not failed.

    Defect: its methods then raise a KafkaError that holds it only as text, and so do the records
    that it did not send, although one of them, such as one that is too large, was the cause.
    """
    error: Exception | None = producer._transaction_manager.last_error
    return error


def close_producer(producer: Any) -> None:
    """Close a producer in any state, within seconds.

    Defect: `KafkaProducer.close` raises when records are left to send, and leaves the thread of its
    sender running.
    """
    with contextlib.suppress(errors.KafkaError):
        producer.close(timeout=CLOSE_SECONDS)
    if not producer._closed:
        producer._sender.force_close()
        producer._sender.join(CLOSE_SECONDS)
        with contextlib.suppress(errors.KafkaError):
            producer.close(timeout=0)

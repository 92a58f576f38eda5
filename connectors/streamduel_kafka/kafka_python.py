"""The private parts of kafka-python that this connector uses; nothing else here touches any.

Written for kafka-python 3.0.12. Each function names the upstream defect that makes it necessary;
when a release fixes one, delete the function. Check all of them before another major version is
allowed in `pyproject.toml`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from kafka import TopicPartition, errors

# A producer with nothing left to send closes in milliseconds.
CLOSE_SECONDS = 1.0


def connected(consumer: Any) -> bool:
    """Whether a consumer has an established connection to at least one broker now.

    Makes no request. A connection that the broker closes or loses is noticed at once, a broker
    that stops answering after `request_timeout_ms` (a heartbeat or a fetch is always in flight).

    Defect: no public method tells. `bootstrap_connected` is true only during the bootstrap, and the
    metric `connection-count` counts attempts too.
    """
    client = consumer._client
    return any(client.connected(broker.node_id) for broker in client.cluster.brokers())


def displaced(consumer: Any) -> bool:
    """Whether another member of the same `group_instance_id` has replaced this one in the group.

    Defect: a heartbeat that is refused with FencedInstanceIdError is only logged. The heartbeats
    stop, and the consumer goes on reading. In a stable member that is not about to rejoin nothing
    else stops them.
    """
    coordinator = consumer._coordinator
    return coordinator.stable() and not coordinator.rejoining and not coordinator._heartbeat_enabled


def send_offsets(
    producer: Any, offsets: Mapping[TopicPartition, Any], group: Any, seconds: float
) -> None:
    """`KafkaProducer.send_offsets_to_transaction` with a timeout.

    Defect: that method, and the two below, wait without limit. While the broker is down the
    process could not even stop on SIGTERM.

    Raises:
        KafkaError: refused, or not answered in time.
    """
    manager = producer._transaction_manager
    _wait(producer, manager.send_offsets_to_transaction(dict(offsets), group), seconds)


def commit_transaction(producer: Any, seconds: float) -> None:
    """`KafkaProducer.commit_transaction` with a timeout; see `send_offsets`."""
    _wait(producer, producer._transaction_manager.begin_commit(), seconds)


def abort_transaction(producer: Any, seconds: float) -> None:
    """`KafkaProducer.abort_transaction` with a timeout; see `send_offsets`.

    Does not raise: there may be nothing to abort, and the broker aborts after a timeout anyway.
    """
    with contextlib.suppress(errors.KafkaError):
        _wait(producer, producer._transaction_manager.begin_abort(), seconds)


def _wait(producer: Any, result: Any, seconds: float) -> None:
    producer._sender.wakeup()
    if not result.wait(timeout_ms=1000 * max(0.0, seconds)):
        raise errors.KafkaTimeoutError(f"no answer within {seconds:.0f} s")


def transaction_error(producer: Any) -> BaseException | None:
    """The error that made the transaction of a producer fail; None if it has not failed.

    Defect: the methods of the producer then raise a KafkaError that holds it only as text.
    """
    error: BaseException | None = producer._transaction_manager.last_error
    return error


def discard(producer: Any) -> None:
    """Close a producer in any state, within seconds.

    Defect: `KafkaProducer.close` flushes first, and when that fails returns without closing.
    """
    with contextlib.suppress(errors.KafkaError):
        producer.close(timeout=CLOSE_SECONDS)
    if not producer._closed:
        producer._sender.force_close()
        producer._sender.join(CLOSE_SECONDS)
        with contextlib.suppress(errors.KafkaError):
            producer.close(timeout=0)

"""Opening and closing clients of kafka-python, and checking the settings that a service may choose.

The only module of the client that touches internals of kafka-python. Written for 3.0.12, for these
defects of it:

- `allow_auto_create_topics` of a consumer or producer does not reach its cluster metadata, and a
  constructor that raises leaves its connections open: `connect` passes a client factory (the public
  option `kafka_client`) that sets the one and closes the others.
- `KafkaProducer.close` raises when records are left to send, and leaves the sender thread running:
  `close_producer` stops the thread.
- A record that is too large fails the whole idempotent producer, and the other records fail with a
  general error: `last_error` has the cause.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kafka import errors
from kafka.net.compat import KafkaNetClient
from kafka.util import ensure_valid_topic_name

from streamduel.errors import ClientError, nearest

COMMON: Final[Mapping[str, Any]] = {
    # kafka-python's default waits up to 30 s between two attempts to reconnect, too long after the
    # restart of a broker.
    "reconnect_backoff_max_ms": 2000,
    # An unresponsive broker is noticed after this long: well above the slowest regular answer,
    # a fetch that waits half a second for records.
    "request_timeout_ms": 10_000,
    # A running cluster answers within a second, and opening is retried.
    "bootstrap_timeout_ms": 5000,
    "metrics_enabled": False,  # unused, and they cost time for each record
}

RESERVED: Final = frozenset({"bootstrap_servers", "kafka_client", "metrics_enabled"})
"""Settings that a service cannot choose."""

CLOSE_SECONDS: Final = 1.0
"""A producer with nothing left to send closes in milliseconds."""


class Secret(str):
    """A password for kafka-python, which may write its settings to the debug log."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'**********'"


def client_settings(
    servers: str | Sequence[str],
    topic: str,
    known: Mapping[str, Any],
    fixed: Mapping[str, Any],
    chosen: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The settings of a client of a topic, checked before anything is opened.

    Args:
        servers: `host:port` of one or more brokers, as a list or separated by commas.
        topic: the client's topic.
        known: all settings of this kind of client.
        fixed: the settings that streamduel's guarantees need.
        chosen: the service's settings, by kafka-python's names.

    Raises:
        ClientError: a setting is unknown or fixed, or the topic's name is invalid.
    """
    try:
        ensure_valid_topic_name(topic)
    except (TypeError, ValueError) as error:
        raise ClientError(f"topic {topic!r} cannot be used: {error}.") from None
    chosen = dict(chosen or {})
    for name in chosen:  # without its value, which may be a password
        if name not in known:
            raise ClientError(f"kafka-python has no setting '{name}'{nearest(name, known) or '.'}")
        if name in fixed or name in RESERVED:
            raise ClientError(f"the setting '{name}' of kafka-python cannot be changed here.")
    for name, value in chosen.items():
        if "password" in name and isinstance(value, str):
            chosen[name] = Secret(value)
    if isinstance(servers, str):
        servers = [server.strip() for server in servers.split(",")]
    return {**COMMON, **chosen, **fixed, "bootstrap_servers": list(servers)}


def connect(kind: Callable[..., Any], *topics: str, **settings: Any) -> Any:
    """Open a client, or leave nothing open."""
    opened: list[Any] = []

    def client(**configs: Any) -> Any:
        made = KafkaNetClient(**configs)
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


def close_producer(producer: Any) -> None:
    """Close a producer, also one with records that it cannot send."""
    with contextlib.suppress(errors.KafkaError):
        producer.close(timeout=CLOSE_SECONDS)
    if not producer._closed:
        producer._sender.force_close()
        producer._sender.join(CLOSE_SECONDS)
        with contextlib.suppress(errors.KafkaError):
            producer.close(timeout=0)


def last_error(producer: Any) -> Exception | None:
    """The error that has failed an idempotent producer as a whole, if any."""
    error: Exception | None = producer._transaction_manager.last_error
    return error

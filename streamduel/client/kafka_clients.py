"""Clients of kafka-python: which settings a service may choose, and how they are opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kafka.net.compat import KafkaNetClient
from kafka.util import ensure_valid_topic_name

from streamduel.errors import ClientError, nearest

COMMON: Final[Mapping[str, Any]] = {
    # kafka-python waits up to 30 s between two attempts to reconnect, by its default: as long as
    # that it would not notice that a broker is back.
    "reconnect_backoff_max_ms": 2000,
    # A broker that neither answers nor refuses is noticed after this long: well above the slowest
    # honest answer, since a fetch waits half a second for news.
    "request_timeout_ms": 10_000,
    # A cluster that answers at all answers within a second. Whoever opens us tries again.
    "bootstrap_timeout_ms": 5000,
    "metrics_enabled": False,  # nobody reads them, and each record would pay for them
}

OURS: Final = frozenset({"bootstrap_servers", "kafka_client", "metrics_enabled"})
"""Settings that are never a matter of choice."""


class Secret(str):
    """A password on its way into kafka-python, which may write its settings to the debug log."""

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
    """The settings of a client, checked before anything is opened.

    Args:
        servers: `host:port` of one or more brokers, as a list or with commas between.
        topic: which the client is for.
        known: all settings that a client of this kind has.
        fixed: those on which streamduel's promises rest.
        chosen: what the service wants on top, by kafka-python's names.

    Raises:
        ClientError: a setting is unknown or fixed, or the topic's name is none of Kafka's.
    """
    try:
        ensure_valid_topic_name(topic)
    except (TypeError, ValueError) as error:
        raise ClientError(f"topic {topic!r} cannot be used: {error}.") from None
    chosen = dict(chosen or {})
    for name in chosen:  # never its value: it may be a password
        if name not in known:
            raise ClientError(f"kafka-python has no setting '{name}'{nearest(name, known) or '.'}")
        if name in fixed or name in OURS:
            raise ClientError(f"the setting '{name}' of kafka-python is not to be chosen here.")
    for name, value in chosen.items():
        if "password" in name and isinstance(value, str):
            chosen[name] = Secret(value)
    if isinstance(servers, str):
        servers = [server.strip() for server in servers.split(",")]
    return {**COMMON, **chosen, **fixed, "bootstrap_servers": list(servers)}


def connect(kind: Callable[..., Any], *topics: str, **settings: Any) -> Any:
    """Open a client of this class, or leave nothing open.

    Args:
        kind: `KafkaConsumer` or `KafkaProducer`.
        *topics: to be subscribed to.
        **settings: as `client_settings` makes them.

    Raises:
        KafkaError: the brokers were not reached in time, or did not let us in.
    """
    opened: list[Any] = []

    def client(**configs: Any) -> Any:
        made = KafkaNetClient(**configs)
        # kafka-python 3.0 does not hand its option `allow_auto_create_topics` down to here. A topic
        # that is missing must be refused, not conjured up by the broker with the wrong settings.
        made.cluster.config["allow_auto_create_topics"] = False
        opened.append(made)
        return made

    try:
        return kind(*topics, kafka_client=client, **settings)
    except BaseException:
        for each in opened:  # the constructor does not clean up after itself
            each.close()
        raise

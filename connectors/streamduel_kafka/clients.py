"""Clients of kafka-python: how they are opened, and what their errors mean to us."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kafka import errors
from kafka.net.compat import KafkaNetClient

from streamduel.errors import ConnectorError

log = logging.getLogger(__name__)

# A cluster that answers at all answers within a second; a rolling restart of one that is being
# started together with us takes most of half a minute.
BOOTSTRAP_SECONDS = 30.0

COMMON: dict[str, Any] = {
    # kafka-python waits up to 30 s between two attempts to reconnect, by its default: as long as
    # that it would not notice that a broker is back.
    "reconnect_backoff_max_ms": 2000,
    # A broker that neither answers nor refuses is noticed after this long. Above the slowest
    # honest answer (a fetch waits for news for a moment), below the longest commit.
    "request_timeout_ms": 10_000,
}

# Nobody mends these by waiting.
FATAL = (
    errors.ClusterAuthorizationFailedError,
    errors.FencedInstanceIdError,
    errors.GroupAuthorizationFailedError,
    errors.GroupMaxSizeReachedError,
    errors.IncompatibleBrokerVersion,
    errors.InconsistentGroupProtocolError,
    errors.InvalidSessionTimeoutError,
    errors.InvalidTopicError,
    errors.KafkaConfigurationError,
    errors.LogTruncationError,
    errors.SaslAuthenticationFailedError,
    errors.TopicAuthorizationFailedError,
    errors.TransactionalIdAuthorizationFailedError,
    errors.UnsupportedVersionError,
)


def connect(
    kind: Callable[..., Any],
    settings: dict[str, Any],
    seconds: float = BOOTSTRAP_SECONDS,
    **options: Any,
) -> Any:
    """Open a client of this class, or leave nothing open.

    Raises:
        KafkaError: the brokers were not reached within the seconds, or did not let us in.
    """
    opened: list[Any] = []

    def client(**configs: Any) -> Any:
        made = KafkaNetClient(**configs)
        # kafka-python 3.0 does not hand its option `allow_auto_create_topics` down to here. A topic
        # that is missing must be refused, not conjured up by the broker with the wrong settings.
        made.cluster.config["allow_auto_create_topics"] = False
        opened.append(made)
        return made

    milliseconds = int(1000 * seconds)
    arguments = {**COMMON, **settings, **options, "bootstrap_timeout_ms": milliseconds}
    try:
        return kind(kafka_client=client, **arguments)
    except BaseException:
        for each in opened:  # the constructor does not clean up after itself
            each.close()
        raise


def connect_at_start(
    kind: Callable[..., Any],
    settings: dict[str, Any],
    seconds: float = BOOTSTRAP_SECONDS,
    **options: Any,
) -> Any:
    """The same; a failure is one sentence for the person who starts us.

    Raises:
        ConnectorError: see `connect`.
    """
    try:
        return connect(kind, settings, seconds, **options)
    except (errors.KafkaError, OSError, ValueError) as error:
        raise unreachable(settings, error) from error


def unreachable(settings: dict[str, Any], error: Exception) -> ConnectorError:
    """Why the brokers cannot be used, and what to look at."""
    servers = ",".join(settings["bootstrap_servers"])
    if isinstance(error, errors.SaslAuthenticationFailedError):
        return ConnectorError(
            f"Kafka at {servers} refused the credentials "
            f"(sasl_mechanism {settings.get('sasl_mechanism')}, user "
            f"{settings.get('sasl_plain_username')!r}): {reason(error)}."
        )
    if isinstance(error, errors.KafkaTimeoutError | errors.KafkaConnectionError | OSError):
        return ConnectorError(
            f"Kafka cannot be reached at {servers} ({reason(error)}); check bootstrap_servers and "
            f"security_protocol ({settings['security_protocol']}), and the log of 'kafka'."
        )
    return ConnectorError(f"Kafka at {servers} cannot be used: {reason(error)}.")


def taken() -> ConnectorError:
    """Another process runs under our name."""
    return ConnectorError(
        "another process joined the group under this process's name, and took over its partitions; "
        "give every process its own source.instance, or stop the other one."
    )


def is_fatal(error: BaseException) -> bool:
    """Whether waiting will not mend it."""
    return isinstance(error, FATAL)


def reason(error: BaseException) -> str:
    """The error in a few words, fit for the middle of a sentence."""
    return (str(error) or type(error).__name__).rstrip(".")


def reachable(client: Any) -> bool:
    """Whether a consumer has an established connection to at least one broker at this moment.

    It costs nothing: no request is made. A broker that closes or loses its connections is seen at
    once, one that falls silent after `request_timeout_ms` (a heartbeat or a fetch is always
    waiting for its answer). The metric `connection-count` would not do: it counts attempts too.
    """
    # kafka-python says it nowhere publicly: `bootstrap_connected` is true only while it bootstraps.
    net = client._client
    return any(net.connected(broker.node_id) for broker in net.cluster.brokers())

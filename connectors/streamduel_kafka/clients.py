"""Clients of kafka-python: how they are opened, and what their errors mean to us."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kafka import errors
from kafka.net.compat import KafkaNetClient

from streamduel.errors import ConnectorError

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


# It may be another address, another protocol, or nobody at home.
UNREACHABLE = (
    errors.InvalidReceiveError,
    errors.KafkaConnectionError,
    errors.KafkaTimeoutError,
    OSError,
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

    # KafkaAdminClient 3.0 refuses this one setting, which its own connections understand.
    ciphers = {key: settings[key] for key in ("ssl_ciphers",) if key in settings}
    settings = {key: value for key, value in settings.items() if key not in ciphers}

    def client(**configs: Any) -> Any:
        made = KafkaNetClient(**configs | ciphers)
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
    attempts = _Attempts()
    manager = logging.getLogger("kafka.net.manager")
    manager.addHandler(attempts)
    try:
        return connect(kind, settings, seconds, **options)
    except (errors.KafkaError, OSError, ValueError) as error:
        raise unreachable(settings, attempts.why(error)) from error
    finally:
        manager.removeHandler(attempts)


class _Attempts(logging.Handler):
    """Overhears why the attempts to connect failed; kafka-python says it nowhere but in its log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._failures: list[Exception] = []

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        self._failures += [each for each in arguments if isinstance(each, errors.KafkaError)]

    def why(self, error: Exception) -> Exception:
        """What stands behind the error that kafka-python raised when it gave up."""
        if not isinstance(error, errors.KafkaTimeoutError):
            return error
        # A refused password shows in only some of the attempts, in others as a lost connection.
        causes = [each for each in self._failures if not isinstance(each, errors.KafkaTimeoutError)]
        causes.sort(key=lambda each: not isinstance(each, errors.SaslAuthenticationFailedError))
        return causes[0] if causes else error


def unreachable(settings: dict[str, Any], error: Exception) -> ConnectorError:
    """Why the brokers cannot be used, and what to look at."""
    servers = ",".join(settings["bootstrap_servers"])
    if isinstance(error, errors.SaslAuthenticationFailedError):
        return ConnectorError(
            f"Kafka at {servers} refused the credentials "
            f"(sasl_mechanism {settings.get('sasl_mechanism')}, user "
            f"{settings.get('sasl_plain_username')!r}): {reason(error)}."
        )
    if isinstance(error, UNREACHABLE):
        protocol, user = settings["security_protocol"], settings.get("sasl_plain_username")
        # A connection lost in the middle may be a refused password (see `_Attempts`).
        password = f", and the password of {user!r}" if user else ""
        return ConnectorError(
            f"Kafka cannot be reached at {servers} ({reason(error)}); check bootstrap_servers, "
            f"security_protocol (found {protocol}) with its settings{password}."
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
    if not any(error.args):  # kafka-python's own ways to say nothing: no argument, and None
        return type(error).__name__
    return str(error).rstrip(".")


def reachable(client: Any) -> bool:
    """Whether a consumer has an established connection to at least one broker at this moment.

    It costs nothing: no request is made. A broker that closes or loses its connections is seen at
    once, one that falls silent after `request_timeout_ms` (a heartbeat or a fetch is always
    waiting for its answer). The metric `connection-count` would not do: it counts attempts too.
    """
    # kafka-python says it nowhere publicly: `bootstrap_connected` is true only while it bootstraps.
    net = client._client
    return any(net.connected(broker.node_id) for broker in net.cluster.brokers())

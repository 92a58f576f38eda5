"""Connecting the configured client of Kafka, and classifying its errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import structlog
from kafka import errors

from streamduel.errors import ConnectorError
from streamduel.kafka_rights import refused_credentials
from streamduel_kafka.client import Client, Options

log = structlog.stdlib.get_logger(__name__)

BOOTSTRAP_SECONDS = 30.0
"""A running cluster answers within a second; one that starts at the same time as this process takes
most of half a minute."""

COMMAND_SECONDS = 10.0
"""Timeout of a command for which a person waits, on a cluster that already runs."""

HINT_SECONDS = 2.0
"""A wrong address is reported after this long, although the wait continues."""

# Permanent errors: retrying does not help.
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

# A wrong address, a wrong protocol, or no broker.
UNREACHABLE = (
    errors.InvalidReceiveError,
    errors.KafkaConnectionError,
    errors.KafkaTimeoutError,
    errors.RequestTimedOutError,  # a broker that accepts connections, and does not answer
    OSError,
)


class UnreachableError(ConnectorError):
    """No broker can be used from here, for any topic."""


def chosen(settings: Mapping[str, Any]) -> Any:
    """The client that the settings name, imported now.

    Raises:
        ConnectorError: it is not installed.
    """
    if settings["client"] == "confluent":
        try:
            import streamduel_kafka.confluent as found  # noqa: PLC0415 - only where it is used
        except ImportError as missing:
            raise ConnectorError(
                f"source.client confluent needs a package that is not installed ({missing.name}); "
                "install streamduel[fast], or take kafka-python."
            ) from missing
        return found
    import streamduel_kafka.kafka_python as default  # noqa: PLC0415

    return default


def connect(options: Options[Client], settings: Mapping[str, Any], seconds: float) -> Client:
    """Open the client that these options describe, or leave nothing open.

    Raises:
        KafkaError: the brokers were not reached in time, or refused the client.
        ConnectorError: the client is not installed.
    """
    open_client: Callable[..., Client] = getattr(chosen(settings), options.opener)
    rest = {name: value for name, value in settings.items() if name != "client"}
    return open_client(rest, options, seconds)


def connect_at_start(
    options: Options[Client], settings: Mapping[str, Any], seconds: float = BOOTSTRAP_SECONDS
) -> Client:
    """As `connect`, with an error message for the user who starts the process.

    Raises:
        ConnectorError: see `connect`.
    """
    first = min(seconds, HINT_SECONDS)
    try:
        try:
            return connect(options, settings, first)
        except (errors.KafkaError, OSError, ValueError) as error:
            if seconds == first or not isinstance(error, UNREACHABLE):
                raise
            log.warning(
                "broker not reached", error=str(unreachable(settings, error)),
                advice=f"trying for {seconds - first:.0f} s more",
            )  # fmt: skip
        return connect(options, settings, seconds - first)
    except (errors.KafkaError, OSError, ValueError) as error:
        raise unreachable(settings, error) from error


def unreachable(settings: Mapping[str, Any], error: Exception) -> ConnectorError:
    """The error for brokers that cannot be used, with the settings to check."""
    servers = ",".join(settings["bootstrap_servers"])
    if isinstance(error, errors.SaslAuthenticationFailedError):
        return ConnectorError(refused_credentials(settings, error))
    if isinstance(error, UNREACHABLE):
        protocol, user = settings["security_protocol"], settings.get("sasl_plain_username")
        # A lost connection may be a refused password (see `kafka_python.opening`).
        password = f", the password of {user!r}" if user else ""
        return UnreachableError(
            f"Kafka cannot be reached at {servers} ({reason(error)}); check bootstrap_servers, "
            f"security_protocol (found {protocol}) with its settings{password}, and whether the "
            "brokers' advertised.listeners can be reached from here."
        )
    return ConnectorError(f"Kafka at {servers} cannot be used: {reason(error)}.")


def name_taken() -> ConnectorError:
    """The error for a process whose `source.instance` another process uses too."""
    return ConnectorError(
        "another process joined the group under this process's name, and took over its partitions; "
        "give every process its own source.instance, or stop the other one."
    )


def damaged(topic: str, error: Exception) -> ConnectorError:
    """The error for a batch whose checksum is wrong, which may be right on another replica."""
    return ConnectorError(
        f"topic '{topic}' cannot be read: a batch is damaged ({reason(error)}). Nothing was "
        "skipped. Restart to read it again; if that does not help, let another replica lead the "
        "partition, or delete its records up to the batch (kafka-delete-records.sh)."
    )


def is_fatal(error: BaseException) -> bool:
    """Whether an error is permanent."""
    return isinstance(error, FATAL)


CLOCK: Final = (
    "the clock of this machine must be ahead of the brokers' by at most the topic's "
    "message.timestamp.after.max.ms, an hour by default, and behind it by at most the topic's "
    "message.timestamp.before.max.ms, unlimited by default"
)

LIMITS: Final = {
    "InvalidSessionTimeoutError": (
        "source.session_timeout_ms must be within the brokers' group.min.session.timeout.ms and "
        "group.max.session.timeout.ms"
    ),
    "InvalidTransactionTimeoutError": (
        "sink.transaction_timeout_ms must be at most the brokers' transaction.max.timeout.ms"
    ),
    "InvalidTimestampError": CLOCK,
    # A broker's for a record without a key in a compacted topic; librdkafka's for a timestamp, too.
    "InvalidRecordError": (
        "check that no topic of records without keys, such as that of sink.dead_letters, has "
        f"cleanup.policy=compact; if none has, {CLOCK}"
    ),
}
"""What to change when brokers refuse a setting or a clock, by the error; some errors only quote its
name."""


def reason(error: BaseException) -> str:
    """The error in a few words, to be put into a sentence."""
    # kafka-python raises some without arguments, or with None.
    found = str(error).rstrip(".") if any(error.args) else type(error).__name__
    advice = next((LIMITS[name] for name in LIMITS if name in found), None)
    return found if advice is None else f"{found}; {advice}"

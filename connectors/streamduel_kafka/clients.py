"""Opening clients of kafka-python, and classifying their errors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import structlog
from kafka import errors

from streamduel.errors import ConnectorError
from streamduel_kafka.kafka_python import NetClient

log = structlog.stdlib.get_logger(__name__)

# A running cluster answers within a second; one that starts at the same time as this process takes
# most of half a minute.
BOOTSTRAP_SECONDS = 30.0

# Of a command that a person waits for, on a cluster that runs already.
COMMAND_SECONDS = 10.0

# A wrong address is told after this long, although the wait goes on.
HINT_SECONDS = 2.0

COMMON: dict[str, Any] = {
    # By default kafka-python waits up to 30 s between two attempts to reconnect. For as long it
    # would not notice that a broker is back, or that its partitions have another leader, for which
    # it asks after each attempt. Two attempts a second cost nothing.
    "reconnect_backoff_max_ms": 500,
    # A broker that neither answers nor refuses is noticed after this long. Above the slowest
    # regular answer (a fetch waits for new records), below the longest commit.
    "request_timeout_ms": 10_000,
}

# Of those that read the click log.
CONSUMER: dict[str, Any] = {
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    # An offset that the topic does not hold is an error, see `KafkaSource`: with "earliest"
    # kafka-python would silently read, and count, a recreated topic from its start.
    "auto_offset_reset": "none",
    # Some 3,000 records of a usual click log: about one poll, so that all partitions are fetched
    # from again at once. A single larger record is delivered nevertheless (KIP-74).
    "max_partition_fetch_bytes": 1024 * 1024,
    # Of all partitions together, per broker: what was fetched waits in memory.
    "fetch_max_bytes": 16 * 1024 * 1024,
    # kafka-python has one fetch in flight per broker. A fetch from partitions without new records
    # delays all the others by this: at Kafka's default of half a second, reading fell from 150,000
    # to 40,000 records a second where a fetch held more than a poll takes. Twenty fetches a second
    # cost an idle process 2 % of a core.
    "fetch_max_wait_ms": 50,
    # A topic that was deleted and recreated is noticed by its id, which comes with the metadata.
    "metadata_max_age_ms": 5000,
    "metrics_enabled": False,  # unused, and computed for each fetch
}

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
        KafkaError: the brokers were not reached in time, or refused the client.
    """
    opened: list[Any] = []

    # KafkaAdminClient 3.0 refuses this one setting, which its own connections understand.
    ciphers = {key: settings[key] for key in ("ssl_ciphers",) if key in settings}
    settings = {key: value for key, value in settings.items() if key not in ciphers}

    def client(**configs: Any) -> Any:
        made = NetClient(**configs | ciphers)
        # kafka-python 3.0 does not pass its option `allow_auto_create_topics` on to here. A missing
        # topic must be an error, not created by the broker with the wrong settings.
        made.cluster.config["allow_auto_create_topics"] = False
        opened.append(made)
        return made

    milliseconds = int(1000 * seconds)
    arguments = {**COMMON, **settings, **options, "bootstrap_timeout_ms": milliseconds}
    try:
        return kind(kafka_client=client, **arguments)
    except BaseException:
        for each in opened:  # the constructor leaves them open when it fails
            each.close()
        raise


def connect_at_start(
    kind: Callable[..., Any],
    settings: dict[str, Any],
    seconds: float = BOOTSTRAP_SECONDS,
    **options: Any,
) -> Any:
    """As `connect`, with an error message for the user who starts the process.

    Raises:
        ConnectorError: see `connect`.
    """
    attempts = _Attempts()
    manager = logging.getLogger("kafka.net.manager")
    manager.addHandler(attempts)
    first = min(seconds, HINT_SECONDS)
    try:
        try:
            return connect(kind, settings, first, **options)
        except (errors.KafkaError, OSError, ValueError) as error:
            why = attempts.why(error)
            if seconds == first or not isinstance(why, UNREACHABLE):
                raise unreachable(settings, why) from error
            log.warning(
                "broker not reached", error=str(unreachable(settings, why)),
                advice=f"trying for {seconds - first:.0f} s more",
            )  # fmt: skip
        return connect(kind, settings, seconds - first, **options)
    except (errors.KafkaError, OSError, ValueError) as error:
        raise unreachable(settings, attempts.why(error)) from error
    finally:
        manager.removeHandler(attempts)


class _Attempts(logging.Handler):
    """Collects why connecting failed, which kafka-python writes to its log and nowhere else."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._failures: list[Exception] = []

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        self._failures += [each for each in arguments if isinstance(each, errors.KafkaError)]

    def why(self, error: Exception) -> Exception:
        """The cause of the error that kafka-python raised when it gave up."""
        if not isinstance(error, errors.KafkaTimeoutError):
            return error
        # A refused password is reported in only some attempts, in others as a lost connection.
        causes = [each for each in self._failures if not isinstance(each, errors.KafkaTimeoutError)]
        causes.sort(key=lambda each: not isinstance(each, errors.SaslAuthenticationFailedError))
        return causes[0] if causes else error


def unreachable(settings: dict[str, Any], error: Exception) -> ConnectorError:
    """The error for brokers that cannot be used, with the settings to check."""
    servers = ",".join(settings["bootstrap_servers"])
    if isinstance(error, errors.SaslAuthenticationFailedError):
        return ConnectorError(
            f"Kafka at {servers} refused the credentials "
            f"(sasl_mechanism {settings.get('sasl_mechanism')}, user "
            f"{settings.get('sasl_plain_username')!r}): {reason(error)}."
        )
    if isinstance(error, UNREACHABLE):
        protocol, user = settings["security_protocol"], settings.get("sasl_plain_username")
        # A lost connection may be a refused password (see `_Attempts`).
        password = f", and the password of {user!r}" if user else ""
        return ConnectorError(
            f"Kafka cannot be reached at {servers} ({reason(error)}); check bootstrap_servers, "
            f"security_protocol (found {protocol}) with its settings{password}."
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


def reason(error: BaseException) -> str:
    """The error in a few words, to be put into a sentence."""
    if not any(error.args):  # kafka-python raises some without arguments, or with None
        return type(error).__name__
    return str(error).rstrip(".")

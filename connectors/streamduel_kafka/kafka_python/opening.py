"""Connecting clients of kafka-python."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kafka import errors

from streamduel.kafka_clients import open_client

COMMON: Final[dict[str, Any]] = {
    # By default kafka-python waits up to 30 s between two attempts to reconnect. For as long it
    # would not notice that a broker is back, or that its partitions have another leader, for which
    # it asks after each attempt. Two attempts a second cost nothing.
    "reconnect_backoff_max_ms": 500,
    # A broker that neither answers nor refuses is noticed after this long. Above the slowest
    # regular answer (a fetch waits for new records), below the longest commit.
    "request_timeout_ms": 10_000,
}


def opened(
    kind: Callable[..., Any], settings: Mapping[str, Any], seconds: float, **options: Any
) -> Any:
    """Open a client of this class, or leave nothing open.

    Raises:
        KafkaError: the brokers were not reached in time, or refused the client.
    """
    # KafkaAdminClient 3.0 refuses this one setting, which its own connections understand.
    ciphers = {key: settings[key] for key in ("ssl_ciphers",) if key in settings}
    rest = {key: value for key, value in settings.items() if key not in ciphers}
    milliseconds = int(1000 * seconds)
    arguments = {**COMMON, **rest, **options, "bootstrap_timeout_ms": milliseconds}
    with _attempts() as attempts:
        try:
            return open_client(kind, arguments, of_connections=ciphers)
        except BaseException as error:
            why = attempts.why(error)
            if why is error:
                raise
            raise why from error


class _Attempts(logging.Handler):
    """Collects why connecting failed, which kafka-python writes to its log and nowhere else."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._failures: list[Exception] = []

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        self._failures += [each for each in arguments if isinstance(each, errors.KafkaError)]

    def why(self, error: BaseException) -> BaseException:
        """The cause of the error that kafka-python raised when it gave up."""
        if not isinstance(error, errors.KafkaTimeoutError):
            return error
        # A refused password is reported in only some attempts, in others as a lost connection.
        causes = [each for each in self._failures if not isinstance(each, errors.KafkaTimeoutError)]
        causes.sort(key=lambda each: not isinstance(each, errors.SaslAuthenticationFailedError))
        return causes[0] if causes else error


@contextlib.contextmanager
def _attempts() -> Iterator[_Attempts]:
    attempts = _Attempts()
    manager = logging.getLogger("kafka.net.manager")
    manager.addHandler(attempts)
    try:
        yield attempts
    finally:
        manager.removeHandler(attempts)

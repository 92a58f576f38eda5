"""Errors of librdkafka, translated to the classes of `kafka.errors`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from kafka import errors

# librdkafka's own errors, which are negative; the others are those of the protocol.
OWN: Final[dict[int, type[errors.KafkaError]]] = {
    KafkaError._ALL_BROKERS_DOWN: errors.KafkaConnectionError,
    KafkaError._AUTHENTICATION: errors.SaslAuthenticationFailedError,
    KafkaError._BAD_MSG: errors.CorruptRecordError,
    KafkaError._DESTROY: errors.KafkaConnectionError,
    KafkaError._FENCED: errors.ProducerFencedError,
    KafkaError._INVALID_ARG: errors.KafkaConfigurationError,
    KafkaError._MSG_TIMED_OUT: errors.KafkaTimeoutError,
    KafkaError._RESOLVE: errors.KafkaConnectionError,
    KafkaError._SSL: errors.KafkaConnectionError,
    KafkaError._TIMED_OUT: errors.KafkaTimeoutError,
    KafkaError._TIMED_OUT_QUEUE: errors.KafkaTimeoutError,
    KafkaError._TRANSPORT: errors.KafkaConnectionError,
    KafkaError._UNKNOWN_PARTITION: errors.UnknownTopicOrPartitionError,
    KafkaError._UNKNOWN_TOPIC: errors.UnknownTopicOrPartitionError,
    KafkaError._UNSUPPORTED_FEATURE: errors.UnsupportedVersionError,
}

TRUNCATED: Final = KafkaError(KafkaError._LOG_TRUNCATION).str()
"""Part of the text of `_AUTO_OFFSET_RESET`, which librdkafka also reports for a truncated log."""


class TransientError(errors.KafkaError):  # type: ignore[misc] # kafka-python is untyped
    """An error of librdkafka after which it continues by itself."""

    retriable = True


def translated(error: KafkaError) -> errors.KafkaError:
    """The class for an error's code, with its text."""
    code = error.code()
    kind = OWN.get(code) or (errors.for_code(code) if code > 0 else None)
    if kind is None or issubclass(kind, errors.UnknownError):  # for a code that it does not know
        kind = errors.KafkaError if error.fatal() else TransientError
    return kind(error.str())


@contextlib.contextmanager
def translating() -> Iterator[None]:
    """Raise the errors of librdkafka as classes of `kafka.errors`."""
    try:
        yield
    except KafkaException as error:
        raise translated(error.args[0]) from error
    except SystemError as error:
        # confluent-kafka serves callbacks when it has an exception to raise already; Python refuses
        # that, with this error.
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if not isinstance(cause, KafkaException):
            raise
        raise translated(cause.args[0]) from error

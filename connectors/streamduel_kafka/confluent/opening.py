"""Settings and the first connection of clients of confluent-kafka."""

from __future__ import annotations

import itertools
import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from kafka import errors

from streamduel_kafka.confluent.failures import translated, translating

# librdkafka's names of this connector's settings, which have kafka-python's names.
NAMES: Final = {
    "security_protocol": "security.protocol",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_crlfile": "ssl.crl.location",
    "ssl_ciphers": "ssl.cipher.suites",
    "ssl_password": "ssl.key.password",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
    "sasl_kerberos_service_name": "sasl.kerberos.service.name",
}

SOCKET_MS: Final = 10_000
"""A broker that does not answer is noticed after this long."""

COMMON: Final[dict[str, Any]] = {
    # As with kafka-python: a broker that is back, and a new leader, are noticed soon.
    "reconnect.backoff.max.ms": 500,
    "socket.timeout.ms": SOCKET_MS,
    "socket.nagle.disable": True,
    "allow.auto.create.topics": False,
    # Its lines repeat, without limit, what it reports to `Errors`.
    "log_level": 2,
}

TRY_SECONDS: Final = 0.25
"""The time until the first check why the brokers are not reached, and the first request's timeout.
Both double each time: on a slow network an answer takes longer, and librdkafka drops a late one."""

NO_TOPIC: Final = "."
"""A name that no topic can have: every broker can answer a request for it in a few bytes."""

REFUSAL: Final = re.compile(r"\balert\b|certificate")
"""In errors of TLS: a broker refused the certificate of this process, or this process that of a
broker."""

# librdkafka's lines; quiet wherever kafka-python's are.
log = logging.getLogger("kafka.librdkafka")


def _warn_at_most(record: logging.LogRecord) -> bool:
    """Lower a line to a warning: a fatal error ends one client, which is replaced, no process."""
    if record.levelno > logging.WARNING:
        record.levelno, record.levelname = logging.WARNING, "WARNING"
    return True


log.addFilter(_warn_at_most)


class Errors:
    """Errors that librdkafka reports beside the calls.

    A fatal one is not among them: the call in which librdkafka reports it raises it.

    Attributes:
        refused: one that says why the brokers were not reached.
        denied: one that a new process may not have: librdkafka reads passwords and certificates
            only when it is opened.
        unreceived: whether an answer was not received, because it is larger than allowed.
    """

    def __init__(self) -> None:
        self.refused: errors.KafkaError | None = None
        self.denied: errors.KafkaError | None = None
        self.unreceived = False

    def __call__(self, error: KafkaError) -> None:
        """Called by librdkafka, within calls of the client."""
        found, text = translated(error), error.str()
        # Lines of different texts are no repeats of each other, and the rest is a time.
        log.warning(text.partition(" (after ")[0])
        if isinstance(found, errors.SaslAuthenticationFailedError):
            self.denied = found
        elif REFUSAL.search(text):
            self.denied = errors.KafkaConfigurationError(text)
        self.unreceived |= error.code() == KafkaError._BAD_MSG
        if error.code() != KafkaError._ALL_BROKERS_DOWN and not isinstance(
            self.refused, errors.SaslAuthenticationFailedError
        ):
            self.refused = found


def configuration(settings: Mapping[str, Any], heard: Errors, **more: Any) -> dict[str, Any]:
    """The configuration of librdkafka, from the settings of this connector."""
    made = {**COMMON, "bootstrap.servers": ",".join(settings["bootstrap_servers"])}
    made |= {ours: settings[name] for name, ours in NAMES.items() if name in settings}
    if not settings.get("ssl_check_hostname", True):
        made["ssl.endpoint.identification.algorithm"] = "none"
    return made | more | {"error_cb": heard, "logger": log}


def await_cluster(client: Any, heard: Errors, seconds: float, serve: Callable[[], object]) -> None:
    """Wait for the first answer of a broker.

    Args:
        client: of any kind.
        heard: what it reports.
        seconds: for which to wait.
        serve: lets the client report errors.

    Raises:
        KafkaError: why there is none.
    """
    deadline = time.monotonic() + seconds
    for tries in itertools.count():
        rest = max(0.0, deadline - time.monotonic())
        try:
            client.list_topics(NO_TOPIC, timeout=max(0.001, min(TRY_SECONDS * 2**tries, rest)))
        except KafkaException as error:
            log.debug("no answer: %s", error)
        else:
            return
        with translating():
            serve()
        if isinstance(heard.refused, errors.SaslAuthenticationFailedError):
            raise heard.refused
        if rest <= 0:
            raise heard.refused or errors.KafkaTimeoutError(f"no answer within {seconds:.0f} s")

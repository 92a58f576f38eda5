import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from kafka import errors

from streamduel.client import Assignments, ClientError, EventLog
from streamduel.client.kafka import KafkaFeed, KafkaWriter
from tests.unit.client.bed import PATIENCE

Opened = Callable[..., Any]
WAYS: list[Opened] = [Assignments.from_kafka, EventLog.to_kafka]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("topic", "kafka", "sentence"),
    [
        (
            "clicks",
            {"sasl_plain_pasword": "s3cret"},
            "kafka-python has no setting 'sasl_plain_pasword'; did you mean 'sasl_plain_password'?",
        ),
        ("clicks", {"zzz": "s3cret"}, "kafka-python has no setting 'zzz'."),
        (
            "clicks",
            {"metrics_enabled": True},
            "the setting 'metrics_enabled' of kafka-python cannot be changed here.",
        ),
        (
            "clicks",
            {"security_protocol": "sasl_ssl", "sasl_mechanism": "PLAIN"},
            "security_protocol must be PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL (found "
            "'sasl_ssl').",
        ),
        (
            "clicks",
            {"security_protocol": "SASL_SSL"},
            "security_protocol SASL_SSL needs sasl_mechanism.",
        ),
        (
            "clicks",
            {"request_timeout_ms": "soon"},
            "request_timeout_ms must be a number (found 'soon').",
        ),
        (
            "clicks",
            {"request_timeout_ms": True},
            "request_timeout_ms must be a number (found True).",
        ),
        (
            "clicks",
            {"ssl_check_hostname": 0},
            "ssl_check_hostname must be true or false (found 0).",
        ),
        ("clicks", {"client_dns_lookup": 5}, "client_dns_lookup must be a text (found 5)."),
        ("clicks", {"client_id": 5}, "client_id must be a text (found 5)."),
        (
            "clicks",
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA512"},
            "sasl_mechanism must be AWS_MSK_IAM, GSSAPI, OAUTHBEARER, PLAIN, SCRAM-SHA-256 or "
            "SCRAM-SHA-512 (found 'SCRAM-SHA512').",
        ),
        (
            "clicks",
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "PLAIN",
                "sasl_plain_username": "me",
                "sasl_plain_password": None,
            },
            "sasl_mechanism PLAIN needs sasl_plain_password, a text.",
        ),
        (
            "clicks",
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-256"},
            "sasl_mechanism SCRAM-SHA-256 needs sasl_plain_username, a text.",
        ),
        ("clicks", "client_id=me", "kafka must be a dict of settings (found str)."),
        ("", {}, "topic '' cannot be used: All topics must be non-empty strings."),
        (None, {}, "topic None cannot be used: All topics must not be None."),
    ],
)
def test_settings_are_checked_before_anything_is_opened(
    way: Opened, topic: str, kafka: Any, sentence: str
) -> None:
    with pytest.raises(ClientError) as refused:
        way("nowhere:9092", topic, kafka=kafka)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("way", "kafka", "sentence"),
    [
        (
            KafkaFeed,
            {"request_timeout_ms": 540_000},
            "request_timeout_ms must be less than connections_max_idle_ms, 540000 (found 540000).",
        ),
        (
            KafkaFeed,
            {"connections_max_idle_ms": 1000},
            "request_timeout_ms must be less than connections_max_idle_ms, 1000 (found 10000).",
        ),
        (
            KafkaFeed,
            {"fetch_max_wait_ms": 10_000},
            "fetch_max_wait_ms must be less than request_timeout_ms, 10000 (found 10000).",
        ),
        *[
            (
                KafkaFeed,
                {"max_poll_records": found},
                f"max_poll_records must be an integer of at least 1 (found {found}).",
            )
            for found in (0, 1.5)
        ],
        (KafkaWriter, {"retries": 0}, "retries must be at least 1 (found 0)."),
        *[
            (
                KafkaWriter,
                {"max_in_flight_requests_per_connection": found},
                f"max_in_flight_requests_per_connection must be between 1 and 5 (found {found}).",
            )
            for found in (0, 6)
        ],
        (
            KafkaWriter,
            {"linger_ms": 20_001},
            "linger_ms and request_timeout_ms together must be at most 30000 "
            "(found 20001 and 10000).",
        ),
        (
            KafkaWriter,
            {"compression_type": "brotli"},
            "compression_type must be gzip, snappy, lz4 or zstd (found 'brotli').",
        ),
    ],
)
def test_values_are_refused_that_kafka_python_refuses_once_connected(
    way: Opened, kafka: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ClientError) as refused:
        way("nowhere:9092", "clicks", kafka)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("way", "kafka"),
    [
        (KafkaFeed, {"request_timeout_ms": 539_999}),
        (KafkaFeed, {"fetch_max_wait_ms": 9999, "max_poll_records": 1}),
        (KafkaWriter, {"retries": 1, "max_in_flight_requests_per_connection": 1}),
        (KafkaWriter, {"max_in_flight_requests_per_connection": 5, "linger_ms": 20_000}),
        (KafkaWriter, {"client_id": None, "compression_type": None}),
        *[(KafkaWriter, {"compression_type": name}) for name in ("gzip", "snappy", "lz4", "zstd")],
    ],
)
def test_values_at_their_limits_are_accepted(way: Opened, kafka: dict[str, Any]) -> None:
    assert way("nowhere:9092", "clicks", kafka)._settings.items() >= kafka.items()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("servers", "found"),
    [
        ("", "none"),
        ([], "none"),
        (["", " "], "none"),
        ("k-1:9092,k-2:port", "'k-2:port'"),
        (5, "5"),
        (None, "None"),
        (["k-1", 5], "['k-1', 5]"),
    ],
)
def test_servers_are_checked_before_anything_is_opened(
    way: Opened, servers: Any, found: str
) -> None:
    with pytest.raises(ClientError) as refused:
        way(servers)
    assert str(refused.value) == (
        f"bootstrap_servers must have host:port of one or more brokers (found {found})."
    )


@pytest.mark.parametrize("servers", ["k-1", "k-1:9092, k-2,", "[::1]:9092", "::1", ["k-1"]])
def test_servers_have_any_form_of_kafka_python(servers: str | list[str]) -> None:
    assert all(KafkaFeed(servers, "t")._settings["bootstrap_servers"])


@pytest.mark.parametrize(
    ("way", "name"),
    [
        (KafkaFeed, "isolation_level"), (KafkaFeed, "group_id"), (KafkaFeed, "auto_offset_reset"),
        (KafkaWriter, "acks"), (KafkaWriter, "enable_idempotence"), (KafkaWriter, "partitioner"),
        (KafkaWriter, "transactional_id"), (KafkaWriter, "bootstrap_servers"),
    ],
)  # fmt: skip
def test_settings_of_the_guarantees_cannot_be_changed(way: Opened, name: str) -> None:
    with pytest.raises(ClientError, match=f"^the setting '{name}' of kafka-python cannot"):
        way("nowhere:9092", "clicks", {name: "x"})


def test_other_settings_can_be_chosen() -> None:
    feed = KafkaFeed(["a:1", "b:2"], "t", {"request_timeout_ms": 9000, "client_id": "me"})
    assert str(feed) == "topic 't'"
    assert feed._settings["request_timeout_ms"] == 9000
    assert feed._settings["client_id"] == "me"
    assert feed._settings["bootstrap_servers"] == ["a:1", "b:2"]
    assert feed._settings["isolation_level"] == "read_committed"
    writer = KafkaWriter("a:1, b:2", "t", {"compression_type": "gzip"})
    assert writer._settings["bootstrap_servers"] == ["a:1", "b:2"]
    assert writer._settings["compression_type"] == "gzip"
    assert writer._settings["acks"] == "all"


def test_passwords_are_hidden_in_repr() -> None:
    chosen = {"sasl_plain_password": "s3cret", "ssl_password": None, "sasl_plain_username": "ada"}
    settings = KafkaWriter("a:1", "t", chosen)._settings
    assert settings["sasl_plain_password"] == "s3cret"
    assert "s3cret" not in repr(settings)
    assert "ada" in repr(settings)
    assert repr(settings["sasl_plain_password"]) == "'**********'"
    assert chosen["sasl_plain_password"].__class__ is str  # the caller's value is unchanged


@pytest.mark.parametrize("way", WAYS)
def test_without_kafka_python_the_error_names_the_extra(
    way: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "streamduel.client.kafka", None)
    with pytest.raises(ClientError, match=r"needs? kafka-python; install streamduel-client"):
        way("nowhere:9092")


AWAY = """
import logging, sys
from kafka import errors
from streamduel.client.kafka import KafkaFeed

logging.basicConfig(level=logging.DEBUG)
feed = KafkaFeed(sys.argv[1], "assignments", {
    "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_plain_username": "ada",
    "sasl_plain_password": "s3cret", "bootstrap_timeout_ms": 300,
})
try:
    feed.poll()
except errors.KafkaError as error:
    print(feed._consumer, repr(error))
feed.close()
"""


def test_an_unreachable_broker_is_logged_without_the_password() -> None:
    # A process of its own: kafka-python leaves a refused socket to the garbage collector.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # without listening
        servers = f"127.0.0.1:{taken.getsockname()[1]}"
        ran = subprocess.run(
            [sys.executable, "-c", AWAY, servers], capture_output=True, text=True, timeout=PATIENCE
        )
    assert ran.stdout.startswith("None KafkaTimeoutError("), ran.stderr
    assert servers in ran.stderr  # the debug log
    assert "s3cret" not in ran.stdout + ran.stderr


def test_a_service_starts_while_kafka_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise errors.KafkaTimeoutError("nobody at home")

    monkeypatch.setattr("streamduel.client.kafka.open_client", refuse)
    with (
        Assignments.from_kafka("nowhere:9092", defaults={"search": "bm25"}) as assignments,
        EventLog.to_kafka("nowhere:9092") as log,
    ):
        assert assignments.draw("search").a == "bm25"
        log.duel("search", "bm25", "bm25", None)
        assert log.waiting == 1
        log.close(timeout=0)
    assert log.dropped == 1
    assert not assignments.wait_for("search", timeout=0)


class Stuck:
    """A producer with a record that it cannot send."""

    def __init__(self) -> None:
        self._closed = False
        self._sender = self
        self.calls: list[str] = []

    def close(self, timeout: float) -> None:
        self.calls.append(f"close {timeout:.0f}")
        if "force" not in self.calls:
            raise errors.KafkaTimeoutError("something is left")
        self._closed = True

    def force_close(self) -> None:
        self.calls.append("force")

    def join(self, timeout: float) -> None:
        self.calls.append(f"join {timeout:.0f}")


def test_a_producer_with_unsent_records_is_closed() -> None:
    writer = KafkaWriter("a:1", "clicks")
    writer._producer = producer = Stuck()
    writer.close()
    assert producer.calls == ["close 1", "force", "join 1", "close 0"]
    assert writer._producer is None

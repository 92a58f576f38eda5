"""Mistakes in the settings of the Kafka connector, and in those that depend on its topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamduel.config import load
from tests.unit.config.configurations import GONE, KAFKA, changed, written
from tests.unit.config.sentences import case, told

FILES = {"connector": "files", "path": "here"}
TOPIC = "a string of 1 to 249 characters that matches ^[A-Za-z0-9._-]+$"

KAFKA_MISTAKES: list[tuple[str, Any, str]] = [
    ("source.topic", GONE,
     "source.topic is missing: the click log's topic; a record's key is its experiment's name."),
    ("source.topic", "my clicks", f"source.topic must be {TOPIC} (found 'my clicks')."),
    *(
        (key, topic,
         f"{key} must not be '.' or '..', which Kafka does not allow (found '{topic}').")
        for key, topic in (("source.topic", "."), ("sink.dead_letters", ".."))
    ),
    ("spark", {"topic": "..", "checkpoint": "c"},
     "spark.topic must not be '.' or '..', which Kafka does not allow (found '..')."),
    *(
        ("source.bootstrap_servers", ["good:9092", server],
         "source.bootstrap_servers[1] must be host:port with a port from 1 to 65535 (found"
         f" '{server}').")
        for server in (
            "127.0.0.1:x", "h:0", "h:65536", "h:", ":9092", "a:1;b:2", "h:9092/path", "[::1", "a b",
        )
    ),
    ("snapshots.topic", "", f"snapshots.topic must be {TOPIC} (found '')."),
    ("source.ssl_cafile", "nowhere.pem", "source.ssl_cafile: there is no file HERE/nowhere.pem."),
    ("source.ssl_cafile", "a\nb.pem", "source.ssl_cafile: there is no file HERE/a\\nb.pem."),
    ("source.ssl_cafile", "x" * 300,
     f"source.ssl_cafile: the file HERE/{'x' * 300} cannot be read: File name too long."),
    ("source.sasl_mechanism", GONE, "source: security_protocol SASL_SSL needs sasl_mechanism."),
    ("source.sasl_plain_username", GONE,
     "source: sasl_mechanism PLAIN needs sasl_plain_username."),
    ("source.security_protocol", "SASL_SLL",
     "source.security_protocol must be 'PLAINTEXT', 'SSL', 'SASL_PLAINTEXT' or 'SASL_SSL' "
     "(found 'SASL_SLL'); did you mean 'SASL_SSL'?"),
    ("source.replication_factor", 0,
     "source: replication_factor must be at least 1, or -1 (found 0)."),
    ("source.replication_factor", float("nan"),
     "source.replication_factor must be an integer from -1 to 32767 (found nan)."),
    ("source.create_topics", "maybe",
     "source.create_topics must be true or false (found 'maybe')."),
    ("source.create_topics", "yes", "source.create_topics must be true or false (found 'yes')."),
    ("source.ssl_check_hostname", 1,
     "source.ssl_check_hostname must be true or false (found 1)."),
    ("source.partitions", True,
     "source.partitions must be an integer from 1 to 2147483647 (found true)."),
    ("source.partitions", 2**31,
     "source.partitions must be an integer from 1 to 2147483647 (found 2147483648)."),
    ("source.max_poll_records", "5",
     "source.max_poll_records must be an integer from 1 to 2147483647 (found '5')."),
    ("source.session_timeout_ms", 5.0,
     "source.session_timeout_ms must be an integer from 3 to 2147483647 (found 5.0)."),
    ("source.session_timeout_ms", 2,
     "source.session_timeout_ms must be an integer from 3 to 2147483647 (found 2)."),
    ("sink.assignments", "clicks",
     "sink.assignments must be another topic than source.topic (found 'clicks')."),
    ("sink.dead_letters", "clicks",
     "sink.dead_letters must be another topic than source.topic (found 'clicks')."),
    ("sink.dead_letters", "a",
     "sink.dead_letters must be another topic than sink.assignments (found 'a')."),
    ("source.control_topic", "s",
     "snapshots.topic must be another topic than source.control_topic (found 's')."),
    *(
        ("spark", {"topic": topic, "checkpoint": "c"},
         f"spark.topic must be another topic than {key} (found '{topic}').")
        for topic, key in (
            ("clicks", "source.topic"), ("a", "sink.assignments"), ("d", "sink.dead_letters"),
            ("s", "snapshots.topic"),
        )
    ),
    ("sink.bootstrap_servers", ["other:9092"],
     "sink.bootstrap_servers must be the same as source.bootstrap_servers, or be left out: input, "
     "outputs and snapshots share one commit."),
]  # fmt: skip

SPARK_MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"source.control_topic": "raw"},
     "spark.topic must be another topic than source.control_topic (found 'raw')."),
    ({"source": FILES, **{f"{it}.bootstrap_servers": "b:1" for it in ("sink", "snapshots")}},
     "source.connector must be 'kafka' for streamduel-spark (found 'files')."),
    ({"sink": FILES, "snapshots": FILES},
     "sink.connector must be 'kafka' for streamduel-spark (found 'files')."),
    ({"source.format": "ubi"},
     "source.format must be left out for streamduel-spark: it reads and writes streamduel's own"
     " records."),
    ({"source.sasl_mechanism": "GSSAPI"},
     "source.sasl_mechanism must be 'PLAIN', 'SCRAM-SHA-256' or 'SCRAM-SHA-512' for"
     " streamduel-spark (found 'GSSAPI')."),
    ({"source.ssl_crlfile": "crl.pem"},
     "source.ssl_crlfile must be left out for streamduel-spark: Spark's Kafka client has no"
     " equivalent."),
    ({"source.ssl_ciphers": "HIGH"},
     "source.ssl_ciphers must be left out for streamduel-spark: Spark's Kafka client has no"
     " equivalent."),
    ({"experiments.search.max_per_client": 3},
     "experiments.search.max_per_client must be null for streamduel-spark (found 3): counts of"
     " duels have no client."),
]  # fmt: skip


@pytest.mark.parametrize(("where", "value", "sentence"), KAFKA_MISTAKES, ids=case)
def test_a_connectors_mistake_is_one_sentence(
    where: str, value: Any, sentence: str, tmp_path: Path
) -> None:
    """Also where sink and snapshots have taken the mistake from the source."""
    assert told(tmp_path / "kafka.yaml", written(changed({where: value}, KAFKA))) == [sentence]


@pytest.mark.parametrize(("changes", "sentence"), SPARK_MISTAKES, ids=case)
def test_what_the_spark_job_cannot_do_is_refused_before_it_starts(
    changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "crl.pem").touch()
    spark = {"topic": "raw", "checkpoint": "c"}
    document = changed(changes, KAFKA)
    path = tmp_path / "kafka.yaml"
    path.write_text(written(document))
    load(path, {})  # the service alone can
    assert told(path, written(document | {"spark": spark})) == [sentence]


@pytest.mark.parametrize(
    ("section", "key", "most"),
    [
        ("source", "session_timeout_ms", 3_600_000),
        ("source", "max_poll_interval_ms", 86_400_000),
        ("sink", "transaction_timeout_ms", 2_147_483_547),
    ],
)
def test_librdkafka_has_bounds_of_its_own(
    section: str, key: str, most: int, tmp_path: Path
) -> None:
    path, patient = tmp_path / "kafka.yaml", {"source.max_poll_interval_ms": 86_400_000}
    for client, value in (("confluent", most), ("kafka-python", most + 1)):
        right = {**patient, "source.client": client, f"{section}.{key}": value}
        path.write_text(written(changed(right, KAFKA)))
        load(path, {})
    wrong = {**patient, "source.client": "confluent", f"{section}.{key}": most + 1}
    assert told(path, written(changed(wrong, KAFKA))) == [
        f"{section}: {key} must be at most {most} with client confluent (found {most + 1})."
    ]


@pytest.mark.parametrize(
    "server", ["h", "h:1", "127.0.0.1:65535", "a_b.c:9", "::1", "[::1]", "[::1]:9092", "SSL://h:9"]
)
def test_a_server_may_be_written_in_every_way_that_clients_know(
    server: str, tmp_path: Path
) -> None:
    path = tmp_path / "kafka.yaml"
    path.write_text(written(changed({"source.bootstrap_servers": f"one:1, {server}"}, KAFKA)))
    source: Any = load(path, {}).source
    assert source.bootstrap_servers == ["one:1", server]


@pytest.mark.parametrize(
    ("secret", "sentence"),
    [
        ("hunter2", ": there is no file of this name; give the name of a file, not its content."),
        (f"-----BEGIN PRIVATE KEY-----\n{'hunter2' * 99}\n",
         ": the file of this name cannot be read: File name too long; give the name of a file, not "
         "its content."),
        (20260102, " must be a path, or null (found a secret)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "key", ["sasl_plain_password_file", "ssl_password_file", "ssl_keyfile", "ssl_certfile"]
)
def test_a_secret_instead_of_the_name_of_its_file_is_not_shown(
    key: str, secret: str | int, sentence: str, tmp_path: Path
) -> None:
    changes = {f"source.{key}": secret, "source.sasl_plain_password": GONE}
    [found] = told(tmp_path / "kafka.yaml", written(changed(changes, KAFKA)))
    assert found.startswith(f"source.{key}{sentence}")
    assert str(secret) not in found

"""Mistakes in the settings of the Kafka connector, and in those that depend on its topics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamduel.config import load
from tests.unit.config.configurations import GONE, KAFKA, changed, written
from tests.unit.config.mistakes import KAFKA_MISTAKES
from tests.unit.config.sentences import case, told

FILES = {"connector": "files", "path": "here"}

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

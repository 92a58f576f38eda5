"""The settings of streamduel's Kafka connector, as Spark's Kafka source takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamduel_kafka.settings import SourceSettings
from streamduel_spark.kafka_options import kafka_options


def options(folder: Path, **settings: Any) -> dict[str, str]:
    source = {"bootstrap_servers": "a:1,b:2", "topic": "duels", "group": "g", **settings}
    return kafka_options(
        SourceSettings.model_validate(source, context={"directory": folder}), "raw"
    )


def test_without_security(tmp_path: Path) -> None:
    assert options(tmp_path) == {
        "subscribe": "raw",
        "startingOffsets": "earliest",
        "groupIdPrefix": "g-spark",
        "kafka.bootstrap.servers": "a:1,b:2",
        "kafka.isolation.level": "read_committed",
        "kafka.max.poll.records": "50",
        "kafka.security.protocol": "PLAINTEXT",
    }


def test_certificates_are_passed_as_text(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / f"{name}.pem").write_text(f"text of {name}")
    found = options(
        tmp_path, security_protocol="SSL", ssl_cafile="ca.pem", ssl_certfile="cert.pem",
        ssl_keyfile="key.pem", ssl_password="secret", ssl_check_hostname=False,
    )  # fmt: skip
    assert {key: value for key, value in found.items() if ".ssl." in key} == {
        "kafka.ssl.endpoint.identification.algorithm": "",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "text of ca",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "text of cert",
        "kafka.ssl.keystore.key": "text of key",
        "kafka.ssl.key.password": "secret",
    }


def test_a_password_is_quoted(tmp_path: Path) -> None:
    found = options(
        tmp_path, security_protocol="SASL_SSL", sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username="u", sasl_plain_password='p"w\\;',
    )  # fmt: skip
    assert found["kafka.sasl.mechanism"] == "SCRAM-SHA-512"
    assert found["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="u" password="p\\"w\\\\;";'
    )

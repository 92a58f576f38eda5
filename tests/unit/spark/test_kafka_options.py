"""The settings of streamduel's Kafka connector, as Spark's Kafka source takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from streamduel.errors import ConfigurationError
from streamduel_kafka.settings import Security, SourceSettings
from streamduel_spark.kafka_options import kafka_options

APART = {
    # Read into the passwords.
    "ssl_password_file", "sasl_plain_password_file",
    # Refused with a section `spark`.
    "ssl_crlfile", "ssl_ciphers",
    # Of GSSAPI, which is refused with a section `spark`.
    "sasl_kerberos_name", "sasl_kerberos_service_name", "sasl_kerberos_domain_name",
}  # fmt: skip


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


@pytest.mark.parametrize("kind", ["RSA ", "EC "])
@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("ssl_keyfile", {"ssl_certfile": "ca.pem", "ssl_keyfile": "key.pem"}),
        ("ssl_certfile", {"ssl_certfile": "key.pem"}),
    ],
)
def test_a_key_that_java_cannot_read_is_refused(
    kind: str, name: str, files: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    key = tmp_path / "key.pem"
    key.write_text(f"-----BEGIN {kind}PRIVATE KEY-----\n")
    with pytest.raises(ConfigurationError) as refused:
        options(tmp_path, security_protocol="SSL", **files)
    assert str(refused.value) == (
        f"source.{name} has a key that Java cannot read ('BEGIN {kind}PRIVATE KEY'); convert it"
        f" with 'openssl pkcs8 -topk8 -nocrypt -in {key} -out key.pem', and name key.pem"
        " in source.ssl_keyfile, without source.ssl_password."
    )


@pytest.mark.parametrize("name", ["ssl_cafile", "ssl_certfile", "ssl_keyfile"])
@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("binary.der", "is not text; it must be PEM."),
        ("/proc/self/mem", "cannot be read: Input/output error."),
    ],
)
def test_a_certificate_or_key_that_is_no_text_is_named(
    name: str, file: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "binary.der").write_bytes(b"0\x82\x03\x8f")
    (tmp_path / "cert.pem").touch()
    files = {"ssl_certfile": "cert.pem", name: file}
    with pytest.raises(ConfigurationError) as refused:
        options(tmp_path, security_protocol="SSL", **files)
    assert str(refused.value) == f"source.{name} {tmp_path / file} {problem}"


@pytest.mark.parametrize("kind", ["", "ENCRYPTED "])
def test_a_key_in_pkcs_8_is_passed_on(kind: str, tmp_path: Path) -> None:
    text = f"-----BEGIN {kind}PRIVATE KEY-----\n"
    (tmp_path / "key.pem").write_text(text)
    found = options(tmp_path, security_protocol="SSL", ssl_certfile="key.pem")
    assert found["kafka.ssl.keystore.key"] == text


@pytest.mark.parametrize(
    ("mechanism", "module", "password", "quoted"),
    [
        ("SCRAM-SHA-512", "scram.ScramLoginModule", 'p"w\\;', 'p\\"w\\\\;'),
        ("PLAIN", "plain.PlainLoginModule", "p", "p"),
    ],
)
def test_a_login_has_the_module_of_its_mechanism_and_a_quoted_password(
    tmp_path: Path, mechanism: str, module: str, password: str, quoted: str
) -> None:
    found = options(
        tmp_path, security_protocol="SASL_SSL", sasl_mechanism=mechanism,
        sasl_plain_username="u", sasl_plain_password=password,
    )  # fmt: skip
    assert found["kafka.sasl.mechanism"] == mechanism
    assert found["kafka.sasl.jaas.config"] == (
        f'org.apache.kafka.common.security.{module} required username="u" password="{quoted}";'
    )


def another(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, Path):
        return value.with_name("other.pem")
    return SecretStr("other") if isinstance(value, SecretStr) else "other"


def test_every_setting_of_security_is_passed_on(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key", "other"):
        (tmp_path / f"{name}.pem").write_text(f"text of {name}")
    source = SourceSettings.model_validate(
        {
            "bootstrap_servers": "a:1", "topic": "duels", "group": "g",
            "security_protocol": "SASL_SSL", "ssl_cafile": "ca.pem", "ssl_certfile": "cert.pem",
            "ssl_keyfile": "key.pem", "ssl_password": "word", "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "u", "sasl_plain_password": "word",
        },
        context={"directory": tmp_path},
    )  # fmt: skip
    before, ignored = kafka_options(source, "raw"), set()
    for name in Security.model_fields:
        changed = source.model_copy(update={name: another(getattr(source, name))})
        if kafka_options(changed, "raw") == before:
            ignored.add(name)
    assert ignored == APART

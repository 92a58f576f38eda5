"""The settings, which never show a password."""

import logging
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from pydantic import ValidationError

from streamduel.errors import ConnectorError
from streamduel_kafka import connector
from streamduel_kafka.client import AdminOptions
from streamduel_kafka.connecting import connect_at_start
from streamduel_kafka.settings import SinkSettings, SnapshotSettings, SourceSettings

BASE = {"connector": "kafka", "bootstrap_servers": "a:1, b:2", "topic": "clicks", "group": "g"}
SASL: dict[str, Any] = {
    "security_protocol": "SASL_SSL",
    "sasl_mechanism": "SCRAM-SHA-512",
    "sasl_plain_username": "ada",
    "sasl_plain_password": "correct horse",
}


def source(directory: Path | None = None, **more: object) -> SourceSettings:
    context = {"directory": directory} if directory else None
    return SourceSettings.model_validate(BASE | more, context=context)


def test_servers_are_a_list_or_a_string() -> None:
    assert source().bootstrap_servers == ["a:1", "b:2"]
    assert source(bootstrap_servers=["a:1"]).bootstrap_servers == ["a:1"]


def test_client_settings_have_names_of_kafka_python(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    settings = source(tmp_path, **SASL, ssl_cafile="ca.pem", ssl_check_hostname=False)
    client = settings.client_settings
    assert client["ssl_cafile"] == str(tmp_path / "ca.pem")
    assert client["sasl_plain_password"] == "correct horse"
    assert client["ssl_check_hostname"] is False
    assert "sasl_plain_password_file" not in client
    assert set(client) - {"client"} <= set(KafkaAdminClient.DEFAULT_CONFIG)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_password_file_is_relative_to_the_configuration(
    tmp_path: Path, mark: str, ending: str
) -> None:
    (tmp_path / "word").write_text(f"{mark} secret {ending}", encoding="utf-8", newline="")
    more = {**SASL, "sasl_plain_password": None, "sasl_plain_password_file": "word"}
    settings = source(tmp_path, **more)
    assert settings.client_settings["sasl_plain_password"] == " secret "
    assert "secret" not in repr(settings)


@pytest.mark.parametrize("unquoted", [12345, 7, True])
def test_a_password_must_be_a_string(unquoted: object) -> None:
    with pytest.raises(ValidationError) as caught:
        source(**SASL | {"sasl_plain_password": unquoted})
    assert str(unquoted) not in str(caught.value).replace("1 validation error", "")


def test_no_password_in_messages_and_logs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    settings = source(**SASL, ssl_password="battery staple")
    settings = settings.model_copy(update={"bootstrap_servers": ["127.0.0.1:1"]})
    with pytest.raises(ConnectorError) as caught:
        connect_at_start(AdminOptions(), settings.client_settings, seconds=0.3)
    texts = [repr(settings), str(settings), settings.model_dump_json(), str(caught.value)]
    texts += [repr(settings.client_settings), caplog.text]
    assert "KafkaAdminClient with configuration" in caplog.text
    for text in texts:
        assert "horse" not in text
        assert "staple" not in text


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tpic": "x"}, "Extra inputs"),
        ({"topic": "not valid"}, "should match pattern"),
        ({"bootstrap_servers": []}, "at least 1"),
        ({"replication_factor": 0}, "at least 1, or -1"),
        ({"instance": "a b"}, "should match pattern"),
        ({"security_protocol": "TLS"}, "'PLAINTEXT', 'SSL'"),
        ({"sasl_plain_password": None}, "SCRAM-SHA-512 needs sasl_plain_password"),
        ({"sasl_plain_password": ""}, "sasl_plain_password must not be empty"),
        ({"sasl_plain_username": ""}, "sasl_plain_username must not be empty"),
        ({"sasl_mechanism": None}, "SASL_SSL needs sasl_mechanism"),
        ({"security_protocol": "SSL"}, "take SASL_SSL"),
        ({"ssl_cafile": "absent.pem"}, "there is no file"),
        ({"sasl_plain_password_file": __file__}, "keep one of them"),
    ],
)
def test_mistakes_do_not_show_the_password(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError) as caught:
        source(**SASL | change)
    assert problem in str(caught.value)
    assert "horse" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("latin", "latin is not UTF-8 text"),
        ("/proc/self/mem", "cannot be read: Input/output"),
        ("empty", "empty must contain only the password (found nothing)"),
        ("lines", "lines must contain only the password (found several lines)"),
    ],
)
def test_a_password_file_without_a_password_is_named(
    tmp_path: Path, file: str, problem: str
) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    (tmp_path / "empty").write_bytes(b"\n")
    (tmp_path / "lines").write_bytes(b"secret\nsecond\n")
    more = {**SASL, "sasl_plain_password": None, "sasl_plain_password_file": str(tmp_path / file)}
    with pytest.raises(ValidationError) as caught:
        source(**more)
    assert "sasl_plain_password_file " in str(caught.value)
    assert problem in str(caught.value)
    assert "secret" not in str(caught.value)


def test_shared_settings_are_in_all_sections() -> None:
    for model in (SourceSettings, SinkSettings, SnapshotSettings):
        assert connector.shared_settings < set(model.model_fields)
    assert "topic" not in connector.shared_settings
    assert {"bootstrap_servers", "sasl_plain_password_file"} < connector.shared_settings

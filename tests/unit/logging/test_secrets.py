"""No line contains a password."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
import structlog
from pydantic import BaseModel, SecretBytes, SecretStr

from streamduel.config import load
from streamduel.errors import ConnectorError
from streamduel.logging import LogFormat, hide, redact, set_up
from streamduel.logging.secrets import Secrets, secrets_of
from streamduel_kafka.settings import SourceSettings
from tests.unit.config.configurations import KAFKA, changed
from tests.unit.config.configurations import written as as_yaml
from tests.unit.logging.conftest import Written

PASSWORD = 'it\'s "horse" \\ stäple/%'
SPOKEN_WITH = {"source.sasl_plain_password": PASSWORD, "source.bootstrap_servers": ["127.0.0.1:1"]}
OURS = structlog.stdlib.get_logger("streamduel.cli.app")


@pytest.fixture
def source(tmp_path: Path) -> SourceSettings:
    """The source settings of a configuration with a password."""
    path = tmp_path / "search.yaml"
    path.write_text(as_yaml(changed(SPOKEN_WITH, KAFKA)))
    loaded = load(path, {})
    hide(loaded.source, loaded.sink, loaded.snapshots)
    assert isinstance(loaded.source, SourceSettings)
    return loaded.source


def assert_hidden(text: str, secret: str = PASSWORD) -> None:
    for spelt in (secret, repr(secret)[1:-1], json.dumps(secret)[1:-1]):
        assert spelt not in text
        assert json.dumps(spelt)[1:-1] not in text


def test_passwords_of_the_configuration_are_hidden(
    written: Written, form: LogFormat, source: SourceSettings
) -> None:
    set_up(form)
    hidden = source.sasl_plain_password
    assert hidden is not None
    found = hidden.get_secret_value()
    OURS.error(
        "failed", error=f"refused {found}", settings=source, raw={"a": [found, {"b": found}]}
    )
    OURS.error("failed", error=ConnectorError(f"{found!r}"), sent=f"{found}".encode())
    logging.getLogger("kafka").error("with configuration %s", source.client_settings)
    logging.getLogger("kafka").error("with password %s", {"password": found})
    try:
        raise ValueError(f"a mistake with {found}")
    except ValueError:
        OURS.exception("observer failed")
        logging.getLogger("kafka").exception("a library failed with %r", [found])
    assert written.text.count("**********") >= 8
    assert_hidden(written.text)


CONNECT = """
import sys
from pathlib import Path
from streamduel.logging import LogFormat, hide, log_uncaught, redact, set_up
from streamduel.config import load
from streamduel_kafka.client import AdminOptions
from streamduel_kafka.connecting import connect_at_start
set_up("json", 3)
log_uncaught()
source = load(Path(sys.argv[1]), {}).source
hide(source)
connect_at_start(AdminOptions(), source.client_settings, seconds=0.3)
"""


def test_passwords_are_hidden_in_debug_lines_and_crashes(
    source: SourceSettings, tmp_path: Path
) -> None:
    command = [sys.executable, "-W", "ignore", "-c", CONNECT, str(tmp_path / "search.yaml")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    events = [json.loads(line)["event"] for line in ran.stderr.splitlines()]
    assert any("KafkaAdminClient with configuration" in event for event in events)
    assert events[-1] == "crashed"
    assert_hidden(ran.stdout + ran.stderr)


def test_redact(written: Written, source: SourceSettings) -> None:
    assert redact(f"refused '{PASSWORD}'") == "refused '**********'"
    assert redact("nothing to hide") == "nothing to hide"


def test_values_of_secret_keys_are_hidden(written: Written, form: LogFormat) -> None:
    set_up(form)
    access = {"client_secret": "staple"}
    OURS.error("failed", sasl_plain_password="horse", token=9917, access=access)
    for secret in ("horse", "9917", "staple"):
        assert secret not in written.text


def test_event_names_are_not_changed() -> None:
    secrets = Secrets()
    secrets.add(["", "e", "stopped", "info"])
    line = {
        "timestamp": "1", "level": "info", "event": "stopped", "logger": "streamduel",
        "_from_structlog": True, "why": "stopped here", "seconds": 1.5, "done": True, "of": None,
    }  # fmt: skip
    clean = secrets(None, "info", line)
    assert clean == {**line, "why": "********** h**********r**********"}


def test_a_secret_that_begins_with_another_one() -> None:
    secrets = Secrets()
    secrets.add(["horse", "horse staple"])
    assert secrets.redact("a horse staple b") == "a ********** b"


def test_secrets_are_found_at_any_depth() -> None:
    class Inner(BaseModel):
        key: SecretBytes = SecretBytes(b"two")

    class Settings(BaseModel):
        user: str = "ada"
        password: SecretStr = SecretStr("one")
        inner: list[Inner] = [Inner()]
        more: dict[str, SecretStr] = {"x": SecretStr("three")}

    assert list(secrets_of((Settings(), "text"))) == ["one", "two", "three"]

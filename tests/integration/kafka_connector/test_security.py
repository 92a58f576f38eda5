"""A broker with SASL authentication over TLS."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamduel.errors import ConnectorError
from streamduel_kafka.settings import SinkSettings, SnapshotSettings, SourceSettings
from streamduel_kafka.topics import Topics
from tests.broker.fixture import without_broker as no_broker
from tests.broker.local_kafka import BrokerUnavailableError, LocalKafka, free_port
from tests.integration.kafka_connector.bed import (
    Bed,
    commit,
    gain,
    snapshot,
    start,
    without_broker,
    work,
)

pytestmark = pytest.mark.kafka

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="broker" password="between-brokers" user_broker="between-brokers" '
    'user_ada="correct horse";'
)


class SecureKafka(LocalKafka):
    """A broker with a second listener, SASL_SSL, for 127.0.0.1 and a password."""

    def __init__(self, keys: Path) -> None:
        super().__init__()
        self.secure = f"127.0.0.1:{free_port()}"
        plain, controller = f"127.0.0.1:{self._port}", f"127.0.0.1:{self._controller_port}"
        clients = f"CLIENTS://{plain},SECURE://{self.secure}"
        self._overrides |= {
            "listeners": f"{clients},CONTROLLER://{controller}",
            "advertised.listeners": clients,
            "listener.security.protocol.map": (
                "CLIENTS:PLAINTEXT,SECURE:SASL_SSL,CONTROLLER:PLAINTEXT"
            ),
            "listener.name.secure.ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.location": str(keys / "broker.pem"),
            "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config": JAAS,
        }


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("keys")
    command = f"{openssl} req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=broker"
    command += " -addext subjectAltName=IP:127.0.0.1 -keyout key.pem -out ca.pem"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True, timeout=60)
    both = (folder / "key.pem").read_text() + (folder / "ca.pem").read_text()
    (folder / "broker.pem").write_text(both)
    (folder / "password").write_text("correct horse\n")
    return folder


@pytest.fixture(scope="module")
def secure(keys: Path) -> Iterator[SecureKafka]:
    try:
        broker = SecureKafka(keys)
        broker.__enter__()
    except BrokerUnavailableError as error:
        no_broker(str(error))
    yield broker
    broker.close()


def settings(kafka: SecureKafka, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap_servers": kafka.secure,
        "create_topics": True,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": "ca.pem",
        "ssl_ciphers": "DEFAULT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "ada",
        "sasl_plain_password_file": "password",
    } | more


def test_tls_with_a_password(secure: SecureKafka, keys: Path) -> None:
    shared, context = settings(secure), {"directory": keys}
    bed = Bed(secure.bootstrap_servers, "clicks", "assignments", "letters", "snapshots", "g")

    def validated(model: Any, **own: str) -> Any:
        return model.model_validate(shared | own, context=context)

    setattr(bed, "source_settings", lambda: validated(SourceSettings, topic="clicks", group="g"))  # noqa: B010
    setattr(  # noqa: B010
        bed,
        "sink_settings",
        lambda: validated(SinkSettings, assignments="assignments", dead_letters="letters"),
    )
    setattr(bed, "snapshot_settings", lambda: validated(SnapshotSettings, topic="snapshots"))  # noqa: B010
    with bed.stack:
        source = bed.source()
        start(source, gain(source, 1))
        outlet = bed.outlet(source)
        commit(outlet, work(0, 0))
        assert [message.value for message in bed.archive().published()] == [b"0:0"]
        assert outlet.load(0) == snapshot(0, experiment=b"0:0")


@without_broker
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"sasl_plain_password_file": None, "sasl_plain_password": "battery staple"},
            r"refused the credentials \(sasl_mechanism PLAIN, user 'ada'\)|the password of 'ada'",
        ),
        ({"ssl_cafile": None}, "cannot be reached at .* certificate verify failed"),
        (
            {"security_protocol": "PLAINTEXT", "sasl_mechanism": None},
            r"cannot be reached at .* security_protocol \(found PLAINTEXT\)",
        ),
    ],
    ids=["password", "certificate", "protocol"],
)
def test_refused_connections_have_a_reason(
    secure: SecureKafka, keys: Path, change: dict[str, Any], problem: str
) -> None:
    asked = settings(secure, topic="clicks", group="g", **change)
    validated = SourceSettings.model_validate(asked, context={"directory": keys})
    with pytest.raises(ConnectorError, match=problem) as caught:
        Topics(validated, seconds=3.0)
    assert "staple" not in str(caught.value)
    assert "horse" not in str(caught.value)

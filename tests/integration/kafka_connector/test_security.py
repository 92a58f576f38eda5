"""A broker with SASL authentication over TLS."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from streamduel.client import Assignments, confluent_feed, feeds
from streamduel.connector import SourceOptions
from streamduel.errors import ConnectorError
from streamduel_kafka.opening import open_source
from streamduel_kafka.settings import SinkSettings, SnapshotSettings, SourceSettings
from streamduel_kafka.source import KafkaSource
from streamduel_kafka.topics import Topics
from tests.broker.fixture import on_both_clients
from tests.broker.fixture import without_broker as no_broker
from tests.broker.jars import BrokerUnavailableError
from tests.broker.secured import SecuredKafka, make_keys
from tests.integration.kafka_connector.bed import (
    PATIENCE,
    Bed,
    commit,
    eventually,
    gain,
    polls,
    snapshot,
    start,
    work,
)
from tests.unit.client.bed import alone

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return make_keys(tmp_path_factory.mktemp("keys"))
    except FileNotFoundError as error:
        no_broker(str(error))


@pytest.fixture(scope="module")
def secure(keys: Path) -> Iterator[SecuredKafka]:
    try:
        broker = SecuredKafka(keys)
        broker.__enter__()
    except BrokerUnavailableError as error:
        no_broker(str(error))
    yield broker
    broker.close()


def settings(kafka: SecuredKafka, **more: Any) -> dict[str, Any]:
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


@on_both_clients
def test_tls_with_a_password(secure: SecuredKafka, keys: Path, client: str) -> None:
    shared, context = settings(secure, client=client), {"directory": keys}
    names = [f"{name}-{client}" for name in ("clicks", "assignments", "letters", "snapshots", "g")]
    log, assignments, letters, snapshots, group = names
    bed = Bed(secure.bootstrap_servers, log, assignments, letters, snapshots, group)

    def validated(model: Any, **own: str) -> Any:
        return model.model_validate(shared | own, context=context)

    setattr(bed, "source_settings", lambda: validated(SourceSettings, topic=log, group=group))  # noqa: B010
    setattr(  # noqa: B010
        bed,
        "sink_settings",
        lambda: validated(SinkSettings, assignments=assignments, dead_letters=letters),
    )
    setattr(bed, "snapshot_settings", lambda: validated(SnapshotSettings, topic=snapshots))  # noqa: B010
    with bed.stack:
        source = bed.source()
        start(source, gain(source, 1))
        outlet = bed.outlet(source)
        commit(outlet, work(0, 0))
        assert [message.value for message in bed.archive().published()] == [b"0:0"]
        assert outlet.load(0) == snapshot(0, experiment=b"0:0")


@on_both_clients
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"sasl_plain_password_file": None, "sasl_plain_password": "battery staple"},
            r"refused the credentials \(sasl_mechanism PLAIN, user 'ada'\)|the password of 'ada'",
        ),
        ({"ssl_cafile": None}, "cannot be reached at .*certificate verify failed"),
        (
            {"security_protocol": "PLAINTEXT", "sasl_mechanism": None},
            r"cannot be reached at .* security_protocol \(found PLAINTEXT\)",
        ),
    ],
    ids=["password", "certificate", "protocol"],
)
def test_refused_connections_have_a_reason(
    secure: SecuredKafka, keys: Path, client: str, change: dict[str, Any], problem: str
) -> None:
    asked = settings(secure, topic="clicks", group="g", client=client, **change)
    validated = SourceSettings.model_validate(asked, context={"directory": keys})
    with pytest.raises(ConnectorError, match=problem) as caught:
        Topics(validated, seconds=3.0)
    assert "staple" not in str(caught.value)
    assert "horse" not in str(caught.value)


def opened(secure: SecuredKafka, keys: Path, **own: Any) -> KafkaSource:
    """A source of the topic `renewed`, which it creates with one partition."""
    asked = settings(secure, topic="renewed", session_timeout_ms=6000, **own)
    validated = SourceSettings.model_validate(asked, context={"directory": keys})
    return open_source(validated, SourceOptions())


def reconnects(source: KafkaSource) -> bool:
    """Poll until the source was away from the broker and is back."""
    return any(not source.connected for _ in polls(source)) and any(
        source.connected for _ in polls(source)
    )


@on_both_clients
def test_a_new_password_is_read_at_the_next_start(
    secure: SecuredKafka, keys: Path, client: str
) -> None:
    password, group = keys / "password", f"password-{client}"
    own = {"client": client, "group": group, "sasl_mechanism": "SCRAM-SHA-512"}
    secure.add_users({"ada": []})
    old = password.read_text()
    with closing(opened(secure, keys, **own)) as source:
        gain(source, 1)
        secure.set_password("ada", "battery staple")
        password.write_text("battery staple")
        try:
            secure.restart()
            with pytest.raises(ConnectorError, match="invalid credentials") as refused:
                reconnects(source)
            told = "refused the credentials (sasl_mechanism SCRAM-SHA-512, user 'ada')"
            assert told in str(refused.value)
            assert str(refused.value).endswith(" is read at the next start.")
            with closing(opened(secure, keys, **own)) as following:
                assert gain(following, 1) == [0]
        finally:
            password.write_text(old)


@on_both_clients
def test_new_certificates_are_read_at_the_next_connection_or_start(
    secure: SecuredKafka, keys: Path, client: str
) -> None:
    own = {"client": client, "group": f"certificates-{client}"}
    with closing(opened(secure, keys, **own)) as source:
        gain(source, 1)
        make_keys(keys)
        secure.restart()
        if client == "kafka-python":
            assert reconnects(source)
            return
        with pytest.raises(ConnectorError, match="certificate verify failed"):
            reconnects(source)
    with closing(opened(secure, keys, **own)) as following:
        assert gain(following, 1) == [0]


def test_a_missing_certificate_is_named_as_the_cause(secure: SecuredKafka, keys: Path) -> None:
    certificate = keys / "ca.pem"
    text = certificate.read_text()
    with closing(opened(secure, keys, client="kafka-python", group="missing")) as source:
        gain(source, 1)
        certificate.unlink()
        try:
            secure.restart()
            with pytest.raises(ConnectorError, match=r"certificate or key .* No such file"):
                reconnects(source)
        finally:
            certificate.write_text(text)


def test_a_ranker_service_reads_new_certificates(
    secure: SecuredKafka, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confluent_feed, "LOOK_SECONDS", 1.0)
    monkeypatch.setattr(feeds, "MAX_PAUSE", 0.5)

    def publish(arm: str, epoch: int) -> None:
        with KafkaProducer(bootstrap_servers=secure.bootstrap_servers) as producer:
            producer.send("for-rankers", key=b"search", value=alone(arm, epoch).encode())

    with closing(KafkaAdminClient(bootstrap_servers=secure.bootstrap_servers)) as admin:
        admin.create_topics([NewTopic("for-rankers", 1, 1)])
    publish("bm25", 1)
    chosen = {
        "security.protocol": "SASL_SSL", "ssl.ca.location": str(keys / "ca.pem"),
        "sasl.mechanism": "PLAIN", "sasl.username": "ada",
        "sasl.password": (keys / "password").read_text().strip(),
    }  # fmt: skip
    with Assignments.from_kafka(
        secure.secure, "for-rankers", client="confluent", kafka=chosen
    ) as assignments:
        assert assignments.wait_for("search", PATIENCE)
        make_keys(keys)
        secure.restart()
        publish("ltr-v1", 2)
        eventually(lambda: assignments.draw("search").epoch == 2)

"""Appending records to the click log, as `streamduel control` does."""

import socket
import time
from functools import partial

import pytest

from streamduel.connector import load_connector
from streamduel.errors import ConnectorError, UncertainError
from streamduel_kafka import append as append_module
from streamduel_kafka.append import append_records
from streamduel_kafka.client import ProducerOptions
from streamduel_kafka.partitions import home_partition
from streamduel_kafka.settings import SourceSettings
from tests.broker.fixture import Topics
from tests.integration.kafka_connector.bed import Bed, gain, read, start

pytestmark = pytest.mark.kafka

NAMES = ("search", "Größe", "a", "recommendations")

RECORD = (b"search", b"{}")


def append(settings: SourceSettings, *records: tuple[bytes, bytes]) -> list[str]:
    return list(append_records(settings, records))


def test_records_are_in_their_home_partitions(bed: Bed) -> None:
    places = append(bed.source_settings(), *((it.encode(), f"{it}!".encode()) for it in NAMES))
    log = bed.log()
    start(log, gain(log))
    found = read(log, len(NAMES))
    for name, place in zip(NAMES, places, strict=True):
        home = log.home(name)
        [offset] = [record.offset for record in found[home] if record.key == name.encode()]
        assert place == f"{bed.topic}-{home}@{offset}"
    assert sum(map(len, found.values())) == len(NAMES)


def test_a_missing_topic_is_created_if_the_settings_allow_it(bed: Bed, topics: Topics) -> None:
    missing = f"{bed.topic}-missing"
    with pytest.raises(ConnectorError, match=r"^source\.topic '.*' does not exist; create it"):
        append(bed.source_settings(topic=missing), RECORD)
    allowed = bed.source_settings(topic=missing, create_topics=True, partitions=3)
    assert append(allowed, RECORD) == [f"{missing}-{home_partition('search', 3)}@0"]


def test_a_refused_record_is_an_error(bed: Bed, topics: Topics) -> None:
    settings = bed.source_settings(topic=topics(1, max_message_bytes=200))
    places = append_records(settings, [RECORD, (b"search", b"x" * 1000), RECORD])
    assert next(places).endswith("@0")
    with pytest.raises(ConnectorError, match=r"does not take the record: .*nothing was written"):
        next(places)
    assert append(settings, RECORD)[0].endswith("@1")


def test_without_an_answer_the_outcome_is_uncertain(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    lingering = partial(ProducerOptions, linger_ms=3000)  # not sent before
    monkeypatch.setattr(append_module, "ProducerOptions", lingering)
    monkeypatch.setattr(append_module, "APPEND_SECONDS", 1.0)
    monkeypatch.setattr(append_module, "GRACE_SECONDS", 0.0)
    with pytest.raises(UncertainError, match="did not say that the record was written"):
        append(bed.source_settings(), RECORD)


def test_the_wait_for_a_missing_broker_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(append_module, "APPEND_SECONDS", 0.5)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # without a listener
        settings = load_connector("kafka").source_settings.model_validate(
            {
                "connector": "kafka",
                "bootstrap_servers": f"127.0.0.1:{taken.getsockname()[1]}",
                "topic": "clicks",
                "group": "g",
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "PLAIN",
                "sasl_plain_username": "u",
                "sasl_plain_password": "hunter2",
            }
        )
        begin = time.monotonic()
        with pytest.raises(ConnectorError, match="cannot be reached") as refused:
            next(load_connector("kafka").append(settings, [RECORD]))
        assert time.monotonic() - begin < 10
        assert "hunter2" not in str(refused.value)

"""`streamduel doctor` on a real broker."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from kafka import KafkaProducer

from streamduel.config import load
from streamduel.doctor import examine
from streamduel.testing import duel
from tests.broker.fixture import Broker, Topics
from tests.faults.kafka_runs import PARTITIONS, Run, configure
from tests.faults.processes import run_service, streamduel

pytestmark = pytest.mark.kafka

ARMS = ["bm25", "ltr-v1"]


def checks(run: Run) -> dict[str, tuple[str, str]]:
    return {it.name: (it.verdict, it.sentence) for it in examine(load(run.config))}


def send(kafka: Broker, topic: str, count: int, experiment: str = "search") -> None:
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for number in range(count):
            record = duel(experiment, number, "bm25", "ltr-v1", "a")
            producer.send(topic, record, key=experiment.encode())


@pytest.fixture
def service(kafka: Broker, topics: Topics, tmp_path: Path) -> Run:
    return configure(
        tmp_path / "run", kafka.bootstrap_servers, topics(PARTITIONS), topics, {},
        experiments={"search": {"arms": ARMS}},
    )  # fmt: skip


def test_topics_records_and_readers(kafka: Broker, service: Run) -> None:
    send(kafka, service.log, 20)
    assert checks(service)["source.group"][0] in {"warning", "unknown"}  # a new coordinator
    assert not run_service(service.config)
    send(kafka, service.log, 5)
    found = checks(service)
    failed = {name: it for name, it in found.items() if it[0] == "failed"}
    assert not failed
    assert found["source.topic"][1].endswith(f"has {PARTITIONS} partitions and can be read.")
    assert found["codecs"] == ("fine", "batches can be read in gzip, snappy, lz4, zstd.")
    assert found["source.group"][0] == "fine"
    assert found["records"] == (
        "fine",
        "of the newest 25 records, 20 count and 0 would be dead letters, 5 are duplicate.",
    )
    assert "5 records of the click log are not in them" in found["snapshots"][1]
    assert found["clocks"][0] == "fine"


def test_a_service_that_writes_to_another_topic_is_found(
    kafka: Broker, topics: Topics, service: Run
) -> None:
    elsewhere = topics(1)
    send(kafka, elsewhere, 4)
    found = [it for it in examine(load(service.config)) if it.name == "other topics"]
    assert f"'{elsewhere}' has records of experiment 'search'" in " ".join(map(str, found))
    assert checks(service)["records"][0] == "warning"


def test_a_missing_topic_fails(kafka: Broker, topics: Topics, tmp_path: Path) -> None:
    run = configure(
        tmp_path / "run", kafka.bootstrap_servers, "missing-topic", topics, {},
        experiments={"search": {"arms": ARMS}},
    )  # fmt: skip
    done = streamduel("doctor", run.config, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["works"]) == (1, False)
    (log,) = [it for it in answer["checks"] if it["name"] == "source.topic"]
    assert (log["verdict"], "does not exist" in log["sentence"]) == ("failed", True)


def test_a_wrong_broker_is_told_within_seconds(topics: Topics, tmp_path: Path) -> None:
    run = configure(
        tmp_path / "run", "127.0.0.1:1", "clicks", topics, {},
        experiments={"search": {"arms": ARMS}},
    )  # fmt: skip
    begin = time.monotonic()
    done = streamduel("doctor", run.config)
    assert done.returncode == 1
    assert done.stdout.startswith("failed  broker: Kafka cannot be reached at 127.0.0.1:1")
    assert time.monotonic() - begin < 20

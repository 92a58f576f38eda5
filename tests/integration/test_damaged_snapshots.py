"""A damaged snapshot on a real Kafka ends every start with one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kafka import KafkaProducer

from tests.broker.fixture import Broker, Topics
from tests.faults.kafka_runs import EXPERIMENTS, configure_faults, records
from tests.faults.processes import inspect, streamduel
from tests.logs import values

pytestmark = pytest.mark.kafka


def test_damage_is_named(kafka: Broker, topics: Topics, tmp_path: Path) -> None:
    run = configure_faults(tmp_path / "run", kafka.bootstrap_servers, topics(4), topics)
    with KafkaProducer(bootstrap_servers=run.servers) as producer:
        for number, (experiment, value) in enumerate(values(1, 500, EXPERIMENTS)):
            stamp = 1_790_000_000_000 + number
            producer.send(run.log, value, key=experiment.encode(), timestamp_ms=stamp)
    assert streamduel("run", run.config, "--until-end").returncode == 0
    name = EXPERIMENTS[0]
    partition = inspect(run.config)["experiments"][name]["offset"]["partition"]
    topic = yaml.safe_load(run.config.read_text())["snapshots"]["topic"]
    newest = {
        record.key: record.value
        for record in records(run.servers, topic)
        if record.partition == partition
    }
    place = f"of partition {partition} of snapshots.topic '{topic}'"
    key = f"experiment/{name}".encode()
    damages: list[tuple[bytes, bytes | None, str]] = [
        (key, None, f"the entry 'experiment/{name}' {place} is missing"),
        (key, newest[key][:-100], f"the entry 'experiment/{name}' {place} cannot be read"),
        (key, newest[key].replace(b"duels", b"duelz"), "has a wrong checksum"),
        (key, newest[key].replace(b'"format":7', b'"format":8'), "has format 8"),
        (b"partition", b"\xff\xfe", f"the entry 'partition' {place} cannot be read"),
        (b"$next_offset", b"many", "its record with the key '$next_offset' is missing or damaged"),
        (b"$next_offset", b"1", "the value of the key '$next_offset' is 1, but the commit went to"),
        (b"\xff\x00", b"{}", "has a record whose key is not UTF-8"),
    ]
    with KafkaProducer(bootstrap_servers=run.servers) as producer:
        for damaged, text, sentence in damages:
            producer.send(topic, text, key=damaged, partition=partition).get(30)
            for command in ("inspect", "replay"):
                refused = streamduel(command, run.config)
                assert refused.returncode == 2, refused.stdout
                assert sentence in refused.stderr
                assert f"partition {partition}" in refused.stderr
                assert refused.stderr.count("\n") == 1
            if text == b"1":
                started = streamduel("run", run.config, "--until-end")
                assert started.returncode == 2, started.stdout
                assert refused.stderr.strip() in started.stderr
            if damaged in newest:
                producer.send(topic, newest[damaged], key=damaged, partition=partition).get(30)
    refused = streamduel("run", run.config, "--until-end")
    assert refused.returncode == 2
    assert "has a record whose key is not UTF-8" in refused.stderr
    assert "a record with this key and a null value removes it" in refused.stderr
    with KafkaProducer(bootstrap_servers=run.servers) as producer:
        producer.send(topic, None, key=b"\xff\x00", partition=partition).get(30)
    assert streamduel("run", run.config, "--until-end").returncode == 0

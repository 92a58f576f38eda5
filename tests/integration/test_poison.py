"""Malformed and huge records on a real topic: one dead letter each."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka import KafkaProducer

from streamduel.testing import duel
from tests.broker.fixture import Broker, Topics
from tests.faults.kafka_runs import EXPERIMENTS, configure_faults, read
from tests.faults.processes import inspect, run_service
from tests.logs import ARMS, POISON

pytestmark = pytest.mark.kafka

EXPERIMENT = EXPERIMENTS[0]
WORST: list[tuple[bytes | None, str]] = [
    (b"x" * 10_000_000, "too_large"),
    (b"[" * 100_000, "invalid_json"),
    (b"[" * 100_000 + b"]" * 100_000, "invalid_record"),
    (b'{"type": "duel", "id": "\xff\xfe"}', "invalid_json"),
    (None, "invalid_record"),
]


def test_each_is_one_dead_letter(kafka: Broker, topics: Topics, tmp_path: Path) -> None:
    topic = topics(4, max_message_bytes=16_000_000)
    run = configure_faults(tmp_path / "run", kafka.bootstrap_servers, topic, topics)
    poison = [*WORST, *((POISON[number % len(POISON)], "") for number in range(100))]
    key = EXPERIMENT.encode()
    with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers, max_request_size=16_000_000
    ) as producer:
        producer.send(topic, duel(EXPERIMENT, "before", ARMS[0], ARMS[1], "a"), key=key)
        for value, _ in poison:
            producer.send(topic, value, key=key)
        producer.send(topic, duel(EXPERIMENT, "after", ARMS[0], ARMS[1], "a"), key=key)
    assert not run_service(run.config)
    letters = sorted(
        read(kafka.bootstrap_servers, run.dead_letters), key=lambda letter: letter["offset"]
    )
    assert [letter["offset"] for letter in letters] == list(range(1, len(poison) + 1))
    assert [letter["reason"] for letter in letters[: len(WORST)]] == [why for _, why in WORST]
    assert letters[0]["truncated"]
    assert letters[0]["size"] == 10_000_000
    assert inspect(run.config)["experiments"][EXPERIMENT]["tallies"]["accepted"] == 2

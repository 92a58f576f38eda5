"""Changed settings and notes of a running service, on a real broker."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaProducer

from streamduel.config import load
from streamduel.service import serve
from streamduel.testing import duel
from streamduel_kafka.partitions import home_partition
from tests.broker.fixture import Broker, Topics
from tests.faults.kafka_runs import PARTITIONS, Run, configure, read
from tests.faults.processes import fork, run_service, streamduel

pytestmark = pytest.mark.kafka

ARMS = ["bm25", "ltr-v1"]
PATIENCE = 180.0


def _serve(config: Path) -> None:
    serve(load(config), lambda: False)


@pytest.fixture
def running(kafka: Broker, topics: Topics, tmp_path: Path) -> Iterator[Run]:
    """A service that runs until the end of the test."""
    run = configure(
        tmp_path / "run", kafka.bootstrap_servers, topics(PARTITIONS), topics, {},
        experiments={"search": {"arms": ARMS, "policy": {"name": "rucb"}}},
    )  # fmt: skip
    process = fork(_serve, run.config)
    yield run
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def send(run: Run, first: int, count: int) -> None:
    with KafkaProducer(bootstrap_servers=run.servers) as producer:
        for number in range(first, first + count):
            producer.send(run.log, duel("search", number, "bm25", "ltr-v1", "a"), key=b"search")


def search(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(streamduel("inspect", run.config, "--json").stdout)
    search: dict[str, Any] = found["experiments"].get("search", {"tallies": {"accepted": 0}})
    return search


def wait(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_settings_and_notes_take_effect_and_a_replay_agrees(running: Run, tmp_path: Path) -> None:
    send(running, 0, 30)
    wait(lambda: search(running)["tallies"]["accepted"] == 30)
    document = yaml.safe_load(running.config.read_text())
    document["experiments"]["search"].update(policy={"name": "top_two"}, decide_every=10)
    changed = tmp_path / "changed.yaml"
    changed.write_text(yaml.safe_dump(document))

    asked = streamduel("control", "apply", changed)  # there is no terminal to ask on
    assert asked.returncode == 2
    assert 'policy: {"name":"rucb"} → {"name":"top_two"}' in asked.stderr
    assert "--yes writes the records" in asked.stderr
    applied = streamduel("control", "apply", changed, "--yes", "--actor", "alice")
    assert applied.returncode == 0, applied.stderr
    assert applied.stdout.startswith("Wrote policy, decide_every for experiment 'search'")
    noted = streamduel("control", "note", changed, "search", "ltr-v1 was trained again")
    assert noted.returncode == 0, noted.stderr
    wait(lambda: search(running)["tallies"]["accepted"] == 32)  # nothing was written when it asked
    send(running, 30, 30)
    wait(lambda: search(running)["tallies"]["accepted"] == 62)

    found = search(running)
    assert (found["policy"], found["duels"]) == ("top_two", 60)
    told = [(each["event"], each.get("text")) for each in found["timeline"]]
    assert ("apply", "decide_every, policy") in told
    assert ("note", "ltr-v1 was trained again") in told
    again = streamduel("control", "apply", changed, "--yes")
    assert again.stdout == "The running experiments are as configured.\n"
    assert list(read(running.servers, running.dead_letters)) == []
    for config in (running.config, changed):
        replayed = streamduel("replay", config)
        assert replayed.returncode == 0, replayed.stdout + replayed.stderr


def test_a_record_in_a_wrong_partition_is_not_pending(
    kafka: Broker, topics: Topics, tmp_path: Path
) -> None:
    run = configure(
        tmp_path / "run", kafka.bootstrap_servers, topics(PARTITIONS), topics, {},
        experiments={"search": {"arms": ARMS}},
    )  # fmt: skip
    assert not run_service(run.config)
    document = yaml.safe_load(run.config.read_text())
    document["experiments"]["search"]["decide_every"] = 10
    run.config.write_text(yaml.safe_dump(document))
    change = {"type": "control", "id": "1", "experiment": "search", "action": "apply"}
    value = json.dumps({**change, "settings": {"decide_every": 10}}).encode()
    with KafkaProducer(bootstrap_servers=run.servers) as producer:
        producer.send(
            run.log, value, partition=(home_partition("search", PARTITIONS) + 1) % PARTITIONS
        )
    applied = streamduel("control", "apply", run.config, "--yes")
    assert applied.stdout.startswith("Wrote decide_every for experiment 'search'"), applied.stderr

"""Control records from a topic of their own, on a real broker."""

from __future__ import annotations

import json
import multiprocessing.process
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from streamduel.config import load
from streamduel.control_markers import Marker, digest
from streamduel.service import serve
from streamduel.testing import duel, encode
from streamduel_kafka.partitions import home_partition
from tests.broker.fixture import Broker, Topics, on_both_clients
from tests.faults.kafka_runs import PARTITIONS, Run, configure, read
from tests.faults.processes import Killer, fork, inspect, run_service, streamduel

pytestmark = pytest.mark.kafka

ARMS = ["bm25", "ltr-v1", "ltr-v2"]
PATIENCE = 180.0


def _serve(config: Path, step: str) -> None:
    serve(load(config), lambda: False, failpoint=Killer(step, times=2) if step else Killer("-"))


class Bed:
    """A click log with a control topic, and processes of the service."""

    def __init__(self, kafka: Broker, topics: Topics, folder: Path, client: str) -> None:
        self.control_topic = topics(PARTITIONS)
        self.run: Run = configure(
            folder, kafka.bootstrap_servers, topics(PARTITIONS), topics,
            {
                "control_topic": self.control_topic, "session_timeout_ms": 6000, "client": client,
            },
            experiments={"search": {"arms": ARMS}, "ads": {"arms": ["x", "y"]}},
        )  # fmt: skip
        self.producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
        self.processes: list[multiprocessing.process.BaseProcess] = []
        self.sent = 0

    def start(self, kill_at: str = "") -> multiprocessing.process.BaseProcess:
        process = fork(_serve, self.run.config, kill_at)
        self.processes.append(process)
        return process

    def close(self) -> None:
        self.producer.close()
        for process in self.processes:
            process.kill()
            process.join()

    def send(self, *values: bytes, key: bytes = b"search") -> None:
        for value in values:
            self.producer.send(self.run.log, value, key=key).get(PATIENCE)

    def duels(self, count: int) -> None:
        self.send(*(duel("search", self.sent + n, "bm25", "ltr-v1", "a") for n in range(count)))
        self.sent += count

    def control(self, *arguments: str) -> None:
        done = streamduel("control", self.run.config, "search", *arguments)
        assert done.returncode == 0, done.stderr

    def search(self) -> dict[str, Any]:
        done = streamduel("inspect", self.run.config, "--json")
        if done.returncode:
            return {}
        found: dict[str, Any] = json.loads(done.stdout)["experiments"].get("search", {})
        return found

    def letters(self) -> list[dict[str, Any]]:
        return list(read(self.run.servers, self.run.dead_letters))

    def replays(self) -> None:
        done = streamduel("replay", self.run.config)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def bed(kafka: Broker, topics: Topics, tmp_path: Path, client: str) -> Iterator[Bed]:
    made = Bed(kafka, topics, tmp_path / "run", client)
    yield made
    made.close()


def wait(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def stop(process: multiprocessing.process.BaseProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()


def test_an_action_takes_effect_and_a_replay_agrees(bed: Bed) -> None:
    bed.start()
    bed.duels(10)
    bed.control("add-arm", "ltr-v3")
    wait(lambda: "ltr-v3" in bed.search().get("arms", ()))
    bed.duels(10)
    bed.control("reset")
    wait(lambda: bed.search()["tallies"]["accepted"] == 22)
    assert bed.search()["duels"] < 20
    bed.duels(5)
    wait(lambda: bed.search()["tallies"]["accepted"] == 27)
    assert bed.letters() == []
    bed.replays()


@on_both_clients
def test_a_run_until_the_end_applies_what_is_written(bed: Bed) -> None:
    bed.duels(10)
    bed.control("add-arm", "ltr-v3")
    run_service(bed.run.config)
    assert (bed.search()["duels"], bed.search()["arms"]) == (10, [*ARMS, "ltr-v3"])
    bed.control("retire-arm", "ltr-v3")
    bed.control("pause")
    run_service(bed.run.config)
    assert (bed.search()["status"], bed.search()["arms"]) == ("paused", ARMS)
    accepted = bed.search()["tallies"]["accepted"]
    run_service(bed.run.config)
    assert bed.search()["tallies"]["accepted"] == accepted
    bed.replays()


@on_both_clients
def test_a_run_until_the_end_passes_deleted_control_records(bed: Bed, kafka: Broker) -> None:
    bed.duels(10)
    bed.control("pause")
    home = TopicPartition(bed.control_topic, home_partition("search", PARTITIONS))
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)) as admin:
        admin.delete_records({home: -1})
    run_service(bed.run.config)
    assert (bed.search()["duels"], bed.search()["status"]) == (10, "running")


@on_both_clients
def test_a_huge_key_of_a_control_record_does_not_block_later_ones(bed: Bed) -> None:
    """A marker with all of it would be larger than the click log accepts."""
    bed.duels(10)
    home = home_partition("search", PARTITIONS)
    bed.producer.send(bed.control_topic, b"{}", b"k" * 600_000, partition=home).get(30)
    bed.control("pause")
    run_service(bed.run.config)
    assert (bed.search()["duels"], bed.search()["status"]) == (10, "paused")
    bed.replays()


@on_both_clients
def test_an_action_whose_marker_met_no_control_topic_takes_effect_later(bed: Bed) -> None:
    bed.duels(10)
    run_service(bed.run.config)
    value = encode({"type": "control", "id": "c-1", "experiment": "search", "action": "pause"})
    bed.producer.send(bed.control_topic, value, key=b"search").get(PATIENCE)
    bed.send(msgspec.json.encode(Marker("m-1", "search", 0, digest(value))))
    controlled = bed.run.config.read_text()
    configured = yaml.safe_load(controlled)
    del configured["source"]["control_topic"]
    bed.run.config.write_text(yaml.safe_dump(configured))
    run_service(bed.run.config)
    assert [it["reason"] for it in bed.letters()] == ["invalid_record"]
    bed.run.config.write_text(controlled)
    run_service(bed.run.config)
    assert (bed.search()["status"], bed.search()["tallies"]["duplicate"]) == ("paused", 0)
    bed.replays()


def test_a_pending_change_of_settings_is_not_written_again(bed: Bed) -> None:
    process = bed.start()
    bed.duels(10)
    wait(lambda: bed.search().get("duels") == 10)
    stop(process)
    configured = yaml.safe_load(bed.run.config.read_text())
    configured["experiments"]["search"]["decide_every"] = 7
    bed.run.config.write_text(yaml.safe_dump(configured))
    first, second = (streamduel("control", "apply", bed.run.config, "--yes") for _ in range(2))
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "Wrote decide_every" in first.stdout
    assert second.stdout == ""
    assert "written already, not in effect yet: decide_every" in second.stderr


def test_a_writer_of_clicks_cannot_act(bed: Bed) -> None:
    bed.start()
    reset = {"type": "control", "id": "r-1", "experiment": "search", "action": "reset"}
    forged = Marker("m-1", "search", 0, digest(encode(reset)))
    later = Marker("m-2", "search", 10**9, digest(b"x"))
    made = [
        json.dumps({"type": "control_marker", **_fields(it)}).encode() for it in (forged, later)
    ]
    compact = [it.replace(b": ", b":").replace(b", ", b",") for it in made]
    bed.duels(5)
    bed.send(encode(reset), *made, *compact)
    bed.duels(5)
    wait(lambda: bed.search().get("duels") == 10)
    told = [(it["reason"], it["error"][:45]) for it in bed.letters()]
    assert len(told) == 5
    assert {reason for reason, _ in told} == {"invalid_record"}
    assert told[0][1] == "control records come from source.control_topi"
    bed.control("pause")
    wait(lambda: bed.search()["status"] == "paused")
    bed.replays()


def _fields(marker: Marker) -> dict[str, Any]:
    return {name: getattr(marker, name) for name in marker.__struct_fields__}


@pytest.mark.parametrize("step", ["before write", "kafka: records written", "after finish"])
def test_a_killed_process_neither_loses_nor_doubles_an_action(bed: Bed, step: str) -> None:
    first = bed.start(kill_at=step)
    bed.duels(10)
    bed.control("add-arm", "ltr-v3")
    bed.duels(10)
    bed.control("retire-arm", "ltr-v2")
    first.join(PATIENCE)
    assert first.exitcode == -signal.SIGKILL
    bed.control("pause")
    bed.start()
    bed.duels(10)
    wait(lambda: bed.search().get("tallies", {}).get("accepted") == 33)
    found = bed.search()
    assert found["arms"] == ["bm25", "ltr-v1", "ltr-v3"]
    assert found["status"] == "paused"
    assert bed.letters() == []
    bed.replays()


def test_after_a_rebalance_every_action_counts_once(bed: Bed) -> None:
    first = bed.start()
    bed.duels(5)
    wait(lambda: bed.search().get("duels") == 5)
    bed.start()
    for number in range(3, 7):
        bed.control("add-arm", f"ltr-v{number}")
        bed.duels(2)
        if number == 4:
            stop(first)
    wait(lambda: bed.search()["tallies"]["accepted"] == 5 + 8 + 4)
    assert bed.search()["arms"] == [*ARMS, "ltr-v3", "ltr-v4", "ltr-v5", "ltr-v6"]
    assert bed.letters() == []
    bed.replays()


def test_inspect_needs_no_control_topic(bed: Bed) -> None:
    bed.start()
    bed.duels(3)
    wait(lambda: bed.search().get("duels") == 3)
    assert set(inspect(bed.run.config)["experiments"]) == {"search", "ads"}

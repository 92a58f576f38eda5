"""SIGKILL and a broker's restart on a real Kafka: no record is lost or counted twice."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaProducer

from tests.broker.fixture import Broker, Topics
from tests.faults.kafka_runs import Run, configure_faults, make_log, read, visible, written
from tests.faults.processes import run_service, start_service, streamduel, was_killed

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RECORDS = 300_000
QUICK_RECORDS = 60_000
KILLS = 20

Configure = Callable[[str, str], Run]


@pytest.fixture(scope="module")
def log(kafka: Broker) -> str:
    return make_log(kafka, RECORDS)


@pytest.fixture(scope="module")
def short_log(kafka: Broker) -> str:
    return make_log(kafka, QUICK_RECORDS)


@pytest.fixture
def configure(kafka: Broker, topics: Topics, tmp_path: Path) -> Configure:
    return lambda name, log: configure_faults(tmp_path / name, kafka.bootstrap_servers, log, topics)


def test_twenty_kills_and_a_broker_restart_change_nothing(
    kafka: Broker, configure: Configure, log: str
) -> None:
    undisturbed, killed = configure("undisturbed", log), configure("killed", log)
    assert not run_service(undisturbed.config)
    rng = random.Random(20)
    kills = sum(run_service(killed.config, seconds=rng.uniform(0.0, 0.12)) for _ in range(KILLS))
    assert kills == KILLS, "the end of the click log was reached before the last kill"
    if kafka.can_restart:
        restart_during_a_run(kafka, killed)
    assert not run_service(killed.config)
    assert visible(killed) == visible(undisturbed)
    replayed = streamduel("replay", killed.config)
    assert replayed.returncode == 0, replayed.stdout


def restart_during_a_run(kafka: Broker, run: Run) -> None:
    """The same process runs before and after."""
    before = written(run)
    service = start_service(run.config)
    while written(run) < before + 10:  # more than the markers of an aborted transaction
        assert service.is_alive(), "the end of the click log was reached before the restart"
    kafka.restart()
    assert not was_killed(service)


STEPS = [
    "before write", "kafka: transaction begun", "kafka: outputs sent", "before finish",
    "kafka: records written", "kafka: offsets written", "kafka: committed", "after finish",
]  # fmt: skip


def test_a_kill_at_any_step_of_the_commit_changes_nothing(
    configure: Configure, short_log: str
) -> None:
    undisturbed, killed = configure("undisturbed", short_log), configure("killed", short_log)
    assert not run_service(undisturbed.config)
    for step in STEPS:
        assert run_service(killed.config, step=step, times=2), step
    assert not run_service(killed.config)
    assert visible(killed) == visible(undisturbed)


def test_replay_finds_a_changed_assignment(configure: Configure, short_log: str) -> None:
    run = configure("run", short_log)
    assert not run_service(run.config)
    newest = list(read(run.servers, run.assignments))[-1]
    changed = {**newest, "duels": newest["duels"] + 1}
    with KafkaProducer(bootstrap_servers=run.servers) as producer:
        producer.send(
            run.assignments, json.dumps(changed).encode(), key=newest["experiment"].encode()
        )
    replayed = streamduel("replay", run.config)
    assert replayed.returncode == 1
    assert (
        f"epoch {newest['epoch']} of '{newest['experiment']}' was published twice"
        in replayed.stdout
    )

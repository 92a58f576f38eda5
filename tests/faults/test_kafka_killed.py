"""SIGKILL and a broker's restart on a real Kafka: no record is lost or counted twice."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaProducer

from tests.broker.fixture import Broker, Topics
from tests.faults.figures import Figures
from tests.faults.kafka_runs import Run, configure_faults, make_log, read, visible, written
from tests.faults.processes import run_service, start_service, streamduel, was_killed
from tests.faults.scale import scaled
from tests.faults.trial import Servers, compare, trial

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RECORDS = 100_000
QUICK_RECORDS = 60_000
KILLS = 6

LIVE_KILLS = scaled(100, 4)
LIVE_RECORDS = scaled(2_000_000, 20_000)
LIVE_RATE = scaled(8000, 3000)
BURST_SECONDS = 2.0
STOPS = scaled(10, 2)

Configure = Callable[[str, str], Run]
Report = Callable[[Figures], None]

WRITE_SECONDS = 900.0
"""Until the last record of the log is written: five minutes on an idle machine."""


@pytest.fixture(scope="module")
def log(kafka: Broker) -> str:
    return make_log(kafka, RECORDS)


@pytest.fixture(scope="module")
def short_log(kafka: Broker) -> str:
    return make_log(kafka, QUICK_RECORDS)


@pytest.fixture
def configure(kafka: Broker, topics: Topics, tmp_path: Path) -> Configure:
    return lambda name, log: configure_faults(tmp_path / name, kafka.bootstrap_servers, log, topics)


def test_kills_and_a_broker_restart_change_nothing(
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


def test_kills_while_the_log_grows_in_bursts(
    kafka: Broker, topics: Topics, tmp_path: Path, report: Report
) -> None:
    """Four of five kills wait for the first commit of the process, the others hit its start."""
    servers = Servers(kafka.bootstrap_servers, kafka.bootstrap_servers)
    rng = random.Random(100)
    with trial(tmp_path, servers, topics, rate=LIVE_RATE, burst=BURST_SECONDS) as live:
        for _ in range(LIVE_KILLS):
            service = live.start()
            if rng.random() < 0.2:
                time.sleep(rng.uniform(0.0, 2.0))
                service.kill()
            else:
                live.flowing(1)
                time.sleep(rng.uniform(0.0, 0.5))
                live.mark()
                service.kill()
        live.start()
        live.wait(lambda: live.feed.sent >= LIVE_RECORDS, WRITE_SECONDS, "the log is too short")
        report(live.finish("`kill -9` of the service, the log growing in bursts", LIVE_KILLS))


def test_sigterm_under_load(kafka: Broker, topics: Topics, tmp_path: Path, report: Report) -> None:
    servers = Servers(kafka.bootstrap_servers, kafka.bootstrap_servers)
    with trial(tmp_path, servers, topics, rate=LIVE_RATE) as live:
        worst = 0.0
        for _ in range(STOPS):
            service = live.start()
            live.flowing(5)
            began = time.monotonic()
            assert service.stop() == 0, service.tail()
            worst = max(worst, time.monotonic() - began)
            live.mark()
        live.start()
        live.flowing(5)
        note = f"status 0 after at most {worst:.1f} s"
        report(live.finish("SIGTERM under load, and a new start", STOPS, note))


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
    configure: Configure, short_log: str, report: Report
) -> None:
    undisturbed, killed = configure("undisturbed", short_log), configure("killed", short_log)
    assert not run_service(undisturbed.config)
    for step in STEPS:
        assert run_service(killed.config, step=step, times=2), step
    assert not run_service(killed.config)
    fault = "`kill -9` between every two steps of a commit"
    report(compare(killed, undisturbed, fault, len(STEPS)))


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

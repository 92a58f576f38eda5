"""Two processes share a topic; one is killed, the other takes over, and nothing shows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.fixture import Broker, Topics
from tests.faults.lives import ROOT, inspect, live
from tests.faults.test_kafka_killed import configure, make_log, visible

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RECORDS = 100_000
PATIENCE = 120.0
"""Seconds for a takeover, of which the session timeout of the dead member is 6."""


def start(config: Path, instance: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-c",
        "from streamduel.cli.app import main; main()",
        "run",
        str(config),
    ]
    environment = {**os.environ, "STREAMDUEL_SOURCE__INSTANCE": instance}
    return subprocess.Popen(command, cwd=ROOT, env=environment)


def folded(config: Path) -> int:
    """How far the snapshots of all partitions go, in records."""
    report = inspect(config)
    nexts = {
        found["offset"]["partition"]: found["offset"]["next"]
        for found in report["experiments"].values()
    }
    return sum(nexts.values())


def wait_until_folded(config: Path, records: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while folded(config) < records:
        assert time.monotonic() < deadline, f"{folded(config)} of {records} records folded"
        time.sleep(0.5)


def die(process: subprocess.Popen[bytes]) -> None:
    process.kill()


def sleep_too_long(process: subprocess.Popen[bytes]) -> None:
    """A zombie: it wakes up after its partitions were given away, and goes on where it was."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(9)  # half as long again as the session timeout
    process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("accident", [die, sleep_too_long])
def test_a_survivor_takes_over_and_nothing_shows(
    kafka: Broker,
    topics: Topics,
    tmp_path: Path,
    accident: Callable[[subprocess.Popen[bytes]], None],
) -> None:
    servers = kafka.bootstrap_servers
    log = make_log(kafka, RECORDS)
    calm = configure(tmp_path / "calm", servers, log, topics)
    shared = configure(tmp_path / "shared", servers, log, topics)
    assert not live(calm.config)
    everything = folded(calm.config)
    victim, survivor = start(shared.config, "victim"), start(shared.config, "survivor")
    try:
        time.sleep(2.0)  # at whatever moment of joining, restoring or folding this is
        accident(victim)
        wait_until_folded(shared.config, everything)
    finally:
        victim.kill()
        survivor.send_signal(signal.SIGTERM)
        assert survivor.wait(timeout=10) == 0
        victim.wait(timeout=10)
    assert visible(shared, servers) == visible(calm, servers)

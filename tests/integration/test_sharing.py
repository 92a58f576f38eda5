"""Two processes share a topic; one fails, the other takes over, and the outputs do not change."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from tests.broker.fixture import Broker, Topics
from tests.faults.kafka_runs import PARTITIONS, Run, configure_faults, make_log, visible
from tests.faults.processes import ROOT, RUN, TIMEOUT, run_service

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RECORDS = 100_000


def start(config: Path, instance: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "STREAMDUEL_SOURCE__INSTANCE": instance}
    return subprocess.Popen([*RUN, str(config)], cwd=ROOT, env=environment)


def members(run: Run) -> int:
    """The number of members of the consumer group."""
    with KafkaAdminClient(bootstrap_servers=run.servers) as admin:
        return len(admin.describe_groups([run.group])[run.group]["members"])


def committed(run: Run) -> list[int | None]:
    """The group's committed offset of each partition."""
    consumer = KafkaConsumer(
        bootstrap_servers=run.servers, group_id=run.group, isolation_level="read_committed"
    )
    with closing(consumer):
        return [consumer.committed(TopicPartition(run.log, n)) for n in range(PARTITIONS)]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def kill(process: subprocess.Popen[bytes], run: Run) -> None:
    process.kill()


def hang(process: subprocess.Popen[bytes], run: Run) -> None:
    """Stop the process until the group has removed it; it continues in its old state."""
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: members(run) == 1)
    process.send_signal(signal.SIGCONT)


@pytest.mark.parametrize("fail", [kill, hang])
def test_the_other_process_takes_over(
    kafka: Broker,
    topics: Topics,
    tmp_path: Path,
    fail: Callable[[subprocess.Popen[bytes], Run], None],
) -> None:
    servers = kafka.bootstrap_servers
    log = make_log(kafka, RECORDS)
    undisturbed = configure_faults(tmp_path / "undisturbed", servers, log, topics)
    shared = configure_faults(tmp_path / "shared", servers, log, topics)
    assert not run_service(undisturbed.config)
    everything = committed(undisturbed)
    failing, other = start(shared.config, "failing"), start(shared.config, "other")
    try:
        wait_until(lambda: members(shared) == 2)
        fail(failing, shared)
        wait_until(lambda: committed(shared) == everything)
    finally:
        failing.kill()
        other.send_signal(signal.SIGTERM)
        assert other.wait(timeout=TIMEOUT) == 0
        failing.wait(timeout=TIMEOUT)
    assert visible(shared) == visible(undisturbed)

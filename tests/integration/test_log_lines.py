"""The application log of a service whose broker stops and starts again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from tests.broker.local_kafka import LocalKafka
from tests.unit.config.configurations import written

SECONDS = 120.0
"""Far more than service and broker need."""


@pytest.fixture
def service(own_broker: LocalKafka, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """`streamduel run` on this broker, logging JSON."""
    # A new broker makes the topic of its groups first, and kafka-python may log a retry.
    with KafkaConsumer(bootstrap_servers=own_broker.bootstrap_servers, group_id="g") as member:
        member.committed(TopicPartition("clicks", 0))
    source: dict[str, Any] = {"topic": "clicks", "create_topics": True, "partitions": 2}
    config: dict[str, dict[str, Any]] = {
        "source": {"bootstrap_servers": own_broker.bootstrap_servers, "group": "g", **source},
        "sink": {"assignments": "assignments", "dead_letters": "dead-letters"},
        "snapshots": {"topic": "snapshots"},
    }
    path = tmp_path / "search.yaml"
    experiments = {"search": {"arms": ["x", "y"]}}
    sections = {name: {"connector": "kafka", **section} for name, section in config.items()}
    path.write_text(written({**sections, "monitoring": None, "experiments": experiments}))
    command = [sys.executable, "-m", "streamduel", "run", str(path), "--log-format", "json"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        deadline = threading.Timer(SECONDS, process.kill)
        deadline.start()
        yield process
        deadline.cancel()
        process.kill()


def until(process: subprocess.Popen[str], event: str) -> list[dict[str, Any]]:
    """The next lines, up to the first with this event."""
    assert process.stderr is not None
    lines = []
    for text in process.stderr:
        lines.append(json.loads(text))
        if lines[-1]["event"] == event:
            return lines
    raise AssertionError(f"the service ended without '{event}': {lines}")


@pytest.mark.kafka
@pytest.mark.slow
def test_an_outage_of_the_broker_is_a_few_lines(
    own_broker: LocalKafka, service: subprocess.Popen[str]
) -> None:
    beginning = [*until(service, "partition restored"), *until(service, "partition restored")]
    events = [line["event"] for line in beginning]
    assert events == [
        "started", "topic created", "click log opened", *["topic created"] * 3,
        *["partition restored"] * 2,
    ]  # fmt: skip

    own_broker.kill()
    lost = until(service, "connection lost")[-1]
    assert (lost["level"], lost["logger"]) == ("warning", "streamduel.monitoring.service_log")
    own_broker.start()
    *others, regained = until(service, "connection regained")
    assert regained["seconds"] > 0
    assert len(others) < 40, "kafka-python logs every attempt to connect"

    service.send_signal(signal.SIGTERM)
    stopped = until(service, "stopped")[-1]
    assert stopped["why"] == "SIGTERM"
    assert stopped["offsets"].keys() <= {"0", "1"}, "the group may not be stable again yet"
    assert service.wait(SECONDS) == 0

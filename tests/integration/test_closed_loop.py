"""The README's quick start: service, ranker service, inspect, replay."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.broker.fixture import Broker
from tests.faults.processes import ROOT, RUN, TIMEOUT, inspect, streamduel

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

CONFIG = ROOT / "configs" / "kafka.yaml"
RANKER_SERVICE = ROOT / "docs" / "examples" / "ranker_service.py"
IMPRESSIONS = 40_000


@pytest.fixture
def service(kafka: Broker, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """`streamduel run configs/kafka.yaml` on the tests' broker and a free port."""
    monkeypatch.setenv("STREAMDUEL_SOURCE__BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    monkeypatch.setenv("STREAMDUEL_MONITORING__PORT", "0")
    with subprocess.Popen(
        [*RUN, str(CONFIG)], cwd=ROOT, env=os.environ, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert "status page and metrics on http://127.0.0.1:" in process.stderr.readline()
        yield process
        process.kill()


def test_the_quick_start_closes_the_loop(
    kafka: Broker, service: subprocess.Popen[str], tmp_path: Path
) -> None:
    served = subprocess.run(
        [sys.executable, RANKER_SERVICE, kafka.bootstrap_servers, str(IMPRESSIONS)],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert served.returncode == 0, served.stderr
    service.terminate()
    assert service.wait(timeout=TIMEOUT) == 0
    found = inspect(CONFIG)["experiments"]["search"]
    assert found["duels"] == found["tallies"]["accepted"] == IMPRESSIONS
    # The order of the users' and the policy's random numbers depends on the machine. With plans of
    # 500 impressions ago, the best arm was ahead at the end of each of 3,000 simulated runs.
    assert found["champion"] == "ltr-v3"
    assert found["epoch"] > 20
    replayed = streamduel("replay", CONFIG)
    assert replayed.returncode == 0, replayed.stdout
    assert f"{IMPRESSIONS:,} records folded again" in replayed.stdout

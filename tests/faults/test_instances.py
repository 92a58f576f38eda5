"""Processes that come, go, hang and die while partitions move between them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.fixture import Broker, Topics
from tests.faults.figures import Figures
from tests.faults.scale import scaled
from tests.faults.trial import Servers, trial

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SESSION_SECONDS = 6.0  # of `configure_faults`
PAUSES = scaled(3, 1)
RESTORES = scaled(5, 1)

Report = Callable[[Figures], None]


def test_one_process_three_two_one(
    kafka: Broker, topics: Topics, tmp_path: Path, report: Report
) -> None:
    """A static member that leaves is replaced after its session, so each step waits for that."""
    servers = Servers(kafka.bootstrap_servers, kafka.bootstrap_servers)
    rng = random.Random(3)
    with trial(tmp_path, servers, topics) as live:
        first = live.start()
        live.flowing()
        second = live.start()
        for _ in range(RESTORES):  # each joins, and dies while it restores what it gained
            third = live.start()
            time.sleep(rng.uniform(0.5, 2.0))
            live.mark()
            third.kill()
        third = live.start()
        live.joined(third)
        for leaving in (second, first):
            live.joined(leaving)
            assert leaving.stop() == 0, leaving.tail()
            time.sleep(SESSION_SECONDS)
            live.flowing()
        assert third.runs, third.tail()
        fault = "1 → 3 → 2 → 1 processes, with `kill -9` during restores"
        note = f"partitions of a process that left move after its session, {SESSION_SECONDS:.0f} s"
        report(live.finish(fault, RESTORES + 4, note))


@pytest.mark.full  # in `make test`: test_sharing.py
def test_sigstop_beyond_the_session_timeout(
    kafka: Broker, topics: Topics, tmp_path: Path, report: Report
) -> None:
    servers = Servers(kafka.bootstrap_servers, kafka.bootstrap_servers)
    with trial(tmp_path, servers, topics) as live:
        pair = [live.start(), live.start()]
        for service in pair:
            live.joined(service)
        live.flowing()
        for number in range(PAUSES):
            service = pair[number % 2]
            began = time.monotonic()
            service.pause()
            time.sleep(1.5 * SESSION_SECONDS)
            live.flowing(5)  # from the other process
            live.mark()
            service.resume()
            live.flowing()
            longest = live.reader.silence(began, time.monotonic())
        assert all(service.runs for service in pair)
        fault = f"SIGSTOP for {1.5 * SESSION_SECONDS:.0f} s, beyond the session timeout, and back"
        note = f"another process takes over; longest silence {longest:.1f} s"
        report(live.finish(fault, PAUSES, note))

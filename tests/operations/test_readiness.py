"""`/readyz` while a real broker is away: killed, or stopped with its connections open."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

import httpx
import pytest

from tests.broker.local_kafka import LocalKafka
from tests.operations.on_kafka import Clicks, KafkaService
from tests.operations.running import Feed

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

NOTICED_SECONDS: Final = 5.0
"""What docs/operations.md says."""

AWAY_SECONDS: Final = 12.0
"""Longer than a stalled commit needs to show, shorter than a session of the group."""

START_SECONDS: Final = 180.0
"""Until a process is ready on a loaded machine."""

LOOK_SECONDS: Final = 0.1


class Probe:
    """Asks for readiness.

    Args:
        port: of the service.
    """

    def __init__(self, port: int) -> None:
        self._client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=NOTICED_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ready(self) -> bool:
        """Whether `/readyz` answers 200; False while nothing listens."""
        try:
            return self._client.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def alive(self) -> bool:
        """Whether `/healthz` answers 200."""
        return self._client.get("/healthz").status_code == 200

    def seconds_until(self, ready: bool, limit: float) -> float:
        """How long it takes to become ready, or not ready."""
        began = time.monotonic()
        while self.ready() is not ready:
            assert time.monotonic() - began < limit, f"still not {ready} after {limit:.0f} s"
            time.sleep(LOOK_SECONDS)
        return time.monotonic() - began


def check_fault(probe: Probe, away: Callable[[], None], back: Callable[[], None]) -> None:
    away()
    try:
        assert probe.seconds_until(False, AWAY_SECONDS) < NOTICED_SECONDS
        end = time.monotonic() + AWAY_SECONDS
        while time.monotonic() < end:
            assert not probe.ready()
            assert probe.alive()
            time.sleep(LOOK_SECONDS)
    finally:
        back()
    assert probe.seconds_until(True, START_SECONDS) < NOTICED_SECONDS


def test_a_broker_that_stops_answering(own_broker: LocalKafka, tmp_path: Path) -> None:
    service = KafkaService(tmp_path, own_broker.bootstrap_servers, "search")
    with service, Probe(service.port) as probe:
        probe.seconds_until(True, START_SECONDS)
        check_fault(probe, own_broker.pause, own_broker.resume)
        with Clicks(service) as clicks, Feed(clicks.write):  # a commit waits for its answer
            check_fault(probe, own_broker.pause, own_broker.resume)


def test_a_broker_that_is_killed(own_broker: LocalKafka, tmp_path: Path) -> None:
    service = KafkaService(tmp_path, own_broker.bootstrap_servers, "search")
    with service, Probe(service.port) as probe:
        probe.seconds_until(True, START_SECONDS)
        check_fault(probe, own_broker.kill, own_broker.start)

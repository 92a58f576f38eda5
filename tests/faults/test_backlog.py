"""A long backlog, and brokers that take every write late."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.cluster import LocalCluster
from tests.broker.fixture import Topics
from tests.faults.figures import Figures
from tests.faults.scale import scaled
from tests.faults.services import Service, next_offsets
from tests.faults.trial import Servers, trial

RECORDS = int(os.environ.get("STREAMDUEL_BACKLOG_RECORDS", scaled(1_000_000, 20_000)))
UNLIMITED = 10**9
"""More records a second than any machine writes."""

WRITE_SECONDS = 1200.0
FOLD_SECONDS = 1200.0
SLOW_SECONDS = 0.025
"""Later arrival in each direction; a commit makes four requests, one after another."""

MEMORY_LIMIT = 512 * 2**20
"""Bytes that the shipped manifests give to a container."""

PRODUCER = "producer"
"""In the client id of the service's producer, and of no other of its clients."""


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.full
def test_a_backlog_with_slow_output(
    cluster: LocalCluster, cluster_topics: Topics, tmp_path: Path,
    report: Callable[[Figures], None],
) -> None:  # fmt: skip
    servers = Servers(cluster.bootstrap_servers, cluster.proxied_servers)
    with trial(tmp_path, servers, cluster_topics, rate=UNLIMITED, limit=RECORDS) as live:
        live.wait(lambda: live.feed.finished, WRITE_SECONDS, "the log was not written")
        cluster.proxies.slow(SLOW_SECONDS, client=PRODUCER)
        began = time.monotonic()
        service = live.start()
        peak = 0

        def folded() -> bool:
            nonlocal peak
            peak = max(peak, resident(service))
            committed, ends = next_offsets(live.run)
            return committed == ends

        live.wait(folded, FOLD_SECONDS, "the backlog was not folded")
        seconds = time.monotonic() - began
        note = (
            f"outputs {2 * SLOW_SECONDS * 1000:.0f} ms late; {RECORDS / seconds:,.0f} records/s, "
            f"at most {peak / 2**20:.0f} MB of memory"
        )
        figures = live.finish("a backlog, and slow output", 1, note)
    report(figures)
    assert (figures.lost, figures.doubled) == (0, 0)
    assert 0 < peak < MEMORY_LIMIT


def resident(service: Service) -> int:
    """Bytes of a process in memory."""
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    line = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM 0")
    return 1024 * int(line.split()[1])

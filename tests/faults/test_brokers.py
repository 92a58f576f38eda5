"""Three brokers that restart, die and hang, while the service runs and the click log grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.cluster import NODES, OFFSETS, TRANSACTIONS, LocalCluster
from tests.broker.fixture import Topics
from tests.faults.figures import Figures
from tests.faults.scale import scaled
from tests.faults.trial import Servers, Trial, trial

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

Report = Callable[[Figures], None]
Fault = Callable[[LocalCluster, Trial], int]


def rolling_restart(cluster: LocalCluster, live: Trial) -> int:
    """One node after another is stopped and started."""
    for node in cluster.nodes:
        node.restart()
        live.flowing()
    return NODES


def kill_leader(cluster: LocalCluster, live: Trial) -> int:
    return kill(cluster, live, live.run.log)


def kill_group_coordinator(cluster: LocalCluster, live: Trial) -> int:
    return kill(cluster, live, OFFSETS)


def kill_transaction_coordinator(cluster: LocalCluster, live: Trial) -> int:
    return kill(cluster, live, TRANSACTIONS)


def kill(cluster: LocalCluster, live: Trial, topic: str) -> int:
    """The leader of partition 0 dies, and comes back when another leads."""
    node = cluster.nodes[cluster.leader(topic)]
    live.mark()
    node.kill()
    live.flowing()
    node.start()
    live.flowing()
    return 1


def one_down(cluster: LocalCluster, live: Trial) -> int:
    """One node is away for a minute; the others suffice."""
    live.mark()
    cluster.nodes[0].kill()
    down = time.monotonic()
    live.flowing()
    time.sleep(max(0.0, down + 60.0 - time.monotonic()))
    live.flowing()
    cluster.nodes[0].start()
    live.flowing()
    return 1


def two_down(cluster: LocalCluster, live: Trial) -> int:
    """Two nodes are away for 25 s; nothing can be committed, nothing is lost."""
    for node in cluster.nodes[:2]:
        node.kill()
    time.sleep(25.0)
    live.mark()
    for node in cluster.nodes[:2]:
        node.launch()
    for node in cluster.nodes[:2]:
        node.wait_until_ready()
    live.flowing()
    return 2


def hang(cluster: LocalCluster, live: Trial) -> int:
    """A leader hangs with its connections open, and comes back after another was elected."""
    node = cluster.nodes[cluster.leader(live.run.log)]
    live.mark()
    node.pause()
    time.sleep(scaled(20.0, 5.0))
    node.resume()
    live.flowing()
    return 1


FAULTS: dict[str, tuple[str, Fault]] = {
    "rolling": ("rolling restart of three brokers", rolling_restart),
    "leader": ("`kill -9` of a leader of the click log", kill_leader),
    "coordinator": ("`kill -9` of the group's coordinator", kill_group_coordinator),
    "transactions": ("`kill -9` of the transactions' coordinator", kill_transaction_coordinator),
    "one-down": ("one of three brokers down for 60 s", one_down),
    "two-down": ("two of three brokers down for 25 s", two_down),
    "hang": ("a leader hangs (SIGSTOP)", hang),
}

QUICK = ("leader",)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.full) for name in FAULTS]
)
def test_brokers(
    cluster: LocalCluster, cluster_topics: Topics, tmp_path: Path, report: Report, name: str
) -> None:
    fault, inflict = FAULTS[name]
    servers = Servers(cluster.bootstrap_servers, cluster.bootstrap_servers)
    with trial(tmp_path, servers, cluster_topics) as live:
        service = live.start()
        live.flowing()
        began = time.monotonic()
        faults = inflict(cluster, live)
        silence = live.reader.silence(began, time.monotonic())
        cluster.heal()
        assert service.runs, service.tail()
        note = f"longest silence {silence:.1f} s; the process did not restart"
        report(live.finish(fault, faults, note))

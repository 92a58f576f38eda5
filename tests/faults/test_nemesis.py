"""Random faults of service, brokers and network, several at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.broker.cluster import LocalCluster
from tests.broker.fixture import Topics
from tests.faults.figures import Figures
from tests.faults.nemesis import torment
from tests.faults.scale import scaled
from tests.faults.trial import Servers, trial

SECONDS = scaled(600.0, 10.0)
SEED = int(os.environ.get("STREAMDUEL_NEMESIS_SEED", "1"))


@pytest.mark.kafka
@pytest.mark.slow
def test_nemesis(
    cluster: LocalCluster, cluster_topics: Topics, tmp_path: Path,
    report: Callable[[Figures], None],
) -> None:  # fmt: skip
    servers = Servers(cluster.bootstrap_servers, cluster.proxied_servers)
    with trial(tmp_path, servers, cluster_topics) as live:
        figures = torment(cluster, live, SEED, SECONDS)
    report(figures)
    assert figures.records > 0
    assert (figures.lost, figures.doubled) == (0, 0)

"""Commits while one of three brokers is dead: they wait for its successor, and succeed."""

import time

import pytest

from tests.broker.cluster import OFFSETS, TRANSACTIONS, LocalCluster
from tests.broker.fixture import Topics, on_both_clients
from tests.integration.kafka_connector.bed import (
    commit,
    gain,
    make_bed,
    start,
    work,
)

pytestmark = pytest.mark.kafka

# Without its repetition, a commit lasts as long as the controller takes to declare the broker dead
# (3 s in tests); a commit that cannot succeed any more is given up after 11 s at the earliest.
ALLOWED = 10.0


@on_both_clients
@pytest.mark.parametrize("role", ["transactions", "group", "log", "snapshots"])
def test_a_commit_outlives_the_leader(
    cluster: LocalCluster, cluster_topics: Topics, role: str, client: str
) -> None:
    bed = make_bed(cluster.bootstrap_servers, cluster_topics, partitions=1, client=client)
    with bed.stack:
        source = bed.source(session_timeout_ms=45_000, max_poll_interval_ms=60_000)
        start(source, gain(source, 1))
        outlet = bed.outlet(source)
        commit(outlet, work(0, 0, "before "))
        topics = {
            "transactions": TRANSACTIONS,
            "group": OFFSETS,
            "log": bed.topic,
            "snapshots": bed.snapshots,
        }
        cluster.nodes[cluster.leader(topics[role])].kill()
        began = time.monotonic()
        commit(outlet, work(0, 0, "during "))  # raises Fenced if it has to be repeated
        assert time.monotonic() - began < ALLOWED
        commit(outlet, work(0, 0, "after "))
        assert [value for _, value in bed.visible(bed.assignments)] == [
            b"before 0:0",
            b"during 0:0",
            b"after 0:0",
        ]

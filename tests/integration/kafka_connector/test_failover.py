"""Commits while one of three brokers is dead: they wait for its successor, and succeed."""

import pytest

from tests.broker.cluster import OFFSETS, TRANSACTIONS, LocalCluster
from tests.broker.fixture import Topics, on_both_clients
from tests.integration.kafka_connector.bed import commit, eventually, gain, make_bed, start, work

pytestmark = pytest.mark.kafka


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
        commit(outlet, work(0, 0, "during "))  # raises Fenced if it has to be repeated
        commit(outlet, work(0, 0, "after "))
        written = [b"before 0:0", b"during 0:0", b"after 0:0"]
        # Kafka answers before it marks the end of the transaction in each partition.
        eventually(lambda: [value for _, value in bed.visible(bed.assignments)] == written)

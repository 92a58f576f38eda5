"""A topic with fewer in-sync replicas than `min.insync.replicas`: transactions do not end."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

import pytest
from kafka import errors
from structlog.typing import EventDict

from streamduel.connector import no_failpoint
from streamduel.errors import ConnectorError, Fenced
from streamduel_kafka import obstacle, transaction
from streamduel_kafka.client import Admin, AdminOptions
from streamduel_kafka.connecting import connect
from streamduel_kafka.diagnosis import diagnose
from streamduel_kafka.outlet import open_outlet
from tests.broker.cluster import NODES, OFFSETS, TRANSACTIONS, LocalCluster
from tests.broker.fixture import Topics, on_both_clients
from tests.integration.kafka_connector.bed import (
    Bed,
    commit,
    eventually,
    gain,
    make_bed,
    snapshot,
    start,
    work,
)

pytestmark = pytest.mark.kafka


def refusing(admin: Admin, topic: str) -> list[int]:
    with suppress(errors.KafkaError):  # of a request to the node that was killed
        found = admin.find(topic)
        assert found is not None
        return found.refusing(NODES)
    return []


@contextmanager
def a_node_dead(cluster: LocalCluster, bed: Bed) -> Iterator[None]:
    """Kill a node that coordinates nothing, until the snapshots' topic refuses writes."""
    coordinators = {cluster.leader(OFFSETS), cluster.leader(TRANSACTIONS)}
    node = cluster.nodes[next(it for it in range(NODES) if it not in coordinators)]
    node.kill()
    settings = bed.snapshot_settings().client_settings
    with closing(connect(AdminOptions(), settings, 30.0)) as admin:
        eventually(lambda: refusing(admin, bed.snapshots) == [0, 1, 2, 3])
    yield
    node.start()


@on_both_clients
def test_the_topic_is_named_until_it_has_enough_replicas(
    cluster: LocalCluster, cluster_topics: Topics, client: str,
    monkeypatch: pytest.MonkeyPatch, logged: list[EventDict],
) -> None:  # fmt: skip
    bed = make_bed(cluster.bootstrap_servers, cluster_topics, client=client)
    bed.snapshots = cluster_topics(4, compacted=True, min_insync_replicas=NODES)
    told = (
        f"partitions 0, 1, 2, 3 of '{bed.snapshots}' have fewer in-sync replicas than "
        f"min.insync.replicas={NODES}"
    )
    sink, snapshots = bed.sink_settings(), bed.snapshot_settings()
    with bed.stack, ThreadPoolExecutor(1) as pool:
        source = bed.source(session_timeout_ms=120_000, max_poll_interval_ms=120_000)
        start(source, gain(source))
        outlet = bed.outlet(source)
        commit(outlet, work(0, 0))
        with a_node_dead(cluster, bed), monkeypatch.context() as patched:
            patched.setattr(transaction, "COMMIT_SECONDS", 5.0)  # it will time out
            patched.setattr(obstacle, "CONNECT_SECONDS", 30.0)  # the machine may be busy
            with pytest.raises(Fenced) as fenced:
                commit(outlet, work(0, 0))
            assert str(fenced.value).endswith(f" ({told})")
            with pytest.raises(ConnectorError) as ended:
                open_outlet(sink, snapshots, source, no_failpoint)
            assert str(ended.value).endswith(
                f"cannot be used: [Error 19] NotEnoughReplicasError: {told}."
            )
            findings = diagnose(bed.source_settings(), sink, snapshots).findings
            (found,) = [it for it in findings if it.name == "snapshots.topic"]
            assert (found.verdict, found.sentence.startswith(f"{told}: ")) == ("failed", True)
            loading = pool.submit(outlet.load, 0)
            eventually(lambda: any(it["event"] == "snapshot not read yet" for it in logged))
        assert loading.result(60) == snapshot(0, experiment=b"0:0")
    failed = [it for it in logged if it["event"] == "snapshot not read yet"]
    assert failed[0]["error"] == f"[Error 19] NotEnoughReplicasError: {told}"
    assert "advice" not in failed[0]

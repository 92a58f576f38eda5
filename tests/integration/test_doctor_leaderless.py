"""`streamduel doctor` while a broker is dead that has the only replica of some partitions."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import pytest
from kafka import errors

from streamduel.config import load
from streamduel.doctor import examine
from streamduel_kafka.client import Admin, AdminOptions
from streamduel_kafka.connecting import connect
from tests.broker.cluster import LocalCluster
from tests.broker.fixture import Topics, on_both_clients
from tests.faults.kafka_runs import configure
from tests.integration.kafka_connector.bed import eventually

pytestmark = pytest.mark.kafka


def leaderless(admin: Admin, topic: str) -> list[int]:
    with suppress(errors.KafkaError):  # of a request to the node that was killed
        found = admin.find(topic)
        assert found is not None
        return [*found.leaderless]
    return []


@on_both_clients
def test_partitions_without_a_leader_are_named(
    cluster: LocalCluster, cluster_topics: Topics, tmp_path: Path, client: str
) -> None:
    log, other = f"clicks-{client}", f"clicks-of-others-{client}"
    cluster.create_unreplicated(log, [0, 1, 2, 0])
    cluster.create_unreplicated(other, [0, 2])
    run = configure(
        tmp_path / "run", cluster.bootstrap_servers, log, cluster_topics, {"client": client},
        experiments={"search": {"arms": ["bm25", "ltr-v1"]}},
    )  # fmt: skip
    settings = {
        "client": client, "security_protocol": "PLAINTEXT",
        "bootstrap_servers": cluster.bootstrap_servers.split(","),
    }  # fmt: skip
    with closing(connect(AdminOptions(), settings, 30.0)) as admin:
        cluster.nodes[2].kill()
        eventually(lambda: leaderless(admin, other) == [1])
    found = [*examine(load(run.config))]
    told = {it.name: (it.verdict, it.sentence) for it in found if it.name != "other topics"}
    verdict, sentence = told["source.topic"]
    assert verdict == "failed"
    assert sentence.startswith(f"partition 2 of '{log}' has no leader: ")
    assert told["sink.assignments"][0] == told["snapshots.topic"][0] == "fine"
    # Another finding counts the topics, if other tests have left more than are looked into.
    elsewhere = {it.sentence: it.verdict for it in found if it.name == "other topics"}
    (sentence,) = [each for each in elsewhere if "not looked into: " in each]
    assert elsewhere[sentence] == "unknown"
    assert f"partition 1 of '{other}'" in sentence

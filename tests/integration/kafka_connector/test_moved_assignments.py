"""Assignments in another topic than before: it gets the present one of every experiment."""

import json
import time
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from structlog.testing import capture_logs

from streamduel.config import Config
from streamduel.connector import PartitionCommit, SourceOptions
from streamduel.stream.replay import replay
from streamduel.stream.runner import Runner
from streamduel.testing import duel
from streamduel_kafka.opening import open_source
from tests.broker.fixture import Topics, on_both_clients
from tests.integration.kafka_connector.bed import Bed, commit, eventually, gain, start, work

pytestmark = [pytest.mark.kafka, on_both_clients]

EXPERIMENTS: dict[str, dict[str, Any]] = {
    "finished": {"arms": ["x", "y"], "stop": {"confidence": 0.9}, "decide_every": 5},
    "frozen": {"guardrails": {"freeze_pair": ["x", "y"]}},
    "running": {"policy": {"name": "rucb"}, "decide_every": 10},
}
CONFIG = Config.model_validate(
    {
        "source": {}, "sink": {}, "snapshots": {},
        "experiments": {name: {"arms": ["x", "y", "z"], **it} for name, it in EXPERIMENTS.items()},
    }
)  # fmt: skip


def produce(bed: Bed, begin: int, end: int) -> None:
    with KafkaProducer(bootstrap_servers=bed.servers) as producer:
        for name in EXPERIMENTS:
            for n in range(begin, end):
                producer.send(bed.topic, duel(name, n, "x", "y", "a"), key=name.encode())
        producer.flush()


def serve(bed: Bed, assignments: str) -> dict[str, dict[str, Any]]:
    """Fold to the present end; the newest assignment of each experiment in the topic."""
    bed.assignments = assignments
    source = open_source(bed.source_settings(), SourceOptions())
    with closing(source), closing(bed.outlet(source)) as outlet:
        Runner(CONFIG, source, outlet, time.monotonic).run(lambda: False, until_end=True)
    found = [json.loads(value) for _, value in bed.visible(assignments)]
    return {it["experiment"]: it for it in found}


def warnings(logs: Any) -> list[tuple[str, str]]:
    changed = [line for line in logs if line["event"] == "assignments topic changed"]
    return sorted({(line["former"].split()[0], line["present"].split()[0]) for line in changed})


def test_a_service_that_publishes_in_another_topic_and_returns(bed: Bed, topics: Topics) -> None:
    former, other = bed.assignments, topics(2, compacted=True)
    produce(bed, 0, 40)
    before = serve(bed, former)
    assert before.keys() == EXPERIMENTS.keys()
    assert before["finished"]["status"] == "finished"
    with capture_logs() as logs:
        assert serve(bed, other) == before
    assert warnings(logs) == [(former, other)]
    produce(bed, 40, 80)
    with capture_logs() as logs:
        present = serve(bed, other)
    assert warnings(logs) == []
    assert present["finished"] == before["finished"]
    assert present["running"]["epoch"] > before["running"]["epoch"]
    assert replay(CONFIG, bed.log(), bed.archive()).difference is None
    with capture_logs() as logs:
        assert serve(bed, former) == present
    assert warnings(logs) == [(other, former)]
    assert replay(CONFIG, bed.log(), bed.archive()).difference is None


def test_the_topic_was_deleted_and_created_again(bed: Bed) -> None:
    source = bed.source()
    start(source, gain(source))
    with closing(bed.outlet(source)) as outlet:
        commit(outlet, work(0, 5))
        assert not moved(outlet)
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        admin.delete_topics([bed.assignments])
        eventually(lambda: bed.assignments not in admin.list_topics())
        settings = {"num_partitions": 2, "configs": {"cleanup.policy": "compact"}}
        admin.create_topics({bed.assignments: {**settings, "replication_factor": 1}})
        admin.wait_for_topics([bed.assignments])
    outlet = bed.outlet(source)
    assert moved(outlet)
    commit(outlet, PartitionCommit(0, 5, entries={"experiment": b"repaired"}))
    assert moved(outlet)  # what was published is still not there
    commit(outlet, work(0, 6))
    assert not moved(outlet)


def moved(outlet: Any) -> bool:
    return bool(outlet.load(0).moved)

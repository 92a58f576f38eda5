"""`kill -9` and a broker's restart on a real Kafka: nothing lost, nothing doubled."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from tests.broker.fixture import Broker, Topics
from tests.faults.lives import ROOT, hashes, inspect, live, streamduel
from tests.logs import ARMS, values

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RECORDS = 500_000
KILLS = 20
PARTITIONS = 4
PATIENCE = 90.0
"""Seconds for a transaction to be given up; the broker does so after 30, and looks every 10."""
EXPERIMENTS = [f"experiment-{number}" for number in range(6)]
QUICK_RECORDS = 60_000


class Run(NamedTuple):
    """One configuration with outputs, snapshots and a group of its own."""

    config: Path
    assignments: str
    dead_letters: str


def configure(folder: Path, servers: str, topic: str, topics: Topics) -> Run:
    folder.mkdir()
    assignments, dead_letters = topics(2, compacted=True), topics(2)
    document = {
        "source": {
            "connector": "kafka", "bootstrap_servers": servers, "topic": topic,
            "group": assignments, "session_timeout_ms": 6000, "max_poll_records": 2000,
        },
        "sink": {"connector": "kafka", "assignments": assignments, "dead_letters": dead_letters},
        "snapshots": {"connector": "kafka", "topic": topics(PARTITIONS, compacted=True)},
        "commit": {"interval_ms": 50},
        "dedupe": {"window_records": 20_000, "window_ms": 3_600_000},
        "monitoring": None,
        "experiments": {
            name: {"arms": list(ARMS), "decide_every": 20, "seed": seed}
            for seed, name in enumerate(EXPERIMENTS)
        },
    }  # fmt: skip
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(document))
    return Run(config, assignments, dead_letters)


def produce(servers: str, topic: str, records: int) -> None:
    """The click log, keyed by experiment, with timestamps that do not depend on the clock."""
    with KafkaProducer(bootstrap_servers=servers, linger_ms=20, batch_size=2**18) as producer:
        for number, (experiment, value) in enumerate(values(1, records, EXPERIMENTS)):
            stamp = 1_790_000_000_000 + number
            producer.send(topic, value, key=experiment.encode(), timestamp_ms=stamp)


def read(servers: str, topic: str) -> Iterator[dict[str, Any]]:
    """Everything that a `read_committed` reader sees, partition by partition."""
    for record in records(servers, topic):
        yield json.loads(record.value)


def records(servers: str, topic: str) -> Iterator[Any]:
    """The same as kafka-python's records, with key and place.

    A process that was killed in the midst of a transaction keeps readers from all that comes after
    it until the broker gives the transaction up. So what counts as the end is what was written.
    """
    isolated = (
        KafkaConsumer(bootstrap_servers=servers, isolation_level=f"read_{level}")
        for level in ("committed", "uncommitted")
    )
    with closing(next(isolated)) as consumer, closing(next(isolated)) as writer:
        for partition in sorted(consumer.partitions_for_topic(topic)):
            at = TopicPartition(topic, partition)
            consumer.assign([at])
            consumer.seek_to_beginning(at)
            end = writer.end_offsets([at])[at]
            deadline = time.monotonic() + PATIENCE
            while consumer.position(at) < end:
                assert time.monotonic() < deadline, f"{at} is held up by a transaction"
                yield from consumer.poll(timeout_ms=200, max_records=5000).get(at, ())


def visible(run: Run, servers: str) -> tuple[Any, Any, Any]:
    """Assignments in the order of each experiment, dead letters in that of the log, hashes."""
    assignments = defaultdict(list)
    for assignment in read(servers, run.assignments):
        assignments[assignment["experiment"]].append(assignment)
    letters = sorted(
        read(servers, run.dead_letters), key=lambda letter: (letter["partition"], letter["offset"])
    )
    return dict(assignments), letters, hashes(inspect(run.config))


def make_log(kafka: Broker, records: int) -> str:
    """A topic that is kept for ever, for its timestamps lie in the past, with a click log."""
    topic = f"clicks-{time.time_ns()}"
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1, topic_configs={"retention.ms": "-1"})])
    produce(kafka.bootstrap_servers, topic, records)
    return topic


@pytest.fixture(scope="module")
def log(kafka: Broker) -> str:
    return make_log(kafka, RECORDS)


@pytest.fixture(scope="module")
def short_log(kafka: Broker) -> str:
    return make_log(kafka, QUICK_RECORDS)


def test_twenty_kills_and_a_broker_restart_leave_no_trace(
    kafka: Broker, topics: Topics, log: str, tmp_path: Path
) -> None:
    servers = kafka.bootstrap_servers
    calm = configure(tmp_path / "calm", servers, log, topics)
    stormy = configure(tmp_path / "stormy", servers, log, topics)
    assert not live(calm.config)
    rng = random.Random(20)
    kills = sum(live(stormy.config, seconds=rng.uniform(0.0, 0.12)) for _ in range(KILLS))
    assert kills == KILLS, "the log was at its end before the last kill"
    if kafka.can_restart:
        restart_during_a_life(kafka, stormy)
    assert not live(stormy.config)
    assert visible(stormy, servers) == visible(calm, servers)
    replayed = streamduel("replay", stormy.config)
    assert replayed.returncode == 0, replayed.stdout


def restart_during_a_life(kafka: Broker, run: Run) -> None:
    """The service lives through it: same process before and after."""
    service = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.victim", str(run.config), "{}"], cwd=ROOT
    )
    time.sleep(1.5)  # it has started to read, or is about to: either is a good moment
    kafka.restart()
    assert service.wait(timeout=240) == 0


STEPS = [
    "before write", "kafka: transaction begun", "kafka: outputs sent", "before finish",
    "kafka: records written", "kafka: offsets written", "kafka: committed", "after finish",
]  # fmt: skip


def test_a_kill_at_any_step_of_the_commit_leaves_no_trace(
    kafka: Broker, topics: Topics, short_log: str, tmp_path: Path
) -> None:
    servers = kafka.bootstrap_servers
    calm = configure(tmp_path / "calm", servers, short_log, topics)
    stormy = configure(tmp_path / "stormy", servers, short_log, topics)
    assert not live(calm.config)
    for step in STEPS:
        assert live(stormy.config, step=step, times=2), step
    assert not live(stormy.config)
    assert visible(stormy, servers) == visible(calm, servers)


def test_a_tampered_assignment_is_found_by_replay(
    kafka: Broker, topics: Topics, short_log: str, tmp_path: Path
) -> None:
    run = configure(tmp_path / "run", kafka.bootstrap_servers, short_log, topics)
    assert not live(run.config)
    newest = list(read(kafka.bootstrap_servers, run.assignments))[-1]
    forged = {**newest, "duels": newest["duels"] + 1}
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        producer.send(
            run.assignments, json.dumps(forged).encode(), key=newest["experiment"].encode()
        )
    replayed = streamduel("replay", run.config)
    assert replayed.returncode == 1
    assert (
        f"epoch {newest['epoch']} of '{newest['experiment']}' was published twice"
        in replayed.stdout
    )

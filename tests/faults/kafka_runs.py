"""Configurations and click logs on a real Kafka, and what runs on them make visible."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic

from tests.broker.fixture import CLIENT, Broker, Topics
from tests.faults.files_runs import POLICY
from tests.faults.processes import hashes, inspect
from tests.logs import ARMS, values

PARTITIONS = 4
EXPERIMENTS = [f"experiment-{number}" for number in range(6)]

FIRST_STAMP = 1_790_000_000_000
"""The timestamp of the first record, in milliseconds; it does not depend on the clock."""

PATIENCE = 180.0
"""Seconds until the broker has aborted a transaction; it does after 30, and checks every 10."""


class Run(NamedTuple):
    """A configuration with outputs, snapshots and a group of its own."""

    servers: str
    config: Path
    log: str
    group: str
    assignments: str
    dead_letters: str


def configure(
    folder: Path, servers: str, log: str, topics: Topics,
    source: Mapping[str, Any] | None = None, **sections: Any,
) -> Run:  # fmt: skip
    """Write a configuration; `source` adds to that section, the other sections replace defaults."""
    folder.mkdir(exist_ok=True)
    assignments, dead_letters = topics(2, compacted=True), topics(2)
    document = {
        "source": {
            "connector": "kafka", "bootstrap_servers": servers, "topic": log,
            "group": assignments, "client": CLIENT, **(source or {}),
        },
        "sink": {"connector": "kafka", "assignments": assignments, "dead_letters": dead_letters},
        "snapshots": {"connector": "kafka", "topic": topics(PARTITIONS, compacted=True)},
        "commit": {"interval_ms": 50},
        "monitoring": None,
        **sections,
    }  # fmt: skip
    config = folder / "config.yaml"
    config.write_text(yaml.safe_dump(document))
    return Run(servers, config, log, assignments, assignments, dead_letters)


def configure_faults(
    folder: Path,
    servers: str,
    log: str,
    topics: Topics,
    window_records: int = 20_000,
    client: str = CLIENT,
) -> Run:
    """A configuration for the click logs of `make_log`: short timeouts, many small polls."""
    source = {"session_timeout_ms": 6000, "max_poll_records": 2000, "client": client}
    return configure(
        folder, servers, log, topics, source,
        dedupe={"window_records": window_records, "window_ms": 3_600_000},
        experiments={
            name: {"arms": list(ARMS), "policy": POLICY, "decide_every": 20, "seed": seed}
            for seed, name in enumerate(EXPERIMENTS)
        },
    )  # fmt: skip


def make_log(kafka: Broker, records: int) -> str:
    """A click log with timestamps that do not depend on the clock.

    They are in the past, so the topic has no retention.
    """
    topic = f"clicks-{time.time_ns()}"
    servers = kafka.bootstrap_servers
    with closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
        admin.create_topics([NewTopic(topic, PARTITIONS, 1, topic_configs={"retention.ms": "-1"})])
    with KafkaProducer(bootstrap_servers=servers, linger_ms=20, batch_size=2**18) as producer:
        for number, (experiment, value) in enumerate(values(1, records, EXPERIMENTS)):
            stamp = FIRST_STAMP + number
            producer.send(topic, value, key=experiment.encode(), timestamp_ms=stamp)
    return topic


def records(servers: str, topic: str) -> Iterator[Any]:
    """Everything that a `read_committed` reader sees, partition by partition.

    The open transaction of a killed process hides all later records until the broker aborts it.
    Therefore the end is that of a `read_uncommitted` reader.
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
                assert time.monotonic() < deadline, f"{at} has an open transaction"
                yield from consumer.poll(timeout_ms=200, max_records=5000).get(at, ())


def read(servers: str, topic: str) -> Iterator[dict[str, Any]]:
    """The decoded values of `records`."""
    for record in records(servers, topic):
        yield json.loads(record.value)


def written(run: Run) -> int:
    """How far the assignments' topic is written, open transactions included."""
    with closing(KafkaConsumer(bootstrap_servers=run.servers)) as consumer:
        numbers = consumer.partitions_for_topic(run.assignments)
        at = [TopicPartition(run.assignments, number) for number in numbers]
        return sum(consumer.end_offsets(at).values())


def visible(run: Run, report: dict[str, Any] | None = None) -> tuple[Any, Any, Any]:
    """Assignments by experiment, dead letters in the order of the click log, state hashes.

    Assignments and dead letters are bytes, as `read_committed` readers see them.

    Args:
        run: the run.
        report: its `inspect`, if that was called before.
    """
    assignments = defaultdict(list)
    for record in records(run.servers, run.assignments):
        assignments[record.key].append(record.value)
    letters = [record.value for record in records(run.servers, run.dead_letters)]
    letters.sort(key=_place)
    return dict(assignments), letters, hashes(report or inspect(run.config))


def _place(letter: bytes) -> tuple[int, int]:
    document = json.loads(letter)
    return document["partition"], document["offset"]

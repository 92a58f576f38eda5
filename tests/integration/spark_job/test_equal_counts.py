"""The Spark job on a real Kafka: what streamduel learns from its counts is what it learns alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer

from tests.broker.fixture import Broker, Topics
from tests.faults.kafka_runs import configure, read
from tests.faults.processes import fork, inspect, run_service, was_killed
from tests.integration.spark_job.worker import run_job
from tests.raw_log import (
    ARMS,
    DEDUPE_WINDOW_MS,
    EXPERIMENTS,
    JOIN_WINDOW_MS,
    Raw,
    raw_log,
)

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SEED = 11
IMPRESSIONS = 6_000


def append(servers: str, topic: str, records: list[Raw]) -> None:
    with KafkaProducer(bootstrap_servers=servers, linger_ms=20) as producer:
        sent = [
            producer.send(topic, it.value, key=it.experiment.encode(), timestamp_ms=it.timestamp)
            for it in records
        ]
        for future in sent:
            future.get(60)


def learned(config: Path) -> dict[str, Any]:
    """Of each experiment, the wins and the ties of each pair, and the duels of each segment."""
    learned = {}
    for name, found in inspect(config)["experiments"].items():
        ties = [(pair["a"], pair["b"], pair["ties"]) for pair in found["pairs"]]
        segments = {
            kind: {name: part["duels"] for name, part in parts.items()}
            for kind, parts in found["segments"].items()
        }
        learned[name] = (found["wins"], ties, segments)
    return learned


def test_after_kills_too(kafka: Broker, topics: Topics, tmp_path: Path) -> None:
    servers = kafka.bootstrap_servers
    raw, counted = topics(4), topics(4)
    common: dict[str, Any] = {
        "experiments": {
            name: {"arms": ARMS, "join_window_ms": JOIN_WINDOW_MS, **settings}
            for name, settings in EXPERIMENTS.items()
        },
        "dedupe": {"window_ms": DEDUPE_WINDOW_MS},
    }
    alone = configure(tmp_path / "alone", servers, raw, topics, **common)
    spark = {"topic": raw, "checkpoint": "checkpoint", "slice_ms": 1000, "partitions": 2}
    scaled = configure(tmp_path / "scaled", servers, counted, topics, **common, spark=spark)
    log = raw_log(SEED, IMPRESSIONS)

    append(servers, raw, log[: len(log) // 2])
    assert was_killed(fork(run_job, scaled.config, "before"))
    append(servers, raw, log[len(log) // 2 :])
    assert was_killed(fork(run_job, scaled.config, "after"))
    assert not was_killed(fork(run_job, scaled.config))
    for run in (alone, scaled):
        assert not run_service(run.config)

    assert learned(scaled.config) == learned(alone.config)
    ids = [(record["experiment"], record["id"]) for record in read(servers, counted)]
    assert len(ids) == len(set(ids)), "a batch was written twice"
    expected = {place(it): it for it in read(servers, alone.dead_letters)}
    found = {place(it): it for it in read(servers, scaled.dead_letters) if it["topic"] == raw}
    # What the job cannot know: arms that were added later, the partition that is the home of an
    # experiment, and the text of a click that turns out not to fit its impression.
    unknown = {
        where
        for where, it in expected.items()
        if it["reason"] in {"unknown_arm", "wrong_partition"} or "the click" in it["error"]
    }
    assert found.keys() - unknown == expected.keys() - unknown
    assert all(
        found[where]["reason"] == expected[where]["reason"] for where in found.keys() - unknown
    )


def place(letter: dict[str, Any]) -> tuple[int, int]:
    return letter["partition"], letter["offset"]

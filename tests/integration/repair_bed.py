"""A click log to repair, and the commands that fold, repair and replay it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import yaml
from kafka import KafkaAdminClient, KafkaProducer, errors

from tests.faults.kafka_runs import EXPERIMENTS, PATIENCE, Run
from tests.faults.processes import inspect, streamduel
from tests.logs import values

RECORDS = values(3, 2300, EXPERIMENTS)
STAMP = 1_790_000_000_000

Configure = Callable[[str], Run]


Change = Callable[[dict[str, Any]], object]


def changed(run: Run, name: str, change: Change) -> Run:
    """A copy of a configuration, changed."""
    document = yaml.safe_load(run.config.read_text())
    change(document)
    config = run.config.with_name(name)
    config.write_text(yaml.safe_dump(document))
    return run._replace(config=config)


def produce(run: Run, begin: int, end: int) -> None:
    with KafkaProducer(bootstrap_servers=run.servers) as producer:
        for number, (experiment, value) in enumerate(RECORDS[begin:end], begin):
            producer.send(run.log, value, key=experiment.encode(), timestamp_ms=STAMP + number)


def recreate(run: Run, topic: str | None = None, partitions: int = 4) -> None:
    topic = topic or run.log
    with KafkaAdminClient(bootstrap_servers=run.servers) as admin:
        admin.delete_topics([topic])
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                admin.create_topics(
                    {topic: {"num_partitions": partitions, "configs": {"retention.ms": "-1"}}},
                    wait_for_metadata=True,
                )
                break
            except errors.TopicAlreadyExistsError:
                assert time.monotonic() < deadline


def fold(run: Run) -> None:
    done = streamduel("run", run.config, "--until-end")
    assert done.returncode == 0, done.stderr


def refused(run: Run) -> str:
    done = streamduel("run", run.config, "--until-end")
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


def repaired(*arguments: object) -> str:
    done = streamduel("repair", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def replayed(run: Run) -> str:
    done = streamduel("replay", run.config)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def duels(run: Run) -> int:
    return sum(found["duels"] for found in inspect(run.config)["experiments"].values())


def write_action(run: Run, experiment: str, action: str) -> None:
    done = streamduel("control", run.config, experiment, action)
    assert done.returncode == 0, done.stderr

"""Topics for measurements, filled with duels of one experiment per partition."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer

from benchmarks.measure import tell
from benchmarks.records import arms, duel_values
from streamduel_kafka.partitions import home_partition

_numbers = itertools.count(1)

PRODUCER: dict[str, Any] = {
    "linger_ms": 20,
    "batch_size": 256 * 1024,
}


def create_topic(
    servers: str, topic: str, partitions: int, configs: Mapping[str, str] | None = None
) -> None:
    """Create a topic."""
    described = {
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": dict(configs or {}),
    }
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        admin.create_topics({topic: described})
        admin.wait_for_topics([topic])


def experiments(partitions: int) -> list[str]:
    """An experiment's name for each partition, in order."""
    homes: dict[int, str] = {}
    for number in itertools.count():
        name = f"search-{number}"
        homes.setdefault(home_partition(name, partitions), name)
        if len(homes) == partitions:
            return [homes[partition] for partition in range(partitions)]
    raise AssertionError("unreachable")


def fill(
    servers: str,
    topic: str,
    partitions: int,
    count: int,
    n_arms: int,
    made: Callable[[int, int, str, int], Iterator[bytes]] = duel_values,
) -> None:
    """Write `count` records, by default duels, spread evenly over the partitions."""
    tell(f"filling topic '{topic}' with {count:,} records")
    logs: list[Iterator[bytes]] = []
    names = experiments(partitions)
    for partition, name in enumerate(names):
        logs.append(made(count // partitions, n_arms, name, partition))
    with KafkaProducer(bootstrap_servers=servers, **PRODUCER) as producer:
        for values in zip(*logs, strict=True):
            for partition, value in enumerate(values):
                producer.send(topic, value, names[partition].encode(), partition=partition)
        producer.flush()


def write_configuration(
    directory: Path, servers: str, topic: str, names: Sequence[str], **settings: Any
) -> Path:
    """Write the configuration of a service with its own group and output topics.

    Args:
        directory: to write it to.
        servers: of the broker.
        topic: the click log.
        names: the experiments.
        **settings: `interval_ms`, `n_arms`, `decide_every` and `client`; `run`, the name of its
            group and outputs, and `instance`, its own name in the group.
    """
    run = settings.get("run") or f"run-{next(_numbers)}"
    instance = settings.get("instance", run)
    experiment = {
        "arms": arms(settings.get("n_arms", 6)),
        "decide_every": settings.get("decide_every", 100),
    }
    commit = {"interval_ms": settings["interval_ms"]} if "interval_ms" in settings else {}
    document = {
        "source": {
            "connector": "kafka",
            "client": settings.get("client", "kafka-python"),
            "bootstrap_servers": servers,
            "topic": topic,
            "group": run,
            "instance": instance,
            "create_topics": True,
        },
        "sink": {
            "connector": "kafka",
            "assignments": f"{run}-assignments",
            "dead_letters": f"{run}-dead-letters",
        },
        "snapshots": {"connector": "kafka", "topic": f"{run}-snapshots"},
        "commit": commit,
        "monitoring": None,
        "experiments": dict.fromkeys(names, experiment),
    }
    path = directory / f"{instance}.yaml"
    path.write_text(json.dumps(document))
    return path

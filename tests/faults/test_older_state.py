"""An upgrade: the service continues the state that an earlier release has left in Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from streamduel.stream.snapshot import FORMAT
from tests.broker.fixture import Broker, Topics
from tests.faults.figures import Figures
from tests.faults.kafka_runs import Run, configure, records, visible
from tests.faults.processes import run_service
from tests.unit.stream.test_older_formats import SAVED
from tests.unit.stream.test_older_formats import records as records_of

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PARTITIONS = 2
STEPS = ["before write", "kafka: outputs sent", "before finish", "after finish"]


def write_log(servers: str, topic: str) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for partition in range(PARTITIONS):
            for record in records_of(partition):
                producer.send(topic, record.value, record.key, [], partition, record.timestamp)


def saved() -> list[dict[str, Any]]:
    """The records of the snapshots' topic as release 0.1 left it."""
    return [json.loads(line) for line in (SAVED / "kafka_entries.jsonl").read_text().splitlines()]


def leave_state(run: Run, topic: str) -> dict[int, int]:
    """Write the state of release 0.1, and the group's offsets; the next offset of each partition.

    The state names its click log, which has another name here.
    """
    following: dict[int, int] = {}
    with KafkaProducer(bootstrap_servers=run.servers) as producer:
        for entry in saved():
            value = entry["value"]
            if entry["key"] == "partition":
                value = json.dumps(json.loads(value) | {"topic": run.log})
            if entry["key"] == "$next_offset":
                following[entry["partition"]] = int(value)
            producer.send(
                topic, value.encode(), entry["key"].encode(), partition=entry["partition"]
            )
    group = {"bootstrap_servers": run.servers, "group_id": run.group, "enable_auto_commit": False}
    with closing(KafkaConsumer(**group)) as consumer:
        at = {TopicPartition(run.log, number): it for number, it in following.items()}
        consumer.assign(list(at))
        consumer.commit({place: OffsetAndMetadata(it, "", -1) for place, it in at.items()})
    return following


def formats(servers: str, topic: str) -> set[int]:
    """Those of the entries that the snapshots' topic has now."""
    newest = {(record.partition, record.key): record.value for record in records(servers, topic)}
    return {
        json.loads(value)["format"]
        for (_, key), value in newest.items()
        if value is not None and not key.startswith(b"$")
    }


def epochs(entries: list[dict[str, Any]]) -> dict[bytes, int]:
    """The epoch of each experiment in the state of release 0.1."""
    states = [json.loads(it["value"]) for it in entries if it["key"].startswith("experiment/")]
    return {it["experiment"].encode(): it["state"]["assignment"]["epoch"] for it in states}


def test_an_upgrade_from_format_6(
    kafka: Broker, topics: Topics, tmp_path: Path, report: Callable[[Figures], None]
) -> None:
    servers, log = kafka.bootstrap_servers, topics(PARTITIONS, retention_ms=-1)
    write_log(servers, log)
    written = yaml.safe_load((SAVED / "config.yaml").read_text())
    sections = {name: written[name] for name in ("dedupe", "experiments")}
    topic, other = (topics(PARTITIONS, compacted=True) for _ in range(2))
    upgraded, whole = (
        configure(
            tmp_path / name, servers, log, topics, **sections,
            snapshots={"connector": "kafka", "topic": snapshots},
        )
        for name, snapshots in (("upgraded", topic), ("whole", other))
    )  # fmt: skip
    following = leave_state(upgraded, topic)
    assert formats(servers, topic) == {6}
    for step in STEPS:
        assert run_service(upgraded.config, step=step), step
        # A commit has the partitions that are restored: the other one may still be of format 6.
        assert (FORMAT if step == "after finish" else 6) in formats(servers, topic)
    assert not run_service(upgraded.config)
    assert not run_service(whole.config)
    assert formats(servers, topic) == {FORMAT}
    (found, letters, hashes), expected = visible(upgraded), visible(whole)
    assert hashes == expected[2]
    before = epochs(saved())
    later = {
        name: [it for it in values if json.loads(it)["epoch"] > before[name]]
        for name, values in expected[0].items()
    }
    assert found == {name: values for name, values in later.items() if values}
    assert sum(map(len, found.values())) > 20
    assert letters == [
        it for it in expected[1]
        if (place := json.loads(it))["offset"] >= following[place["partition"]]
    ]  # fmt: skip
    note = "a kill in the first commit; the next commit has the present format"
    total = sum(len(records_of(partition)) for partition in range(PARTITIONS))
    report(Figures("upgrade from the state of release 0.1", total, len(STEPS), 0, 0, (), note))

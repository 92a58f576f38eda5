"""`streamduel repair` on a real Kafka: the service refuses, is repaired, and a replay agrees."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaAdminClient

from streamduel.cli import repair, repair_opening
from streamduel.config import load
from streamduel.doctor import examine
from streamduel.errors import ConnectorError
from tests.broker.fixture import Broker, Topics, on_both_clients
from tests.faults.kafka_runs import EXPERIMENTS, PATIENCE, Run, configure_faults, visible
from tests.faults.processes import inspect, streamduel
from tests.faults.services import Service
from tests.integration.repair_bed import (
    Configure,
    changed,
    duels,
    fold,
    produce,
    recreate,
    refused,
    repaired,
    replayed,
    write_action,
)

pytestmark = pytest.mark.kafka


def control(run: Run, experiment: str, action: str, status: str) -> None:
    """Write an action, and let the service apply it."""
    write_action(run, experiment, action)
    service = Service(run.config, run.config.with_name("service.log"))
    try:
        deadline = time.monotonic() + PATIENCE
        while inspect(run.config)["experiments"][experiment]["status"] != status:
            assert time.monotonic() < deadline, service.tail()
        assert service.stop() == 0
    finally:
        service.kill()


def wait_until_restored(service: Service, partitions: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while service.log.read_text().count("partition restored") < partitions:
        assert time.monotonic() < deadline, service.tail()
        time.sleep(0.1)


def test_a_recreated_topic_is_refused_and_continued(configure: Configure) -> None:
    """1,300 records, then the topic is deleted and created again with a thousand more."""
    run, whole = configure("run"), configure("whole")
    produce(run, 0, 1300)
    fold(run)
    before = duels(run)
    recreate(run)
    produce(run, 1300, 2300)
    refusal = f"'{run.log}' with the id "  # of the partition whose snapshot arrives first
    sentence = refused(run)
    assert refusal in sentence
    assert "streamduel repair new-log" in sentence
    assert "continues at offset 0" in repaired("new-log", run.config, "--dry-run")
    assert refusal in refused(run)
    repaired("new-log", run.config)
    fold(run)
    assert replayed(run).startswith("1,000 records folded again")
    fold(whole)  # the new topic alone
    assert duels(run) == before + duels(whole)
    for published in visible(run)[0].values():
        epochs = [json.loads(assignment)["epoch"] for assignment in published]
        assert epochs == sorted(set(epochs))


@on_both_clients
def test_a_return_to_a_former_topic_is_continued(
    kafka: Broker, topics: Topics, tmp_path: Path, client: str
) -> None:
    """From topic A to B and back, with one group: its offset of A is older than the snapshot."""
    a, b = topics(4), topics(4)
    run = configure_faults(tmp_path / "run", kafka.bootstrap_servers, a, topics, client=client)
    other = changed(run, "b.yaml", lambda it: it["source"].update(topic=b))._replace(log=b)
    produce(run, 0, 500)
    produce(other, 500, 900)
    fold(run)
    before = duels(run)
    assert "streamduel repair new-log" in refused(other)
    repaired("new-log", other.config)
    fold(other)
    gained = duels(other) - before
    assert f"belongs to '{b}' (found in place of '{a}')" in refused(run)
    assert "continues at offset 0" in repaired("new-log", run.config)
    fold(run)
    assert duels(run) == before + gained + before  # the records of A are folded again
    assert replayed(run).startswith("500 records folded again")


@pytest.mark.parametrize("by", ["the same name", "another name"])
def test_a_control_topic_that_was_lost_too_begins_again(
    configure: Configure, topics: Topics, by: str
) -> None:
    former = topics(4)
    run = changed(
        configure("run"), "controlled.yaml", lambda it: it["source"].update(control_topic=former)
    )
    experiment = EXPERIMENTS[0]
    produce(run, 0, 300)
    fold(run)
    control(run, experiment, "pause", "paused")
    control(run, experiment, "resume", "running")
    recreate(run)
    if by == "the same name":
        recreate(run, former)
    else:
        new = topics(4)
        run = changed(run, "new.yaml", lambda it: it["source"].update(control_topic=new))
    shown = repaired("new-log", run.config)
    assert "': read from its beginning.\n" in shown
    control(run, experiment, "pause", "paused")
    replayed(run)


@on_both_clients
def test_a_recreated_control_topic_is_refused_and_begins_again(
    kafka: Broker, topics: Topics, tmp_path: Path, client: str
) -> None:
    """The click log stays; the new control topic soon has as many records as the former one."""
    plain = configure_faults(
        tmp_path / "run", kafka.bootstrap_servers, topics(4), topics, client=client
    )
    controls = topics(4)
    run = changed(plain, "control.yaml", lambda it: it["source"].update(control_topic=controls))
    experiment = EXPERIMENTS[0]
    produce(run, 0, 300)
    fold(run)
    before = duels(run)
    control(run, experiment, "pause", "paused")
    service = Service(run.config, tmp_path / "recreated.log")
    try:
        wait_until_restored(service, 4)
        recreate(run, controls)
        assert service.process.wait(PATIENCE) == 1
        assert f"topic '{controls}' was deleted and created again" in service.tail()
    finally:
        service.kill()
    write_action(run, experiment, "resume")
    write_action(run, experiment, "pause")
    sentence = refused(run)
    assert (
        f"source.control_topic '{controls}' was deleted and created again: its id was" in sentence
    )
    assert "streamduel repair new-log" in sentence
    examined = streamduel("doctor", run.config)
    assert sentence.split("streamduel: ")[-1].strip() in " ".join(examined.stdout.split())
    shown = repaired("new-log", run.config)
    assert f"Control topic '{controls}': read from its beginning.\n" in shown
    assert shown.count("Partition ") == 4
    control(run, experiment, "resume", "running")
    produce(run, 300, 400)
    fold(run)
    assert duels(run) > before
    replayed(run)


def test_a_topic_with_more_partitions_is_refused_and_continued(
    configure: Configure, topics: Topics
) -> None:
    run = configure("run")
    produce(run, 0, 1300)
    fold(run)
    before = duels(run)
    with KafkaAdminClient(bootstrap_servers=run.servers) as admin:
        admin.create_partitions({run.log: 6})
    done = streamduel("run", run.config, "--until-end")
    assert "'streamduel repair repartition COPY --from CONFIG' moves the experiments" in done.stderr
    done = streamduel("repair", "new-log", run.config, "--dry-run")
    assert done.stderr.endswith("has 6 partitions, the snapshots are of 4; use repartition.\n")
    examined = {it.name: it.sentence for it in examine(load(run.config))}
    assert "for the former number of partitions" in examined["records"]
    assert "dead letters: wrong_partition" not in examined
    moved = run.config.with_name("moved.yaml")
    document = yaml.safe_load(run.config.read_text())
    document["source"]["group"] += "-moved"
    document["snapshots"]["topic"] = topics(6, compacted=True)
    moved.write_text(yaml.safe_dump(document))
    shown = repaired("repartition", moved, "--from", run.config)
    assert all(f"Experiment '{name}': partition " in shown for name in EXPERIMENTS)
    later = run._replace(config=moved)
    verdicts = {it.name: it.verdict for it in examine(load(moved))}
    assert verdicts["records"] == "fine"  # the records so far are in the former partitions
    produce(later, 1300, 2300)
    fold(later)
    assert duels(later) > before
    replayed(later)


def test_a_skipped_record_and_a_set_time_are_replayed(configure: Configure) -> None:
    run = configure("run")
    produce(run, 0, 1300)
    fold(run)
    state = inspect(run.config)["experiments"]
    partition, following = next(
        (found["offset"]["partition"], found["offset"]["next"]) for found in state.values()
    )
    where = (run.config, "--partition", partition)
    produce(run, 1300, 2300)
    repaired("skip", *where, "--offset", following + 5)
    shown = repaired("time", *where)
    assert f"before offset {following}" in shown
    fold(run)
    replayed(run)


@on_both_clients
def test_after_a_repair_the_service_has_its_partitions_at_once(
    configure: Configure, client: str, tmp_path: Path
) -> None:
    """Also with another name than that of the repair, which leaves the group at its end."""

    def name(document: dict[str, Any]) -> None:
        document["source"] |= {"instance": "given", "client": client, "session_timeout_ms": 40_000}

    run = configure("run")
    produce(run, 0, 300)
    fold(run)
    named = changed(run, "named.yaml", name)
    repaired("time", named.config, "--partition", "0")
    began = time.monotonic()
    service = Service(named.config, tmp_path / "service.log")
    try:
        wait_until_restored(service, 4)
        assert time.monotonic() - began < 35, "the session of the repair would end later"
        assert service.stop() == 0
    finally:
        service.kill()


@on_both_clients
def test_a_repair_is_refused_while_a_process_of_a_given_name_runs(
    configure: Configure, client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same name it would take over the partitions, and end the process."""

    def name(document: dict[str, Any]) -> None:
        document["source"] |= {"instance": "given", "client": client}

    run = changed(configure("run"), "named.yaml", name)
    produce(run, 0, 300)
    service = Service(run.config, tmp_path / "service.log")
    try:
        wait_until_restored(service, 4)
        monkeypatch.setattr(repair_opening, "OWN_SECONDS", 10.0)  # its session ends after 6 s
        with pytest.raises(ConnectorError, match="another process owns partition"):
            repair.repair("new-log", run.config)
        assert service.runs, service.tail()
        assert "partitions lost" not in service.log.read_text()
        assert service.stop() == 0
    finally:
        service.kill()

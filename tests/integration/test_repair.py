"""`streamduel repair` on a real Kafka: the service refuses, is repaired, and a replay agrees."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from kafka import KafkaAdminClient, KafkaProducer, errors

from streamduel.cli import repair, repair_opening
from streamduel.errors import ConnectorError
from tests.broker.fixture import Broker, Topics, on_both_clients
from tests.faults.kafka_runs import EXPERIMENTS, PATIENCE, Run, configure_faults, visible
from tests.faults.processes import inspect, streamduel
from tests.faults.services import Service
from tests.logs import values

pytestmark = pytest.mark.kafka

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


@pytest.fixture
def configure(kafka: Broker, topics: Topics, tmp_path: Path) -> Configure:
    """Configurations of one click log, each with its own outputs and state."""
    log = topics(4)
    return lambda name: configure_faults(tmp_path / name, kafka.bootstrap_servers, log, topics)


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


def write_action(run: Run, experiment: str, action: str) -> None:
    done = streamduel("control", run.config, experiment, action)
    assert done.returncode == 0, done.stderr


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
    assert "'streamduel repair repartition' moves the experiments" in done.stderr
    done = streamduel("repair", "new-log", run.config, "--dry-run")
    assert done.stderr.endswith("has 6 partitions, the snapshots are of 4; use repartition.\n")
    moved = run.config.with_name("moved.yaml")
    document = yaml.safe_load(run.config.read_text())
    document["source"]["group"] += "-moved"
    document["snapshots"]["topic"] = topics(6, compacted=True)
    moved.write_text(yaml.safe_dump(document))
    shown = repaired("repartition", moved, "--from", run.config)
    assert all(f"Experiment '{name}': partition " in shown for name in EXPERIMENTS)
    later = run._replace(config=moved)
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


def test_a_repartitioning_is_shown_before_its_topics_exist(
    configure: Configure, topics: Topics
) -> None:
    run = configure("run")
    produce(run, 0, 300)
    fold(run)
    log, tag = topics(6), time.time_ns()

    def move(document: dict[str, Any]) -> None:
        document["source"] |= {
            "topic": log, "group": f"moved-{tag}", "control_topic": f"control-{tag}",
            "create_topics": True,
        }  # fmt: skip
        document["snapshots"]["topic"] = f"snapshots-{tag}"

    moved = changed(run, "moved.yaml", move)
    arguments = ("repartition", moved.config, "--from", run.config)
    shown = repaired(*arguments, "--dry-run").removesuffix("Nothing was written (--dry-run).\n")
    with KafkaAdminClient(bootstrap_servers=run.servers) as admin:
        assert not {it for it in admin.list_topics() if it.endswith(f"-{tag}")}
    assert repaired(*arguments) == f"{shown}Done; start the service.\n"
    fold(moved)
    assert duels(moved) == duels(run)


def test_a_repartitioning_warns_of_what_is_not_folded(configure: Configure, topics: Topics) -> None:
    log, controls = topics(6), topics(4)
    run = changed(
        configure("run"), "run.yaml", lambda it: it["source"].update(control_topic=controls)
    )
    produce(run, 0, 300)
    fold(run)
    source = {"topic": log, "group": f"moved-{log}", "control_topic": topics(6)}

    def move(document: dict[str, Any]) -> None:
        document["source"] |= source
        document["snapshots"]["topic"] = topics(6, compacted=True)

    moved = changed(run, "moved.yaml", move)
    arguments = ("repartition", moved.config, "--from", run.config, "--dry-run")
    assert "Warning" not in repaired(*arguments)
    produce(run, 300, 340)
    write_action(run, EXPERIMENTS[0], "pause")
    told = re.findall(
        r"Warning: (\d+) records? of partition \d of '(.*)' not", repaired(*arguments)
    )
    lost = {topic: sum(int(lag) for lag, name in told if name == topic) for _, topic in told}
    assert lost == {run.log: 40, controls: 1}
    with KafkaAdminClient(bootstrap_servers=run.servers) as admin:
        admin.delete_topics([run.log])
    assert "Warning: whether all former records are folded is unknown" in repaired(*arguments)


@pytest.mark.parametrize("control_topic", [None, "control"])
def test_a_repartitioning_to_an_absent_topic_is_refused(
    configure: Configure, control_topic: str | None
) -> None:
    run = configure("run")
    log = f"absent-{time.time_ns()}"
    source = {
        "topic": log, "group": f"{run.group}-moved", "create_topics": True,
        "control_topic": control_topic and f"{control_topic}-{log}",
    }  # fmt: skip
    moved = changed(run, "moved.yaml", lambda it: it["source"].update(source))
    done = streamduel("repair", "repartition", moved.config, "--from", run.config, "--dry-run")
    assert done.returncode == 1
    assert done.stderr == (
        f"streamduel: source.topic '{log}' does not exist; create it before the repair, without "
        f"'streamduel run', which could begin with nothing.\n"
    )


def test_a_repartitioning_of_the_same_topic_needs_a_new_group(
    configure: Configure, topics: Topics
) -> None:
    run = configure("run")
    produce(run, 0, 300)
    fold(run)
    new = topics(4, compacted=True)
    same = changed(run, "same.yaml", lambda it: it["snapshots"].update(topic=new))
    done = streamduel("repair", "repartition", same.config, "--from", run.config, "--dry-run")
    assert done.returncode == 2
    assert f"source.group must be a new group (found '{run.group}' again)." in done.stderr


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

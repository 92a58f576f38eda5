"""`streamduel doctor` on a real broker."""

from __future__ import annotations

import json
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition, errors
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata

from streamduel.config import load
from streamduel.doctor import examine
from streamduel.testing import duel
from tests.broker.fixture import CLIENTS, Broker, Topics, on_both_clients
from tests.faults.kafka_runs import PARTITIONS, PATIENCE, Run, configure
from tests.faults.processes import inspect, run_service, streamduel
from tests.faults.services import Service

pytestmark = pytest.mark.kafka

ARMS = ["bm25", "ltr-v1"]

UNTOLD = ("", "")
"""Verdict and sentence of a check that was not reached, as when the broker answered too late."""


def checks(run: Run, now: float | None = None) -> dict[str, tuple[str, str]]:
    return {it.name: (it.verdict, it.sentence) for it in examine(load(run.config), now)}


def send(kafka: Broker, topic: str, count: int, experiment: str = "search") -> None:
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for number in range(count):
            record = duel(experiment, number, "bm25", "ltr-v1", "a")
            producer.send(topic, record, key=experiment.encode())


@pytest.fixture
def service(kafka: Broker, topics: Topics, tmp_path: Path) -> Run:
    return configure(
        tmp_path / "run", kafka.bootstrap_servers, topics(PARTITIONS), topics, {},
        experiments={"search": {"arms": ARMS}},
    )  # fmt: skip


def test_topics_records_and_readers(kafka: Broker, service: Run) -> None:
    send(kafka, service.log, 20)
    assert checks(service)["source.group"][0] in {"warning", "unknown"}  # a new coordinator
    assert not run_service(service.config)
    send(kafka, service.log, 5)
    found = checks(service)
    failed = {name: it for name, it in found.items() if it[0] == "failed"}
    assert not failed
    assert found["source.topic"][1].endswith(f"has {PARTITIONS} partitions and can be read.")
    assert found["codecs"] == ("fine", "batches can be read in gzip, snappy, lz4, zstd.")
    assert found["source.group"][0] == "fine"
    assert found["records"] == (
        "fine",
        "among the newest 25 records: 20 valid, 0 dead letters, 5 duplicates.",
    )
    assert "5 records of the click log are not in them" in found["snapshots"][1]
    assert found["clocks"][0] == "fine"
    assert "deleted records" not in found


def test_records_that_were_deleted_before_they_were_folded(kafka: Broker, service: Run) -> None:
    send(kafka, service.log, 20)
    assert not run_service(service.config)
    send(kafka, service.log, 5)
    home = inspect(service.config)["experiments"]["search"]["offset"]["partition"]
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(service.log, home): 23})
    found = checks(service)
    assert found["snapshots"][1].endswith("are intact; 2 records of the click log are not in them.")
    assert found["deleted records"][0] == "warning"
    assert "has deleted 3 records that are not in the snapshots" in found["deleted records"][1]


@on_both_clients
def test_before_the_first_run_missing_topics_are_fine(
    kafka: Broker, topics: Topics, tmp_path: Path, client: str
) -> None:
    new = f"new-{client}"
    run = configure(
        tmp_path / "run", kafka.bootstrap_servers, f"{new}-clicks", topics,
        {"client": client, "create_topics": True},
        sink={"connector": "kafka", "assignments": f"{new}-a", "dead_letters": f"{new}-d"},
        snapshots={"connector": "kafka", "topic": f"{new}-s"},
        experiments={"search": {"arms": ARMS}},
    )  # fmt: skip
    done = streamduel("doctor", run.config, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["works"]) == (0, True)
    found = {it["name"]: (it["verdict"], it["sentence"]) for it in answer["checks"]}
    not_fine = {name for name, (verdict, _) in found.items() if verdict != "fine"}
    assert not_fine <= {"source.group", "other topics"}
    assert found["source.topic"][1].endswith("does not exist yet; `streamduel run` creates it.")
    assert found["source.group"][1].startswith("no process is in the group ")
    assert found["snapshots"][1].startswith("there are none yet; ")
    assert "records" not in found


def test_the_clients_tell_the_same(kafka: Broker, topics: Topics, tmp_path: Path) -> None:
    log, found, now = topics(1), {}, time.time()
    send(kafka, log, 3)
    sections = {
        "sink": {"connector": "kafka", "assignments": topics(1, compacted=True),
                 "dead_letters": topics(1)},
        "snapshots": {"connector": "kafka", "topic": topics(1, compacted=True)},
        "experiments": {"search": {"arms": ARMS}},
    }  # fmt: skip
    for client in CLIENTS:
        run = configure(
            tmp_path / client, kafka.bootstrap_servers, log, topics,
            {"client": client, "group": "same"}, **sections,
        )  # fmt: skip
        found[client] = checks(run, now)
    decompression = found["confluent"].pop("decompression")
    assert decompression[0] == "warning"
    assert decompression[1].startswith(f"'{log}' has compression.type=producer: with source.client")
    for each in found.values():
        each.pop("other topics", None)  # other tests create some in between
    shown = {name: sentence for name, (_, sentence) in found["kafka-python"].items()}
    assert {name: sentence for name, (_, sentence) in found["confluent"].items()} == shown
    assert found["kafka-python"]["transactions"][0] == "fine"
    assert shown["source.topic"] == f"'{log}' has 1 partition and can be read."


def test_another_program_in_the_group(kafka: Broker, service: Run) -> None:
    """With the newer protocol; a list of the members does not show it, nor those beside it."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": service.group,
            "group.protocol": "consumer",
        }
    )
    sentence = (
        f"the group '{service.group}' has members of another program, with "
        "group.protocol=consumer; give that program a group of its own."
    )
    with closing(consumer):
        consumer.subscribe([service.log])
        deadline = time.monotonic() + PATIENCE
        while not consumer.assignment():
            assert time.monotonic() < deadline
            consumer.poll(0.1)
        assert checks(service)["source.group"] == ("failed", sentence)
        refused = streamduel("repair", "time", service.config, "--partition", "0")
        assert (refused.returncode, refused.stderr) == (1, f"streamduel: {sentence}\n")
    while checks(service).get("source.group", UNTOLD)[0] != "warning":
        assert time.monotonic() < deadline


@pytest.mark.parametrize("client", CLIENTS)
def test_timeouts_beyond_the_limits_of_the_brokers_fail(
    kafka: Broker, topics: Topics, tmp_path: Path, client: str
) -> None:
    session = "source.session_timeout_ms must be within the brokers' group.min.session.timeout.ms"
    transaction = "sink.transaction_timeout_ms must be at most the brokers' transaction.max."
    log, written = topics(1), topics(1, compacted=True)
    sink = {"connector": "kafka", "assignments": written, "dead_letters": topics(1)}
    run = configure(
        tmp_path / "run", kafka.bootstrap_servers, log, topics, {"client": client}, sink=sink,
        experiments={"search": {"arms": ARMS}},
    )  # fmt: skip
    assert checks(run)["timeouts"][0] == "fine"
    document = yaml.safe_load(run.config.read_text())
    document["source"]["session_timeout_ms"] = 3
    document["sink"]["transaction_timeout_ms"] = 2_000_000_000
    run.config.write_text(yaml.safe_dump(document))
    verdict, sentence = checks(run)["timeouts"]
    assert verdict == "failed"
    assert sentence.startswith(session)
    assert "(found 3); " + transaction in sentence
    assert sentence.endswith(" (found 2000000000).")


def test_a_service_that_writes_to_another_topic_is_found(
    kafka: Broker, topics: Topics, service: Run
) -> None:
    elsewhere = topics(1)
    send(kafka, elsewhere, 4)
    found = [it for it in examine(load(service.config)) if it.name == "other topics"]
    assert f"'{elsewhere}' has records of experiment 'search'" in " ".join(map(str, found))
    assert checks(service)["records"][0] == "warning"


def test_the_topic_of_the_spark_job_is_checked_and_no_wrong_one(
    kafka: Broker, topics: Topics, tmp_path: Path
) -> None:
    raw = topics(1)
    send(kafka, raw, 4)
    run = configure(
        tmp_path / "run", kafka.bootstrap_servers, topics(PARTITIONS), topics,
        {"create_topics": True}, experiments={"search": {"arms": ARMS}},
        spark={"topic": raw, "checkpoint": "checkpoint/"},
    )  # fmt: skip
    found = list(examine(load(run.config)))
    assert f"'{raw}'" not in "".join(it.sentence for it in found if it.name == "other topics")
    assert [it[1:] for it in found if it.name == "spark.topic"] == [
        ("fine", f"'{raw}' can be read.")
    ]
    run.config.write_text(run.config.read_text().replace(raw, "no-raw-clicks"))
    assert checks(run)["spark.topic"] == (
        "failed",
        "'no-raw-clicks' does not exist; create it, because streamduel never does.",
    )


def test_a_missing_topic_fails(kafka: Broker, topics: Topics, tmp_path: Path) -> None:
    run = configure(
        tmp_path / "run", kafka.bootstrap_servers, "missing-topic", topics, {},
        experiments={"search": {"arms": ARMS}},
    )  # fmt: skip
    done = streamduel("doctor", run.config, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["works"]) == (1, False)
    (log,) = [it for it in answer["checks"] if it["name"] == "source.topic"]
    assert (log["verdict"], "does not exist" in log["sentence"]) == ("failed", True)


def test_a_wrong_clean_up_policy_is_reported_once(
    kafka: Broker, topics: Topics, tmp_path: Path
) -> None:
    run = configure(
        tmp_path / "run", kafka.bootstrap_servers, topics(PARTITIONS, cleanup_policy="compact"),
        topics, {}, experiments={"search": {"arms": ARMS}},
    )  # fmt: skip
    failed = [it.name for it in examine(load(run.config)) if it.verdict == "failed"]
    assert failed == ["source.topic"]


def test_compacted_dead_letters_fail(kafka: Broker, topics: Topics, tmp_path: Path) -> None:
    letters = topics(1, cleanup_policy="compact")
    sink = {"connector": "kafka", "assignments": topics(1, compacted=True), "dead_letters": letters}
    run = configure(
        tmp_path / "run", kafka.bootstrap_servers, topics(PARTITIONS), topics, {},
        sink=sink, experiments={"search": {"arms": ARMS}},
    )  # fmt: skip
    found = {name for name, (verdict, _) in checks(run).items() if verdict == "failed"}
    assert found == {"sink.dead_letters"}


def test_topics_that_refuse_large_records_are_told(
    kafka: Broker, topics: Topics, tmp_path: Path
) -> None:
    letters, written = topics(1, max_message_bytes=300), topics(1, compacted=True)
    sink = {"connector": "kafka", "assignments": written, "dead_letters": letters}
    state = topics(PARTITIONS, compacted=True, max_message_bytes=1_000_000)
    run = configure(
        tmp_path / "run", kafka.bootstrap_servers, topics(PARTITIONS), topics, {}, sink=sink,
        snapshots={"connector": "kafka", "topic": state}, experiments={"search": {"arms": ARMS}},
    )  # fmt: skip
    found = [it[1:] for it in examine(load(run.config)) if it.name == "record size"]
    sentence = (
        f"'{letters}' has max.message.bytes=300, and `streamduel run` ends where a record is "
        "larger; set at least 1000000."
    )
    assert found == [("warning", sentence)]


def test_topics_that_were_deleted_fail(kafka: Broker, topics: Topics, tmp_path: Path) -> None:
    run = configure(
        tmp_path / "run", kafka.bootstrap_servers, topics(PARTITIONS), topics,
        {"create_topics": True}, experiments={"search": {"arms": ARMS}},
    )  # fmt: skip
    send(kafka, run.log, 20)
    service = Service(run.config, tmp_path / "service.log")
    try:
        deadline = time.monotonic() + PATIENCE
        while "are intact" not in checks(run).get("snapshots", UNTOLD)[1]:
            assert time.monotonic() < deadline, service.tail()
            time.sleep(0.1)
        _delete(run, run.dead_letters)
        verdict, sentence = checks(run)["sink.dead_letters"]
        assert verdict == "failed"
        assert "it was deleted. Restart them: `streamduel run` creates it" in sentence
        assert service.stop() == 0
    finally:
        service.kill()
    _delete(run, run.log)
    done = streamduel("doctor", run.config, "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["works"]) == (1, False)
    failed = {it["name"]: it["sentence"] for it in answer["checks"] if it["verdict"] == "failed"}
    assert "were made from a click log that no longer exists" in failed["click log"]


def _delete(run: Run, topic: str) -> None:
    with KafkaAdminClient(bootstrap_servers=run.servers) as admin:
        admin.delete_topics([topic])
        deadline = time.monotonic() + PATIENCE
        while admin.describe_topics([topic])[0]["error_code"] == 0:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_wrong_broker_is_told_within_seconds(topics: Topics, tmp_path: Path) -> None:
    run = configure(
        tmp_path / "run", "127.0.0.1:1", "clicks", topics, {},
        experiments={"search": {"arms": ARMS}},
    )  # fmt: skip
    streamduel("--version")  # imports the package, if this is the worker's first command
    begin = time.monotonic()
    done = streamduel("doctor", run.config)
    assert done.returncode == 1
    assert done.stdout.startswith("failed  broker: Kafka cannot be reached at 127.0.0.1:1")
    assert time.monotonic() - begin < 20


def test_another_control_topic_and_a_recreated_one_fail(
    kafka: Broker, topics: Topics, tmp_path: Path
) -> None:
    control = topics(PARTITIONS)
    run = configure(
        tmp_path / "run", kafka.bootstrap_servers, topics(PARTITIONS), topics,
        {"control_topic": control}, experiments={"search": {"arms": ARMS}},
    )  # fmt: skip
    assert "control records" not in checks(run)
    assert streamduel("control", run.config, "search", "pause").returncode == 0
    assert checks(run)["control records"] == (
        "fine",
        f"1 record of '{control}' has not taken effect yet; a running service applies them within "
        f"seconds.",
    )
    service = Service(run.config, tmp_path / "service.log")
    try:
        deadline = time.monotonic() + PATIENCE
        while "control applied" not in service.tail():
            assert time.monotonic() < deadline, service.tail()
            time.sleep(0.1)
        assert service.stop() == 0
    finally:
        service.kill()
    found = checks(run)
    assert found["source.control_topic"][0] == "fine"
    assert "control records" not in found
    with KafkaAdminClient(bootstrap_servers=run.servers) as admin:
        admin.delete_topics([control])
    sentence = ""
    while "was the topic recreated?" not in sentence:
        assert time.monotonic() < deadline, sentence
        with (
            suppress(errors.TopicAlreadyExistsError),
            KafkaAdminClient(bootstrap_servers=run.servers) as admin,
        ):
            admin.create_topics([NewTopic(control, PARTITIONS, 1)])
        sentence = checks(run).get("source.control_topic", UNTOLD)[1]
    applied = streamduel("control", "apply", run.config, "--yes")
    assert (applied.returncode, applied.stderr) == (1, f"streamduel: {sentence}\n")
    assert streamduel("run", run.config, "--until-end").stderr.endswith(f"{sentence}\n")
    other = run.config.read_text().replace(control, topics(PARTITIONS))
    run.config.write_text(other)
    verdict, sentence = checks(run)["snapshots"]
    assert verdict == "failed"
    assert sentence.startswith(f"source.control_topic must stay '{control}'")
    for command in (["control", "apply", "--yes"], ["validate", "--against-state"]):
        refused = streamduel(*command, run.config)
        assert (refused.returncode, refused.stderr) == (2, f"streamduel: {sentence}\n")


def test_offsets_that_do_not_fit_the_snapshots(kafka: Broker, service: Run) -> None:
    """`run` would wait for them, and refuse them after a minute."""
    send(kafka, service.log, 20)
    assert not run_service(service.config)
    partition = inspect(service.config)["experiments"]["search"]["offset"]["partition"]
    at = TopicPartition(service.log, partition)
    document = yaml.safe_load(service.config.read_text())
    document["source"]["create_topics"] = True
    service.config.write_text(yaml.safe_dump(document))
    assert "offsets" not in checks(service)
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        deadline = time.monotonic() + PATIENCE
        while "nothing reads" not in checks(service).get("source.group", UNTOLD)[1]:
            assert time.monotonic() < deadline
        admin.alter_group_offsets(service.group, {at: OffsetAndMetadata(5, "", -1)})
        verdict, sentence = checks(service)["offsets"]
        assert (verdict, sentence) == (
            "failed",
            f"the group has committed offset 5 of partition {partition}, and its snapshot "
            "continues at 20: were the offsets reset? Set this one to 20.",
        )
        admin.delete_topics([document["snapshots"]["topic"]])
        while "no snapshot" not in checks(service).get("offsets", UNTOLD)[1]:
            assert time.monotonic() < deadline

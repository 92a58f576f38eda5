"""The test broker: it keeps its data, ends with its tests, and its absence is reported."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.broker.classes import ARCHIVE
from tests.broker.fixture import NO_BROKER, WAYS_OUT, Topics, without_broker
from tests.broker.jars import BrokerUnavailableError, cached_jars
from tests.broker.local_kafka import LocalKafka, free_port, wait_for_broker

REPOSITORY = Path(__file__).parents[2]

READ_SECONDS = 180.0  # records arrive in milliseconds; a loaded machine takes longer
END_SECONDS = 180.0  # a killed process ends at once
PYTEST_SECONDS = 120.0  # a run of three empty tests takes two seconds
SLOW_FETCH_SECONDS = 0.5  # a hundred times what a thread needs to ask for the jars


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    """The broker under test, instead of the one that other tests share."""
    try:
        broker = LocalKafka().__enter__()
    except BrokerUnavailableError as error:
        without_broker(str(error))
    yield broker
    broker.close()


def transact(kafka: LocalKafka, topic: str, *values: bytes, commit: bool = True) -> None:
    with KafkaProducer(
        bootstrap_servers=kafka.bootstrap_servers,
        transactional_id=f"{topic}-writer",
        max_request_size=16 * 1024 * 1024,
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        for value in values:
            producer.send(topic, value, key=b"key", partition=0)
        producer.flush()
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()


def committed(kafka: LocalKafka, topic: str, count: int) -> list[bytes]:
    """Return the first `count` committed values of the topic's partition 0."""
    values: list[bytes] = []
    deadline = time.monotonic() + READ_SECONDS
    with KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        group_id=None,
        enable_auto_commit=False,
    ) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        while len(values) < count and time.monotonic() < deadline:
            polled = consumer.poll(timeout_ms=500)
            values += [record.value for record in polled.get(partition, [])]
    return values


@pytest.mark.kafka
def test_readers_see_committed_transactions_only(kafka: LocalKafka, topics: Topics) -> None:
    topic = topics(partitions=1)
    transact(kafka, topic, b"one", b"two")
    transact(kafka, topic, b"never", commit=False)
    transact(kafka, topic, b"three")
    assert committed(kafka, topic, 3) == [b"one", b"two", b"three"]


@pytest.mark.kafka
@pytest.mark.parametrize("kill", [False, True], ids=["stop", "kill"])
def test_a_restart_keeps_data_and_address(kafka: LocalKafka, topics: Topics, kill: bool) -> None:
    topic = topics(partitions=1)
    address, pid = kafka.bootstrap_servers, kafka.pid
    transact(kafka, topic, b"before")
    kafka.restart(kill=kill)
    transact(kafka, topic, b"after")
    assert committed(kafka, topic, 2) == [b"before", b"after"]
    assert kafka.bootstrap_servers == address
    assert kafka.pid != pid


@pytest.mark.kafka
def test_a_record_of_ten_megabytes_is_accepted(kafka: LocalKafka, topics: Topics) -> None:
    topic = topics(partitions=1)
    value = bytes(10_000_000)
    transact(kafka, topic, value)
    assert committed(kafka, topic, 1) == [value]


@pytest.mark.kafka
def test_topics_have_unique_names_and_settings(kafka: LocalKafka, topics: Topics) -> None:
    first, second = topics(partitions=3), topics(partitions=2, compacted=True, segment_ms=60_000)
    assert first != second
    with KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers) as consumer:
        assert consumer.partitions_for_topic(first) == {0, 1, 2}
        assert consumer.partitions_for_topic(second) == {0, 1}


@pytest.mark.kafka
def test_a_failed_start_has_a_reason(kafka: LocalKafka) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port, controller = taken.getsockname()[1], free_port()
        broker = LocalKafka(
            {
                "listeners": f"CLIENTS://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
                "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            }
        )
        with pytest.raises(BrokerUnavailableError, match=r"(?s)end of its log.*Address already in"):
            broker.__enter__()
    assert broker.pid is None
    assert not broker.directory.exists()


BROKER_THEN_WAIT = """
import time
from tests.broker.local_kafka import LocalKafka
with LocalKafka() as broker:
    print(broker.bootstrap_servers, broker.directory, flush=True)
    time.sleep(600)
"""


@pytest.mark.kafka
def test_the_broker_ends_with_the_process_that_started_it(kafka: LocalKafka) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BROKER_THEN_WAIT],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        address, directory = owner.stdout.readline().split()
        owner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + END_SECONDS
    while listens(address) or Path(directory).exists():
        assert time.monotonic() < deadline, "the broker is still there"
        time.sleep(0.05)


@pytest.mark.kafka
def test_sigint_ends_a_broker_in_the_background(kafka: LocalKafka) -> None:
    port = free_port()
    background = f"trap '' INT; exec {shlex.quote(sys.executable)} -m tests.broker {port}"
    with subprocess.Popen(
        ["sh", "-c", background], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline().startswith(f"Apache Kafka on 127.0.0.1:{port}; ")
        assert listens(f"127.0.0.1:{port}")
        owner.send_signal(signal.SIGINT)
        try:
            assert owner.wait(END_SECONDS) == 0
        finally:
            owner.kill()
    assert not listens(f"127.0.0.1:{port}")


def listens(address: str) -> bool:
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port))).close()
    except ConnectionRefusedError:
        return False
    return True


def fake_maven(monkeypatch: pytest.MonkeyPatch, directory: Path, script: str) -> None:
    """Put a Maven on the PATH that records its calls and runs a script with $jars."""
    program = directory / "mvn"
    program.write_text(
        "#!/bin/sh\n"
        f"echo called >> {directory / 'calls'}\n"
        "for word; do case $word in -DoutputDirectory=*) jars=${word#*=};; esac; done\n"
        f"{script}\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(directory), prepend=os.pathsep)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(directory / "cache"))


def test_classes_come_from_the_archive(kafka: LocalKafka) -> None:
    assert f"/{ARCHIVE}\n" in Path(f"/proc/{kafka.pid}/maps").read_text()


def test_several_threads_fetch_the_jars_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f'mkdir "$jars"; sleep {SLOW_FETCH_SECONDS}; echo jar > "$jars/kafka.jar"'
    fake_maven(monkeypatch, tmp_path, script)
    complete: list[bool] = []
    threads = [
        threading.Thread(target=lambda: complete.append((cached_jars() / "kafka.jar").exists()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert complete == [True] * 4
    assert (tmp_path / "calls").read_text().splitlines() == ["called"]


def test_a_failed_fetch_has_a_reason_and_leaves_no_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_maven(monkeypatch, tmp_path, 'mkdir "$jars"; echo "no network"; exit 1')
    for _ in range(2):
        with pytest.raises(
            BrokerUnavailableError, match=r"(?s)mvn failed with status 1.*no network"
        ):
            cached_jars()
    assert (tmp_path / "calls").read_text().splitlines() == ["called", "called"]
    assert [path.name for path in (tmp_path / "cache" / "streamduel-tests").iterdir()] == ["lock"]


THREE_TESTS = """
def test_with_kafka(kafka): pass
def test_with_topics(topics): pass
def test_with_nothing(): pass
"""


def run_without_broker(directory: Path, **variables: str) -> tuple[int, str]:
    """Run three tests without Java, Maven and Docker; return status and output."""
    (directory / "test_three.py").write_text(THREE_TESTS)
    (directory / "bin").mkdir()
    environment = {
        "PATH": str(directory / "bin"),
        "PYTHONPATH": str(REPOSITORY),
        "HOME": str(directory),
        "DOCKER_HOST": f"unix://{directory}/docker.sock",
    }
    plugin = ["-p", "tests.broker.fixture", "-W", "error", "-W", "ignore::DeprecationWarning"]
    command = [sys.executable, "-m", "pytest", "-ra", *plugin, "test_three.py"]
    done = subprocess.run(
        command,
        cwd=directory,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=PYTEST_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("variables", "status", "outcome"),
    [
        ({}, 0, "1 passed, 2 skipped"),
        ({"CI": "true"}, 1, "1 passed, 2 errors"),
        ({"STREAMDUEL_REQUIRE_KAFKA": "1"}, 1, "1 passed, 2 errors"),
    ],
    ids=["alone", "CI", "required"],
)
def test_tests_without_a_broker_are_listed(
    tmp_path: Path, variables: dict[str, str], status: int, outcome: str
) -> None:
    found, output = run_without_broker(tmp_path, **variables)
    assert found == status, output
    assert outcome in output
    _, _, summary = output.partition("NOT RUN without a Kafka broker: 2")
    assert "test_three.py::test_with_kafka\n" in summary
    assert "test_three.py::test_with_topics\n" in summary
    assert "test_with_nothing" not in summary
    assert WAYS_OUT in summary
    assert NO_BROKER in output


def test_each_kind_of_broker_has_a_reason(tmp_path: Path) -> None:
    _, output = run_without_broker(tmp_path, CI="true", STREAMDUEL_TEST_KAFKA="nowhere")
    assert "STREAMDUEL_TEST_KAFKA: 'nowhere' is not host:port" in output
    assert "Docker: no engine answers" in output
    assert "Java: there is no 'mvn' on the PATH" in output


def test_waiting_for_a_missing_broker_ends() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(BrokerUnavailableError, match=f"no Kafka answers on {address}"):
        wait_for_broker(address, seconds=0.1)

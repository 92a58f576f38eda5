"""After any failure, work continues from the last commit, which is complete or absent."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from kafka import TopicPartition
from structlog.typing import EventDict

from streamduel.connector import Outlet, PartitionCommit, Snapshot
from streamduel.errors import Fenced, SnapshotError
from streamduel_kafka import archive, obstacle, snapshots, transaction
from streamduel_kafka.client import Consumer
from streamduel_kafka.snapshots import SnapshotLoader
from streamduel_kafka.source import KafkaSource
from tests.broker.fixture import Broker, on_both_clients
from tests.faults.processes import fork, was_killed
from tests.integration.kafka_connector.bed import (
    Bed,
    answered,
    commit,
    eventually,
    gain,
    mapping,
    polls,
    read,
    snapshot,
    start,
    work,
)
from tests.integration.kafka_connector.worker import commit_twice

pytestmark = [pytest.mark.kafka, on_both_clients]

FIRST = snapshot(10, experiment=b"first 0:10")
SECOND = snapshot(20, experiment=b"second 0:20")


def kill_at(bed: Bed, step: str, transaction_timeout_ms: int) -> None:
    """Let a process `same` make its first commit, and kill it in its second."""
    fields = {name: value for name, value in vars(bed).items() if name != "stack"}
    assert was_killed(fork(commit_twice, fields, step, "same", transaction_timeout_ms))


@pytest.mark.parametrize(
    ("step", "after"),
    [
        ("everything written", FIRST),
        ("kafka: records written", FIRST),
        ("kafka: offsets written", FIRST),
        ("kafka: committed", SECOND),
    ],
)
@pytest.mark.parametrize("successor", ["same", "another"])
def test_a_killed_process(bed: Bed, step: str, after: Snapshot, successor: str) -> None:
    bed.produce(30, 0)
    # The same process ends its predecessor's transaction, and does not wait for the timeout.
    kill_at(bed, step, transaction_timeout_ms=600_000 if successor == "same" else 3000)
    source = bed.source(instance=successor)
    gain(source)
    outlet = bed.outlet(source)
    assert outlet.load(0) == after
    resumed = after.next_offset
    assert bed.committed() == resumed
    source.seek(0, resumed)
    assert mapping(read(source, 30 - resumed)) == {0: list(range(resumed, 30))}
    commit(outlet, work(0, 30, "third "))
    whole = ["first 0:10", "second 0:20"] if after == SECOND else ["first 0:10"]
    for topic in (bed.assignments, bed.dead_letters):
        # The broker writes the markers of the killed transaction and of the commit asynchronously.
        eventually(partial(is_visible, bed, topic, b"third 0:30"))
        assert [value.decode() for _, value in bed.visible(topic)] == [*whole, "third 0:30"]


def is_visible(bed: Bed, topic: str, value: bytes) -> bool:
    return value in [found for _, found in bed.visible(topic)]


def marked(bed: Bed) -> None:
    """Wait until the markers of a commit are written, some milliseconds after it returned.

    A single broker that is killed before that may lose them: when it starts again, it takes
    partitions whose leader it does not know yet for deleted (Kafka 4.3.1).
    """
    topics = (bed.assignments, bed.dead_letters, bed.snapshots)
    eventually(lambda: all(bed.visible(topic) for topic in topics))
    assert bed.committed() is not None


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_a_broker_that_restarts(bed: Bed, kafka: Broker, kill: bool) -> None:
    if not kafka.can_restart:
        pytest.skip("the tests must not restart this broker")
    bed.produce(10, 0)
    source = bed.source(session_timeout_ms=30_000, max_poll_interval_ms=60_000)
    start(source, gain(source))
    outlet = bed.outlet(source)
    read(source, 10)
    commit(outlet, work(0, 10, "before "))
    marked(bed)
    connected: set[bool] = set()
    with ThreadPoolExecutor(1) as pool:
        restart = pool.submit(kafka.restart, kill=kill)
        while not restart.done():
            poll = source.poll(0.1)
            connected.add(source.connected)
            assert not poll.records
        restart.result()
    assert False in connected
    bed.produce(5, 0)
    commit_with_retries(source, outlet, work(0, 15, "after "))
    assert [value for _, value in bed.visible(bed.assignments, least=2)] == [
        b"before 0:10", b"after 0:15",
    ]  # fmt: skip
    assert outlet.load(0) == snapshot(15, experiment=b"after 0:15")
    assert source.connected
    assert answered(source.lags, [0], 1) == {0: 0}


def commit_with_retries(source: KafkaSource, outlet: Outlet, last: PartitionCommit) -> None:
    """As the runner does: read, commit, and restore the last commit when fenced."""
    former = outlet.load(0)
    assert former is not None
    reached = former.next_offset
    for poll in polls(source):
        for partition in poll.gained:
            saved = outlet.load(partition)
            start = source.seek(partition, saved.next_offset if saved else None)
            reached = start if partition == 0 else reached
        reached += len(poll.records.get(0, ()))
        if reached == last.next_offset and source.owns(0):
            try:
                commit(outlet, last)
            except Fenced:
                source.reannounce()
            else:
                return


def test_a_commit_without_a_broker_times_out_and_is_repeated(
    bed: Bed, kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kafka.can_restart:
        pytest.skip("the tests must not restart this broker")
    # Shorter than the broker's restart.
    monkeypatch.setattr(transaction, "COMMIT_SECONDS", 1.0)
    # What follows a commit that was given up has limits of its own.
    monkeypatch.setattr(transaction, "ABORT_SECONDS", 0.5)
    monkeypatch.setattr(obstacle, "CONNECT_SECONDS", 0.5)
    bed.produce(10, 0)
    source = bed.source(session_timeout_ms=30_000, max_poll_interval_ms=60_000)
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, work(0, 5, "before "))
    marked(bed)
    outlet.write([work(0, 10, "during ")])
    with ThreadPoolExecutor(1) as pool:
        restarted = pool.submit(kafka.restart, kill=True)
        eventually(lambda: not source.poll(0.05).lost and not source.connected)
        began = time.monotonic()
        with pytest.raises(Fenced):
            outlet.finish([work(0, 10, "during ")])
        assert time.monotonic() - began < 5
        restarted.result()
    source.reannounce()
    commit_with_retries(source, outlet, work(0, 10, "after "))
    assert [value for _, value in bed.visible(bed.assignments, least=2)] == [
        b"before 0:5", b"after 0:10",
    ]  # fmt: skip
    assert bed.committed() == 10


def test_loading_waits_for_the_broker(bed: Bed, kafka: Broker) -> None:
    if not kafka.can_restart:
        pytest.skip("the tests must not restart this broker")
    source = bed.source(session_timeout_ms=30_000, max_poll_interval_ms=30_000)
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, work(0, 0))
    marked(bed)
    with ThreadPoolExecutor(2) as pool:
        restarted = pool.submit(kafka.restart, kill=True)
        eventually(lambda: not source.poll(0.05).lost and not source.connected)
        load = pool.submit(outlet.load, 0)
        assert load.result(60) == snapshot(0, experiment=b"0:0")
        restarted.result()


def test_a_hanging_transaction(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, logged: list[EventDict]
) -> None:
    # Time for two attempts: the second one warns.
    monkeypatch.setattr(SnapshotLoader, "_patience", lambda _: 8.0)
    monkeypatch.setattr(snapshots, "ASK_SECONDS", 0.5)
    monkeypatch.setattr(snapshots, "SILENT_SECONDS", 0.1)
    former = bed.source(instance="former")
    start(former, gain(former))

    def stop(step: str) -> None:
        if step == "kafka: offsets written":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commit(bed.outlet(former, stop, transaction_timeout_ms=60_000), work(0, 0))
    log = bed.source(instance="next")
    with pytest.raises(SnapshotError, match=r"held by a transaction .* find-hanging"):
        bed.outlet(log).load(0)
    [warning] = [line for line in logged if line["event"] == "snapshot delayed"]
    assert (warning["log_level"], warning["partition"]) == ("warning", 0)
    assert "is held by a transaction" in warning["why"]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_new_owner_commits_meanwhile(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """A process that was stopped for longer than its session may load what it no longer owns."""
    read, reads = archive.read_snapshot, list[str]()

    def overtaken(
        consumer: Consumer, at: TopicPartition, closing: threading.Event
    ) -> tuple[Snapshot | None, int]:
        reads.append("first" if not reads else "later")
        if (reads[-1], when) == ("first", "before"):
            commit(outlet, work(0, 5, "new "))
        found = read(consumer, at, closing)
        if (reads[-1], when) == ("first", "after"):
            commit(outlet, work(0, 5, "new "))
        return found

    bed.produce(10, 0)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, work(0, 0, "old "))
    monkeypatch.setattr(snapshots, "read_snapshot", overtaken)
    assert outlet.load(0) == snapshot(5, experiment=b"new 0:5")


@pytest.mark.parametrize("offset", [1, 0], ids=["", "unchanged"])
def test_a_late_marker(bed: Bed, monkeypatch: pytest.MonkeyPatch, offset: int) -> None:
    """The offset is committed and the snapshot not visible yet: read again."""
    read, shown = archive.read_snapshot, list[tuple[Snapshot | None, int]]()

    def late(
        consumer: Consumer, at: TopicPartition, closing: threading.Event
    ) -> tuple[Snapshot | None, int]:
        return shown.pop() if shown else read(consumer, at, closing)

    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, work(0, 0, "old "))
    old = snapshot(0, experiment=b"old 0:0")
    assert outlet.load(0) == old
    bed.produce(1, 0)
    commit(outlet, work(0, offset, "new "))
    monkeypatch.setattr(snapshots, "read_snapshot", late)
    shown += [(old, 1), (old, 1), (None, -1)]
    assert outlet.load(0) == snapshot(offset, experiment=b"new 0:%d" % offset)
    assert not shown

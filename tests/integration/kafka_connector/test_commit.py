"""The commit: visible together or not at all, and only by an owner of the partitions."""

import gc
import struct
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaAdminClient, errors
from structlog.typing import EventDict

from streamduel.connector import Message, PartitionCommit, no_failpoint
from streamduel.errors import ConnectorError, Fenced
from streamduel_kafka import archive, transaction
from streamduel_kafka.client import Consumer, ConsumerOptions
from streamduel_kafka.connecting import connect_at_start
from streamduel_kafka.transaction import Transactions
from tests.broker.fixture import Topics, on_both_clients
from tests.integration.kafka_connector.bed import (
    PATIENCE,
    Bed,
    commit,
    eventually,
    flush,
    gain,
    gain_all,
    polls,
    snapshot,
    start,
    work,
)

pytestmark = [pytest.mark.kafka, on_both_clients]

STEPS = [
    "kafka: transaction begun", "kafka: outputs sent", "kafka: records written",
    "kafka: offsets written", "kafka: committed",
]  # fmt: skip


def test_a_commit_becomes_visible_at_once(bed: Bed) -> None:
    bed.produce(10, 0)
    source = bed.source()
    start(source, gain(source))
    steps: list[str] = []

    def look(step: str) -> None:
        steps.append(step)
        count = 0 if step != "kafka: committed" else 1
        for topic in (bed.assignments, bed.dead_letters):
            assert len(bed.visible(topic, least=count)) == count
        if step == "kafka: offsets written":
            for topic in (bed.assignments, bed.dead_letters, bed.snapshots):
                assert bed.visible(topic, committed=False)

    outlet = bed.outlet(source, look)
    commit(outlet, work(0, 10))
    assert steps == STEPS
    assert bed.committed() == 10
    assert bed.visible(bed.assignments, least=1) == [(b"search", b"0:10")]
    assert bed.visible(bed.dead_letters, least=1) == [(None, b"0:10")]
    assert list(bed.archive().published()) == [Message(b"search", b"0:10")]
    assert outlet.load(0) == snapshot(10, experiment=b"0:10")


def test_several_partitions_in_one_commit(bed: Bed) -> None:
    for partition in range(4):
        bed.produce(partition + 1, partition)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, *(work(n, n + 1) for n in range(4)))
    assert [bed.committed(n) for n in range(4)] == [1, 2, 3, 4]
    for n in range(4):
        assert outlet.load(n) == snapshot(n + 1, experiment=b"%d:%d" % (n, n + 1))


def test_a_commit_of_offsets_alone(bed: Bed) -> None:
    bed.produce(3, 0)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, PartitionCommit(0, 3))
    assert bed.committed() == 3
    commit(outlet, PartitionCommit(0, 3, entries={"late": b"x"}))
    assert outlet.load(0) == snapshot(3, late=b"x")


def test_a_member_that_hangs_is_fenced_by_its_generation(bed: Bed) -> None:
    bed.produce(5, 0)
    quick = {"session_timeout_ms": 1000, "max_poll_interval_ms": 1000}
    zombie = bed.source(instance="zombie", **quick)
    start(zombie, gain(zombie))
    theirs = bed.outlet(zombie)
    theirs.write([work(0, 5, "zombie ")])

    # It neither polls nor finishes while another member takes over and commits.
    heir = bed.source(instance="heir", session_timeout_ms=30_000, max_poll_interval_ms=60_000)
    gain(heir)
    start(heir, range(4))
    ours = bed.outlet(heir)
    commit(ours, work(0, 5, "heir "))

    with pytest.raises(Fenced):
        theirs.finish([work(0, 5, "zombie ")])
    for topic in (bed.assignments, bed.dead_letters):
        assert [value for _, value in bed.visible(topic, least=1)] == [b"heir 0:5"]
    assert ours.load(0) == snapshot(5, experiment=b"heir 0:5")

    # Its next poll reports the loss; after that it is a member like any other.
    assert next(poll.lost for poll in polls(zombie) if poll.lost) == [0, 1, 2, 3]
    with pytest.raises(Fenced, match="does not own"):
        commit(theirs, work(0, 5, "zombie "))
    halves = gain_all(zombie, heir, counts=[2, 2])
    start(zombie, halves[0])
    commit(theirs, *(work(n, 5 if n == 0 else 0, "back ") for n in halves[0]))
    assert b"back" in bed.visible(bed.assignments, least=3)[-1][1]


def of_another_generation(group: Any) -> Any:
    """A membership whose generation never was."""
    if isinstance(group, bytes):  # librdkafka's, of the version 2: prefix, generation, names
        assert group.startswith(b"CGMDv2:")
        return group[:7] + struct.pack("=i", 999) + group[11:]
    return group._replace(generation_id=999)


def test_a_refused_commit_does_not_affect_the_next_one(bed: Bed) -> None:
    """kafka-python would commit the refused offsets together with the next ones."""
    bed.produce(5, 0)
    bed.produce(5, 1)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    rightful = source._assigned
    source._assigned = rightful._replace(group=of_another_generation(rightful.group))
    with pytest.raises(Fenced, match="IllegalGenerationError"):
        commit(outlet, work(0, 5))
    source._assigned = rightful
    commit(outlet, work(1, 5))
    assert (bed.committed(0), bed.committed(1)) == (None, 5)
    assert [value for _, value in bed.visible(bed.assignments, least=1)] == [b"1:5"]


def test_nothing_is_committed_without_a_generation(bed: Bed) -> None:
    """The broker accepts offsets without a generation from any client."""
    source = bed.source()
    outlet = bed.outlet(source)
    with pytest.raises(Fenced, match="does not own"):
        commit(outlet, work(0, 0))
    start(source, [n for n in gain(source) if n])
    with pytest.raises(Fenced, match="does not own"):
        commit(outlet, work(0, 0))  # gained, but `seek` was not called
    assert bed.visible(bed.assignments) == []


def test_a_successor_of_the_same_name_fences_the_producer(bed: Bed) -> None:
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    outlet.write([work(0, 0)])
    flush(outlet)
    successor = bed.outlet(source)
    with pytest.raises(Fenced) as fenced:
        outlet.finish([work(0, 0)])
    # Its traceback refers to the commit and to the partitions' state.
    cause = fenced.value.__cause__
    assert cause is not None
    left = weakref.ref(cause)
    del fenced, cause
    gc.collect()
    assert left() is None
    commit(successor, work(1, 0))
    assert [value for _, value in bed.visible(bed.assignments, least=1)] == [b"1:0"]


def test_after_an_error_a_transaction_cannot_be_finished(bed: Bed) -> None:
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    outlet.write([work(0, 0)])
    outlet._transactions._failed(errors.KafkaTimeoutError("as if"))
    with pytest.raises(Fenced, match="nothing of it is visible"):
        outlet.finish([work(0, 0)])
    commit(outlet, work(0, 0))


def test_a_transaction_that_timed_out(bed: Bed) -> None:
    source = bed.source(session_timeout_ms=30_000, max_poll_interval_ms=30_000)
    start(source, gain(source))
    outlet = bed.outlet(source, transaction_timeout_ms=1000)
    outlet.write([work(0, 0, "late ")])
    flush(outlet)
    # The broker checks every half second; then its marker follows the record.
    eventually(lambda: bed.end(bed.assignments) == 2)
    with pytest.raises(Fenced):
        outlet.finish([work(0, 0, "late ")])
    commit(outlet, work(0, 0))
    assert [value for _, value in bed.visible(bed.assignments, least=1)] == [b"0:0"]


def test_a_topic_deleted_before_the_commit(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "COMMIT_SECONDS", 2.0)
    source = bed.source(max_poll_interval_ms=60_000)
    start(source, gain(source))
    outlet = bed.outlet(source)
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        admin.delete_topics([bed.dead_letters])
        with pytest.raises(Fenced):
            commit(outlet, work(0, 0))
        assert admin.describe_topics([bed.dead_letters])[0]["error_code"] != 0  # not auto-created
    assert bed.visible(bed.assignments) == []


@pytest.mark.parametrize("which", ["assignments", "snapshots"])
def test_the_error_names_a_topic_that_was_deleted(
    bed: Bed, which: str, monkeypatch: pytest.MonkeyPatch, logged: list[EventDict]
) -> None:
    source = bed.source(max_poll_interval_ms=60_000)
    start(source, gain(source))
    outlet = bed.outlet(source)
    topic = getattr(bed, which)
    commit(outlet, work(0, 0))
    monkeypatch.setattr(transaction, "COMMIT_SECONDS", 2.0)
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        admin.delete_topics([topic])
    with pytest.raises(Fenced, match=f"topic '{topic}' does not exist"):
        commit(outlet, work(0, 0))
    if which == "snapshots":
        with ThreadPoolExecutor(1) as pool:
            load = pool.submit(outlet.load, 0)
            absent = {"event": "snapshot not read yet", "error": f"snapshots.topic '{topic}' does"}
            eventually(lambda: any(
                line["event"] == absent["event"] and line["error"].startswith(absent["error"])
                for line in logged
            ))  # fmt: skip
            outlet.close()
            with pytest.raises(ConnectorError, match="shutting down"):
                load.result(PATIENCE)


def test_the_error_names_the_record_that_was_too_large(bed: Bed, topics: Topics) -> None:
    bed.dead_letters = topics(1, max_message_bytes=1_000_000)
    transactions = Transactions(bed.sink_settings().client_settings, bed.group, 10_000)
    with closing(transactions):
        transactions.begin()
        transactions.send(bed.dead_letters, b"k", b"x" * 3_000_000)
        with pytest.raises(ConnectorError) as refused:  # noqa: PT012
            deadline = time.monotonic() + PATIENCE
            while time.monotonic() < deadline:  # until the broker has answered
                transactions.send(bed.assignments, b"k", b"small")
                time.sleep(0.01)
    assert str(refused.value).startswith(f"a record of 3000000 bytes for '{bed.dead_letters}' is")


def test_records_that_a_topic_accepts_alone_are_written(bed: Bed, topics: Topics) -> None:
    bed.dead_letters = topics(1, max_message_bytes=20_000)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    letters = [Message(None, b"%d" % number + bytes(5000)) for number in range(12)]
    commit(outlet, PartitionCommit(0, 0, dead_letters=letters))
    written = bed.visible(bed.dead_letters, least=12)
    assert written == [(letter.key, letter.value) for letter in letters]


def test_the_error_names_one_of_several_records_that_are_too_large(
    bed: Bed, topics: Topics
) -> None:
    bed.snapshots = topics(1, compacted=True, max_message_bytes=1000)
    transactions = Transactions(bed.sink_settings().client_settings, bed.group, 10_000)
    with closing(transactions):
        transactions.begin()
        for number in range(20):
            transactions.send(bed.snapshots, b"%d" % number, b"x" * 1500)
        with pytest.raises(ConnectorError) as refused:
            transactions.finish({}, None, no_failpoint, time.monotonic() + PATIENCE)
    assert str(refused.value).startswith(f"a record of 1500 bytes for '{bed.snapshots}' is too l")


@pytest.mark.parametrize("size", [3_000_000, 20_000_000], ids=["for the topic", "for the client"])
def test_a_too_large_record_is_a_permanent_error(bed: Bed, topics: Topics, size: int) -> None:
    bed.dead_letters = topics(1, max_message_bytes=1_000_000)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    letter = PartitionCommit(0, 0, dead_letters=[Message(b"k", b"x" * size)])
    with pytest.raises(ConnectorError, match=r"too large for Kafka .* raise max\.message\.bytes"):
        commit(outlet, letter)


def test_large_records_are_written_if_the_topic_accepts_them(bed: Bed, topics: Topics) -> None:
    bed.snapshots = topics(4, compacted=True, max_message_bytes=2**24)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    letters = [Message(None, bytes(1_000_000)) for _ in range(5)]
    large = PartitionCommit(0, 0, dead_letters=letters, entries={"matrix": bytes(9_000_000)})
    commit(outlet, large)
    loaded = outlet.load(0)
    assert loaded is not None
    assert len(loaded.entries["matrix"]) == 9_000_000
    assert len(bed.visible(bed.dead_letters, least=5)) == 5


def test_published_assignments_are_in_order_and_committed(bed: Bed) -> None:
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    for text in ("a ", "b ", "c "):
        commit(outlet, work(0, 0, text))
    assert len(bed.visible(bed.assignments, least=3)) == 3
    outlet.write([work(0, 0, "open ")])
    flush(outlet)
    archive = bed.archive()
    assert [message.value for message in archive.published()] == [b"a 0:0", b"b 0:0", b"c 0:0"]
    assert archive.compacted


def test_closing_aborts_an_open_transaction(bed: Bed) -> None:
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    outlet.write([work(0, 0)])
    outlet.close()
    assert bed.visible(bed.assignments) == []


def test_without_a_kafka_source_no_offsets_are_committed(bed: Bed) -> None:
    with closing(bed.log()) as log:  # no group either
        log.poll(0)
        start(log, range(4))

        class Elsewhere:
            topic = "clicks.jsonl"
            partitions = 4

        outlet = bed.outlet(Elsewhere())  # type: ignore[arg-type]
        commit(outlet, work(0, 7))
        assert outlet.load(0) == snapshot(7, experiment=b"0:7")
        assert bed.committed() is None


def test_the_archive_has_what_is_committed(bed: Bed) -> None:
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, work(0, 0))
    assert len(bed.visible(bed.assignments, least=1)) == 1
    outlet.write([work(0, 0, "open ")])
    reader = bed.archive()
    assert list(reader.partitions()) == [0, 1, 2, 3]
    assert reader.load(0) == snapshot(0, experiment=b"0:0")
    assert reader.load(1) is None
    assert list(reader.published()) == [Message(b"search", b"0:0")]
    reader.close()
    outlet.finish([work(0, 0, "open ")])  # undisturbed


def test_the_archive_reads_all_partitions_with_one_consumer(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error replaces it."""
    source = bed.source()
    start(source, gain(source))
    commit(bed.outlet(source), work(1, 0))
    opened: list[ConsumerOptions] = []

    def connect(options: ConsumerOptions, *rest: Any) -> Consumer:
        opened.append(options)
        return connect_at_start(options, *rest)

    monkeypatch.setattr(archive, "connect_at_start", connect)
    reader = bed.archive()
    written = snapshot(0, experiment=b"1:0")
    found = [reader.load(partition) for partition in (0, 1, 1, 2, 3, 1)]
    assert found == [None, written, written, None, None, written]
    assert len(opened) == 1
    with pytest.raises(ConnectorError, match=rf"the snapshots in '{bed.snapshots}' cannot be read"):
        reader.load(4)
    assert reader.load(1) == written
    assert len(opened) == 2

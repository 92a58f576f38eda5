"""A load returns the snapshot of the last commit, or says what differs and what to do."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from kafka import (
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
    errors,
)
from kafka.admin import MemberToRemove
from structlog.testing import capture_logs
from structlog.typing import EventDict

from streamduel.errors import ConnectorError, SnapshotError
from streamduel_kafka import archive, snapshots
from streamduel_kafka.kafka_python.admin import PythonAdmin
from streamduel_kafka.snapshots import SnapshotLoader
from tests.broker.fixture import on_both_clients
from tests.integration.kafka_connector.bed import Bed, commit, gain, snapshot, start, work

pytestmark = [pytest.mark.kafka, on_both_clients]


def leave(bed: Bed) -> None:
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        members = admin.describe_groups([bed.group])[bed.group]["members"]
        leaving = [MemberToRemove(group_instance_id=each["group_instance_id"]) for each in members]
        if leaving:
            admin.remove_group_members(bed.group, leaving)


def reset(bed: Bed, offset: int, metadata: str = "") -> None:
    """As `kafka-consumer-groups --reset-offsets`, which needs a group without members."""
    leave(bed)
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        at = TopicPartition(bed.topic, 0)
        admin.alter_group_offsets(bed.group, {at: OffsetAndMetadata(offset, metadata, -1)})


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SnapshotLoader, "_patience", lambda _: 1.0)


@pytest.mark.parametrize("offset", [3, 8])
def test_offsets_that_were_reset(bed: Bed, offset: int, logged: list[EventDict]) -> None:
    """No transaction is the cause, so the load does not wait for one."""
    bed.produce(10, 0)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, work(0, 5))
    reset(bed, offset)
    with pytest.raises(
        SnapshotError,
        match=rf"to offset 5, but .* has committed {offset}; the offsets were .* hand: set .* to 5",
    ):
        outlet.load(0)
    assert "snapshot delayed" not in {line["event"] for line in logged}


@pytest.mark.usefixtures("impatient")
def test_a_group_of_another_program(bed: Bed) -> None:
    reset(bed, 5)
    source = bed.source()
    outlet = bed.outlet(source)
    with pytest.raises(SnapshotError, match="has no snapshot of it; was the topic emptied"):
        outlet.load(0)


@pytest.mark.usefixtures("impatient")
def test_records_that_are_no_snapshot(bed: Bed) -> None:
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    with KafkaProducer(bootstrap_servers=bed.servers) as producer:
        producer.send(bed.snapshots, key=b"partition", value=b'{"next": 0}', partition=0)
    with pytest.raises(SnapshotError, match="holds records, but no snapshot"):
        outlet.load(0)


def test_a_snapshot_of_another_group_is_continued_when_that_has_ended(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    bed.produce(10, 0)
    source = bed.source()
    start(source, gain(source))
    commit(bed.outlet(source), work(0, 5))
    other = bed.source(group=f"other {bed.group}")
    start(other, gain(other))
    outlet = bed.outlet(other)
    with pytest.raises(SnapshotError, match=rf"'{bed.group}' writes .* has 1 member now; .* own"):
        outlet.load(0)
    with monkeypatch.context() as unknown, capture_logs() as logs:
        unknown.setattr(PythonAdmin, "members", refuse)
        assert outlet.load(0) == snapshot(5, experiment=b"0:5")
    assert [line["event"] for line in logs].count("snapshot of another group") == 1
    source.close()
    leave(bed)
    with capture_logs() as logs:
        assert outlet.load(0) == snapshot(5, experiment=b"0:5")
    (warning,) = (line for line in logs if line["event"] == "snapshot of another group")
    assert (warning["group"], warning["writer"]) == (f"other {bed.group}", bed.group)
    commit(outlet, work(0, 6))
    outlet.load(0)  # waits until the end of the transaction is marked, and logs it
    with capture_logs() as logs:
        assert outlet.load(0) == snapshot(6, experiment=b"0:6")
    assert not logs


def refuse(*_: Any) -> Any:
    raise errors.GroupAuthorizationFailedError


def test_a_snapshot_that_is_newer_than_the_offset_of_the_group(bed: Bed) -> None:
    """Brokers have lost the newest offset, or the group has read another topic meanwhile."""
    bed.produce(10, 0)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, work(0, 5))
    with closing(KafkaConsumer(bootstrap_servers=bed.servers, group_id=bed.group)) as consumer:
        kept = consumer.committed(TopicPartition(bed.topic, 0), metadata=True)
    commit(outlet, work(0, 8))
    reset(bed, kept.offset, kept.metadata)
    with capture_logs() as logs:
        assert outlet.load(0) == snapshot(8, experiment=b"0:8")
    (warning,) = (line for line in logs if line["event"] == "group offset outdated")
    assert (warning["offset"], warning["snapshot"]) == (5, 8)


@pytest.mark.usefixtures("impatient")
def test_snapshots_that_have_lost_their_newest_records(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it says to do helps."""
    bed.produce(10, 0)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, work(0, 5))
    commit(outlet, work(0, 8))
    left = snapshot(5, experiment=b"0:5"), 1
    monkeypatch.setattr(snapshots, "read_snapshot", lambda *_: left)
    with pytest.raises(
        SnapshotError,
        match=r"to offset 5 and was written at offset 1 .* has committed 8, .* find-hanging.* has "
        r"lost its newest records, .* set the group's offset to 5 by hand",
    ):
        outlet.load(0)
    reset(bed, 5)
    assert outlet.load(0) == snapshot(5, experiment=b"0:5")


def test_expired_offsets(bed: Bed) -> None:
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, work(0, 0))
    reset(bed, 0)
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        admin.delete_group_offsets(bed.group, [TopicPartition(bed.topic, 0)])
    assert bed.committed() is None
    assert outlet.load(0) == snapshot(0, experiment=b"0:0")


def test_closing_ends_a_waiting_load(bed: Bed) -> None:
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, work(0, 0))
    reset(bed, 5)
    with ThreadPoolExecutor(1) as pool:
        load = pool.submit(outlet.load, 0)
        with pytest.raises(TimeoutError):
            load.result(0.5)
        outlet.close()
        with pytest.raises(ConnectorError, match="shutting down"):
            load.result(10)


@pytest.mark.usefixtures("impatient")
def test_a_replaced_topic_of_snapshots(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says to do helps."""
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, work(0, 0))
    read = archive.read_snapshot
    monkeypatch.setattr(snapshots, "read_snapshot", lambda *asked: (read(*asked)[0], 0))
    with pytest.raises(SnapshotError, match=r"at offset 0 of .* the one at \d+; .* replaced: set"):
        outlet.load(0)
    reset(bed, 0)
    assert outlet.load(0) == snapshot(0, experiment=b"0:0")


def test_an_entry_can_be_deleted(bed: Bed) -> None:
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, work(0, 0))
    with KafkaProducer(bootstrap_servers=bed.servers) as producer:
        producer.send(bed.snapshots, key=b"experiment", value=None, partition=0)
        producer.send(bed.snapshots, key=b"never", value=None, partition=0)
    assert outlet.load(0) == snapshot(0)


def test_concurrent_loads(bed: Bed) -> None:
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    commit(outlet, *(work(n, 0) for n in range(4)))
    with ThreadPoolExecutor(4) as pool:
        loaded = list(pool.map(outlet.load, range(4)))
    assert loaded == [snapshot(0, experiment=b"%d:0" % n) for n in range(4)]

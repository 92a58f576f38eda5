"""Reading the click log."""

import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition, errors
from structlog.typing import EventDict

from streamduel.connector import LogRecord, Poll
from streamduel.errors import ConnectorError
from streamduel_kafka import instance, opening
from streamduel_kafka import source as source_module
from tests.broker.fixture import Topics, on_both_clients
from tests.integration.kafka_connector.bed import (
    Bed,
    answered,
    commit,
    gain,
    gain_all,
    mapping,
    polls,
    read,
    start,
    work,
)

pytestmark = [pytest.mark.kafka, on_both_clients]


def delete_records(bed: Bed, partition: int, before: int) -> None:
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        admin.delete_records({TopicPartition(bed.topic, partition): before})


def test_nothing_is_delivered_before_seek(bed: Bed) -> None:
    bed.produce(5, 0)
    bed.produce(3, 1)
    source = bed.source()
    assert gain(source) == [0, 1, 2, 3]
    assert not any(source.poll(0.1).records for _ in range(5))
    assert source.seek(1, 1) == 1
    assert mapping(read(source, 2)) == {1: [1, 2]}
    assert source.seek(0, None) == 0
    found = read(source, 5)
    assert mapping(found) == {0: [0, 1, 2, 3, 4]}
    record = found[0][0]
    assert (record.key, record.value[:1]) == (None, b"0")
    assert abs(record.timestamp / 1000 - time.time()) < 600


def test_the_lock_file_of_a_reading_process_does_not_grow_old(
    bed: Bed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(instance, "TOUCH_SECONDS", 0.0)
    source = bed.source()
    (file,) = tmp_path.glob("streamduel-*.lock")
    os.utime(file, (0, 0))
    source.poll(0)
    assert file.stat().st_mtime > 0


def test_home_is_the_partition_of_the_producer(bed: Bed) -> None:
    source = bed.source()
    with KafkaProducer(bootstrap_servers=bed.servers) as producer:
        for name in ("search", "Größe", "a", "recommendations"):
            sent = producer.send(bed.topic, b"x", key=name.encode()).get(30)
            assert sent.partition == source.home(name)


def test_caught_up_and_lags(bed: Bed) -> None:
    bed.produce(10, 0)
    source = bed.source(max_poll_records=4)
    start(source, gain(source))
    assert source.connected
    assert [source.caught_up(n) for n in range(4)] == [False, True, True, True]
    bed.produce(2, 1)  # after `seek`: not part of its end at that time
    assert source.caught_up(1)
    while not source.caught_up(0):
        source.poll(0.1)
    while answered(source.lags, [1], 1)[1]:
        source.poll(0.1)
    assert answered(source.lags, [0, 1], 2) == {0: 0, 1: 0}


def test_caught_up_past_markers_of_transactions(bed: Bed) -> None:
    producer = KafkaProducer(bootstrap_servers=bed.servers, transactional_id=bed.topic)
    with producer:
        producer.init_transactions()
        for end in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            producer.send(bed.topic, b"x", partition=0)
            producer.flush()
            end()
    source = bed.source()
    start(source, gain(source))
    found: dict[int, Sequence[LogRecord]] = {}
    for poll in polls(source):
        found.update(poll.records)
        if source.caught_up(0):
            break
    assert mapping(found) == {0: [0]}  # the aborted one is at 2, the markers are at 1 and 3
    assert answered(source.lags, [0], 1) == {0: 0}


def test_seek_to_deleted_offsets(bed: Bed) -> None:
    bed.produce(10, 0)
    delete_records(bed, 0, before=6)
    source = bed.source()
    gain(source)
    assert source.seek(0, None) == 6
    assert source.seek(0, 2) == 6
    assert mapping(read(source, 4)) == {0: [6, 7, 8, 9]}
    assert source.seek(0, 10) == 10


def test_retention_overtakes_a_slow_reader(bed: Bed) -> None:
    bed.produce(10, 0)
    source = bed.source(max_poll_records=2)
    gain(source)
    source.seek(0, 0)
    read(source, 2)
    # What was fetched ahead is dropped by the seek, so that the next fetch is refused.
    source.seek(0, 2)
    delete_records(bed, 0, before=7)
    assert mapping(read(source, 2))[0][:2] in ([2, 3], [7, 8])
    source.seek(0, 7)
    source._consumer.seek(TopicPartition(bed.topic, 0), 3)
    assert next(it for it in polls(source) if it.missed).missed == {0: 7}
    assert mapping(read(source, 3)) == {0: [7, 8, 9]}


def test_an_offset_beyond_the_end(bed: Bed) -> None:
    bed.produce(3, 0)
    source = bed.source()
    gain(source)
    with pytest.raises(ConnectorError, match="ends at offset 3, but 4 was reached before"):
        source.seek(0, 4)


def test_a_shorter_click_log_is_not_read_from_its_start(bed: Bed) -> None:
    bed.produce(3, 0)
    source = bed.source()
    gain(source)
    source.seek(0, 0)
    source._consumer.seek(TopicPartition(bed.topic, 0), 30)
    with pytest.raises(ConnectorError, match="was the topic recreated"):
        read(source, 1)


def test_a_record_of_ten_megabytes(bed: Bed, topics: Topics) -> None:
    bed.topic = topics(4, max_message_bytes=2**24)
    bed.produce(1, 0, size=10_000_000)
    bed.produce(1, 0)
    source = bed.source()
    gain(source)
    source.seek(0, 0)
    found = read(source, 2)[0]
    assert [len(record.value) for record in found] == [10_000_001, 11]


@pytest.mark.parametrize("seconds", [0.1, 0.005])
def test_more_partitions_than_at_start(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """Also if the answer of the group arrives after the poll that has asked for it."""
    # By default a consumer asks for metadata every five minutes.
    monkeypatch.setattr(opening, "METADATA_SECONDS", 0.1)
    source = bed.source()
    gain(source)
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        admin.create_partitions({bed.topic: 6})
    with pytest.raises(ConnectorError, match="more partitions now than the 4 it had at start"):
        gain(source, count=6, seconds=seconds)


def test_more_partitions_are_noticed_without_the_leader_of_the_group(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "METADATA_SECONDS", 0.1)
    patient = {"session_timeout_ms": 300_000, "max_poll_interval_ms": 300_000}
    sources = [bed.source(instance=name, **patient) for name in ("first", "second")]
    gain_all(*sources, counts=[2, 2])
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        admin.create_partitions({bed.topic: 6})
    for source in reversed(sources):  # while the others do not poll
        with pytest.raises(ConnectorError, match="more partitions now than the 4 it had at start"):
            gain(source, count=6)


def test_open_log_joins_no_group(bed: Bed) -> None:
    bed.produce(3, 2)
    owner = bed.source()
    gain(owner)
    log = bed.log()
    assert log.poll(0).gained == [0, 1, 2, 3]
    assert (log.group, log.instance) == (None, None)
    start(log, range(4))
    assert mapping(read(log, 3)) == {2: [0, 1, 2]}
    assert log.caught_up(2)
    for _ in range(10):
        assert not owner.poll(0.1).lost


def test_a_poll_does_not_wait_for_a_transaction_of_the_former_owner(bed: Bed) -> None:
    """Its offsets are pending, and kafka-python would wait for them if it had no position."""
    former = bed.source(instance="former", session_timeout_ms=1000)
    start(former, gain(former))

    def hold(step: str) -> None:
        if step == "kafka: offsets written":
            raise KeyboardInterrupt

    outlet = bed.outlet(former, hold, transaction_timeout_ms=60_000)
    with pytest.raises(KeyboardInterrupt):
        commit(outlet, work(0, 0))
    former.close()
    source = bed.source(instance="next")
    bed.produce(1, 1)
    gain(source)
    start(source, [1, 2, 3])
    assert mapping(read(source, 1)) == {1: [0]}  # the transaction is open for longer
    assert bed.end(bed.assignments) == 1


def test_retriable_errors_are_empty_polls(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, logged: list[EventDict]
) -> None:
    source = bed.source()
    start(source, gain(source))
    bed.produce(1, 0)

    def fail(_: float) -> None:
        raise errors.NotLeaderForPartitionError

    with monkeypatch.context() as patch:
        patch.setattr(source._consumer, "poll", fail)
        assert source.poll(0.05) == Poll([], [])
    assert {"event": "read failed", "topic": bed.topic}.items() <= logged[-1].items()
    assert mapping(read(source, 1)) == {0: [0]}


@pytest.mark.parametrize(
    "error",
    [
        errors.LogTruncationError({}),
        errors.CorruptRecordError(),
        errors.KafkaError("a listener failed"),
    ],
)
def test_permanent_errors_end_the_source(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, error: errors.KafkaError
) -> None:
    source = bed.source()

    def fail(_: float) -> None:
        raise error

    monkeypatch.setattr(source._consumer, "poll", fail)
    with pytest.raises(ConnectorError, match="cannot be read"):
        source.poll(0)


@pytest.mark.parametrize(
    ("position", "sentence"),
    [
        (5, "ends at offset 3, but 5 was reached before; .* with --at-end from its end"),
        (2, "below offset 2, which was reached before, and new records have these offsets now"),
    ],
    ids=["shorter", "written again"],
)
def test_records_that_a_new_leader_lacks(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, position: int, sentence: str
) -> None:
    """Each client says in its own way that the log diverges from what it has read."""
    bed.produce(3, 0)
    source = bed.source()
    start(source, gain(source))
    at = TopicPartition(bed.topic, 0)
    source._consumer.seek(at, position)

    def fail(_: float) -> None:
        raise errors.LogTruncationError({at: None})

    monkeypatch.setattr(source._consumer, "poll", fail)
    with pytest.raises(ConnectorError, match=f"partition 0 of topic '{bed.topic}'.*{sentence}"):
        source.poll(0)


@pytest.mark.parametrize(
    ("error", "right"),
    [
        (
            errors.TopicAuthorizationFailedError({"clicks"}),
            r"Read topic 'clicks' \(source\.topic\)",
        ),
        (errors.GroupAuthorizationFailedError(), r"Read group 'group of .*' \(source\.group\)"),
    ],
)
def test_a_right_that_is_taken_away_ends_the_source(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, error: errors.KafkaError, right: str
) -> None:
    source = bed.source()

    def fail(_: float) -> None:
        raise error

    monkeypatch.setattr(source._consumer, "poll", fail)
    with pytest.raises(ConnectorError, match=f"Kafka does not allow this client to {right}"):
        source.poll(0)


def test_seek_without_a_broker(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASK_SECONDS", "BOOTSTRAP_SECONDS"):
        monkeypatch.setattr(source_module, name, 0.3)
    bed.produce(5, 0)
    source = bed.source()
    gain(source)

    def fail(*_: object, **__: object) -> None:
        raise errors.KafkaTimeoutError

    with monkeypatch.context() as patch:
        patch.setattr(source._consumer, "stable_ends", fail)
        patch.setattr(source._consumer, "high_watermarks", fail)
        with pytest.raises(ConnectorError, match=r"does not return the first offset of"):
            source.seek(0, None)
        assert source.seek(0, 3) == 3  # not checked: a poll would find it out of range
        assert not source.caught_up(0)
        assert source.lags([0]) == {}
    assert mapping(read(source, 2)) == {0: [3, 4]}
    assert source.caught_up(0)


def test_seek_without_permission(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    source = bed.source()
    gain(source)

    def fail(*_: object, **__: object) -> None:
        raise errors.TopicAuthorizationFailedError({bed.topic})

    monkeypatch.setattr(source._consumer, "begins", fail)
    with pytest.raises(ConnectorError, match=rf"to Read topic .{bed.topic}. \(source\.topic\)"):
        source.seek(0, 0)

"""Changes of ownership of the partitions of the click log."""

import sys
import time
from contextlib import closing
from typing import Any

import pytest
from kafka.coordinator.assignors.range import ConsumerProtocolAssignment, RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from streamduel.connector import Poll, SourceOptions
from streamduel.errors import ConnectorError
from streamduel_kafka.opening import open_source
from tests.broker.fixture import Topics, on_both_clients
from tests.integration.kafka_connector.bed import (
    Bed,
    commit,
    eventually,
    gain,
    gain_all,
    mapping,
    polls,
    read,
    start,
    work,
)

pytestmark = [pytest.mark.kafka, on_both_clients]


def test_reannounce(bed: Bed) -> None:
    bed.produce(5, 0)
    source = bed.source()
    start(source, gain(source))
    read(source, 5)
    bed.produce(1, 0)
    source.reannounce()
    poll = source.poll(1)
    assert (poll.lost, poll.gained, poll.records) == ([0, 1, 2, 3], [0, 1, 2, 3], {})
    assert not any(source.poll(0.1).records for _ in range(3))
    source.seek(0, 3)
    assert mapping(read(source, 3)) == {0: [3, 4, 5]}


def test_a_process_that_reads_another_topic_than_before_gets_its_partitions(
    bed: Bed, topics: Topics
) -> None:
    """Kafka gives a static member the assignment that its predecessor had, of another topic."""
    with closing(open_source(bed.source_settings(), SourceOptions())) as former:
        gain(former)
    bed.topic = topics(2)
    bed.produce(5, 1)
    source = bed.source()
    start(source, gain(source, 2))
    assert mapping(read(source, 5)) == {1: [0, 1, 2, 3, 4]}


def test_the_answer_to_a_join_arrives_between_two_polls(bed: Bed) -> None:
    """As where the network is slower than a poll, or the process is busy with something else."""
    source = bed.source()

    def gained() -> bool:
        time.sleep(0.2)  # longer than the broker takes
        return source.poll(0.002).gained == [0, 1, 2, 3]

    eventually(gained)


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0)])
def test_reannounce_in_the_middle_of_a_fetch(bed: Bed, first: int, second: int) -> None:
    bed.produce(10, 0)
    bed.produce(10, 1)
    source = bed.source(max_poll_records=3)
    start(source, gain(source))
    read(source, 1)  # the rest of a fetch waits in the client
    source.reannounce()
    assert source.poll(1).gained == [0, 1, 2, 3]
    assert not any(source.poll(0.1).records for _ in range(3))
    # Neither may stay behind the other, whichever the rest belongs to.
    for partition in (first, second):
        source.seek(partition, 0)
        assert mapping(read(source, 10)) == {partition: list(range(10))}


def test_reannounce_without_partitions(bed: Bed) -> None:
    source = bed.source()
    source.reannounce()
    poll = source.poll(0)
    assert poll == Poll([], [])


def test_partitions_move_when_members_join_and_leave(bed: Bed) -> None:
    bed.produce(2, 0)
    first = bed.source(instance="first", session_timeout_ms=1000)
    start(first, gain(first))
    second = open_source(
        bed.source_settings(instance="second", session_timeout_ms=1000), SourceOptions()
    )
    with closing(second):
        halves = gain_all(first, second, counts=[2, 2])
        assert sorted([*halves[0], *halves[1]]) == [0, 1, 2, 3]
        assert all(first.owns(n) is False for n in range(4))  # `seek` was not called yet
        start(first, halves[0])
        start(second, halves[1])
        owner = first if 0 in halves[0] else second
        assert mapping(read(owner, 2)) == {0: [0, 1]}
    # A static member does not leave the group: its partitions move when its session times out.
    lost: list[int] = []
    for poll in polls(first):
        lost += poll.lost
        if len(poll.gained) == 4:
            break
    assert sorted(lost) == sorted(halves[0])


def test_processes_with_different_clients_share_a_group(bed: Bed) -> None:
    """As in a rolling restart that changes the client."""
    bed.produce(2, 0)
    first = bed.source(instance="first", client="kafka-python")
    second = bed.source(instance="second", client="confluent")
    halves = gain_all(first, second, counts=[2, 2])
    assert sorted([*halves[0], *halves[1]]) == [0, 1, 2, 3]
    owner = first if 0 in halves[0] else second
    start(owner, [0])
    assert mapping(read(owner, 2)) == {0: [0, 1]}


def generation_of(group: Any) -> int:
    if isinstance(group, bytes):  # librdkafka's, of the version 2: prefix, generation, names
        assert group.startswith(b"CGMDv2:")
        return int.from_bytes(group[7:11], sys.byteorder)
    return int(group.generation_id)


def test_a_restarted_member_keeps_its_partitions(bed: Bed) -> None:
    first = bed.source(instance="first")
    second = open_source(bed.source_settings(instance="second"), SourceOptions())
    with closing(second):
        halves = gain_all(first, second, counts=[2, 2])
        generation = generation_of(first.group)
    again = bed.source(instance="second")
    assert gain(again, 2) == halves[1]
    for _ in range(20):
        poll = first.poll(0.1)
        assert not poll.lost
    assert generation_of(again.group) == generation_of(first.group) == generation


def test_another_process_of_the_same_name(bed: Bed) -> None:
    first = bed.source(instance="same")
    gain(first)
    second = bed.source(instance="same")
    gain(second)
    with pytest.raises(ConnectorError, match=r"give every process its own source\.instance"):
        gain(first, count=9)


def test_a_commit_after_another_process_of_the_same_name(bed: Bed) -> None:
    patient = {"session_timeout_ms": 30_000, "max_poll_interval_ms": 30_000}
    first = bed.source(instance="same", **patient)
    start(first, gain(first))
    outlet = bed.outlet(first)
    second = bed.source(instance="same", **patient)
    gain(second)
    with pytest.raises(ConnectorError, match=r"source\.instance"):
        commit(outlet, work(0, 0))
    assert bed.committed() is None


def test_a_former_assignment_without_partitions_is_not_kept(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a process whose topic was deleted, and is there again: the group never assigns it."""

    def assign_nothing(assignor: Any, _cluster: Any, members: Any) -> dict[str, Any]:
        return {
            it.member_id: ConsumerProtocolAssignment(assignor.version, [], b"") for it in members
        }

    with monkeypatch.context() as patched:
        for assignor in (StickyPartitionAssignor, RangePartitionAssignor):
            patched.setattr(assignor, "assign", classmethod(assign_nothing))
        with closing(bed.source(client="kafka-python", session_timeout_ms=40_000)) as former:
            eventually(lambda: not former.poll(0.1).gained and former.group is not None)
    began = time.monotonic()
    source = bed.source(client="kafka-python", session_timeout_ms=40_000)
    assert sorted(gain(source)) == [0, 1, 2, 3]
    assert time.monotonic() - began < 30, "the former session would end later"

"""A topic that is deleted and created again, or gets partitions, while it is read."""

import time

import pytest
from kafka import KafkaAdminClient, errors

from streamduel.connector import Source
from streamduel.errors import ConnectorError, Fenced
from tests.broker.fixture import on_both_clients
from tests.integration.kafka_connector.bed import PATIENCE, Bed, commit, gain, read, start, work

pytestmark = [pytest.mark.kafka, on_both_clients]


def recreate(bed: Bed, records: int) -> None:
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        admin.delete_topics([bed.topic])
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                admin.create_topics({bed.topic: {"num_partitions": 4}}, wait_for_metadata=True)
                break
            except errors.TopicAlreadyExistsError:
                assert time.monotonic() < deadline
    bed.produce(records, 0)


def read_until_refused(source: Source) -> ConnectorError:
    """The error with which a source refuses to go on."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            poll = source.poll(0.1)
        except ConnectorError as error:
            return error
        for partition in poll.gained:
            source.seek(partition, 20)
    raise AssertionError("not refused")


def test_log_id_is_the_topic_id(bed: Bed) -> None:
    first, second = bed.source(), bed.log()
    former = first.log_id(0)
    assert former is not None
    assert {former} == {each.log_id(n) for each in (first, second) for n in range(4)}
    recreate(bed, 0)
    later = bed.log().log_id(0)
    assert later not in {None, former}


@pytest.mark.parametrize("records", [0, 5, 20, 500], ids=["empty", "shorter", "equal", "longer"])
@pytest.mark.parametrize("kind", ["group", "whole"])
def test_a_recreated_topic_is_refused(bed: Bed, records: int, kind: str) -> None:
    bed.produce(20, 0)
    source = bed.source() if kind == "group" else bed.log()
    start(source, gain(source))
    read(source, 20)
    former = source.log_id(0)
    recreate(bed, records)
    error = read_until_refused(source)
    later = bed.log().log_id(0)
    for text in (
        f"'{bed.topic}'",
        f"was {former}",
        f"is {later} now",
        "'streamduel repair new-log CONFIG'",
    ):
        assert text in str(error)


def test_no_record_of_a_recreated_topic_is_committed(bed: Bed) -> None:
    """The process was busy meanwhile, and its next fetch is answered from the new topic."""
    bed.produce(20, 0)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    read(source, 20)
    commit(outlet, work(0, 20))
    recreate(bed, 500)
    with pytest.raises(ConnectorError, match="was deleted and created again"):  # noqa: PT012
        read(source, 1)  # confluent-kafka notices here
        commit(outlet, work(0, 500))
    assert [value for _, value in bed.visible(bed.assignments)] == [b"0:20"]


def test_a_commit_without_the_topic_is_refused(bed: Bed) -> None:
    bed.produce(20, 0)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        admin.delete_topics([bed.topic])
    with pytest.raises(Fenced, match="does not exist at present"):
        commit(outlet, work(0, 20))


def test_no_commit_once_the_topic_has_more_partitions(bed: Bed) -> None:
    """Producers use them before the next poll notices them."""
    bed.produce(20, 0)
    source = bed.source()
    start(source, gain(source))
    outlet = bed.outlet(source)
    with KafkaAdminClient(bootstrap_servers=bed.servers) as admin:
        admin.create_partitions({bed.topic: 6})
    with pytest.raises(ConnectorError, match="more partitions now than the 4 it had at start"):
        commit(outlet, work(0, 20))
    assert bed.visible(bed.dead_letters) == []

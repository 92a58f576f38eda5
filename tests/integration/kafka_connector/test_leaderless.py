"""A partition whose only replica is on a broker that was killed: it has no leader."""

from __future__ import annotations

from contextlib import closing

import pytest
from kafka import TopicPartition, errors

from streamduel_kafka.archive import read_present
from streamduel_kafka.client import ConsumerOptions, Found
from streamduel_kafka.connecting import connect
from streamduel_kafka.offsets import LEADER_SECONDS, Leaderless
from tests.broker.cluster import LocalCluster
from tests.broker.fixture import Topics, on_both_clients
from tests.integration.kafka_connector.bed import (
    answered,
    gain,
    make_bed,
    mapping,
    polls,
    read,
    start,
)

pytestmark = pytest.mark.kafka

LOST = 2
LEFT = [0, 1, 3]
"""Partitions; the only replica of partition 2 is on the node that is killed."""


@on_both_clients
def test_the_other_partitions_go_on_and_it_is_named(
    cluster: LocalCluster, cluster_topics: Topics, client: str
) -> None:
    servers = cluster.bootstrap_servers
    bed = make_bed(servers, cluster_topics, client=client)
    bed.topic = f"{bed.topic}-unreplicated"
    cluster.create_unreplicated(bed.topic, [0, 1, 2, 0])
    places = [TopicPartition(bed.topic, number) for number in range(4)]
    settings = {"client": client, "bootstrap_servers": servers.split(",")}
    settings |= {"security_protocol": "PLAINTEXT"}
    with bed.stack, closing(connect(ConsumerOptions(), settings, 30.0)) as reader:
        source = bed.source(session_timeout_ms=45_000, max_poll_interval_ms=60_000)
        start(source, gain(source))
        cluster.nodes[2].kill()
        told = next(poll.unreadable for poll in polls(source) if poll.unreadable)
        assert told == f"partition {LOST} of '{bed.topic}' has no leader"
        assert source.connected
        for number in LEFT:
            bed.produce(1, number)
        assert mapping(read(source, 3)) == {number: [0] for number in LEFT}
        assert answered(source.lags, range(4), 3) == dict.fromkeys(LEFT, 0)
        assert answered(source.stable_offset_lags, range(4), 3) == dict.fromkeys(LEFT, 0)
        for ask in (reader.begins, reader.stable_ends, reader.high_watermarks):
            assert sorted(ask(places, 10.0)) == [places[number] for number in LEFT]
            with pytest.raises(errors.LeaderNotAvailableError, match=told):
                ask([places[LOST]], 2.0)
        with pytest.raises(errors.LeaderNotAvailableError, match=told):
            list(read_present(reader, places))
        cluster.nodes[2].launch()
        assert next(poll for poll in polls(source) if not poll.unreadable)
        bed.produce(1, LOST)
        assert mapping(read(source, 1)) == {LOST: [0]}


def test_an_election_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    leaderless = Leaderless("clicks")

    def see(seconds: float, *lost: int) -> str:
        nonlocal now
        now += seconds
        return leaderless.see(Found(4, None, leaderless=lost), {1, 2})

    assert not see(0, 1, 3)
    assert not see(LEADER_SECONDS - 1, 1, 2, 3)
    assert not see(2, 2, 3)
    assert see(LEADER_SECONDS, 1, 2, 3) == "partition 2 of 'clicks' has no leader"
    assert see(LEADER_SECONDS, 1, 2) == "partitions 1, 2 of 'clicks' have no leader"
    assert not see(1)
    assert not leaderless.see(None, {1, 2})

"""A broker that keeps its connections open and does not answer: a cut network, a hung host."""

import time
from collections.abc import Iterator

import pytest

from tests.broker.fixture import CLIENTS, make_topics
from tests.broker.local_kafka import LocalKafka
from tests.integration.kafka_connector.bed import (
    Bed,
    eventually,
    gain,
    gain_all,
    make_bed,
    mapping,
    polls,
    read,
    start,
)

pytestmark = pytest.mark.kafka

# Readiness must fail within this time.
ALLOWED = 5.0

SHORT_MS = 6000

SESSION = {"session_timeout_ms": 30_000, "max_poll_interval_ms": 60_000}


@pytest.fixture
def alone(own_broker: LocalKafka, request: pytest.FixtureRequest) -> Iterator[Bed]:
    servers = own_broker.bootstrap_servers
    bed = make_bed(servers, make_topics(servers, request.node.name, []), partitions=1)
    with bed.stack:
        yield bed


def test_it_is_noticed_and_so_is_its_return(alone: Bed, own_broker: LocalKafka) -> None:
    alone.produce(10, 0)
    owner = alone.source(instance="owner", **SESSION)
    start(owner, gain(owner, 1))
    spare = alone.source(instance="spare", **SESSION)
    gain_all(owner, spare, counts=[1, 0])
    start(owner, [0])
    read(owner, 10)

    def poll() -> list[bool]:
        return [source.connected for source in (owner, spare) if source.poll(0.1) is not None]

    for _ in range(20):  # two heartbeats; an idle, healthy broker is not taken for absent
        assert poll() == [True, True]
    own_broker.pause()
    began = time.monotonic()
    while any(poll()):
        assert time.monotonic() - began < ALLOWED
    own_broker.resume()
    eventually(lambda: all(poll()))
    alone.produce(1, 0)
    assert mapping(read(owner, 1)) == {0: [10]}


def test_it_is_noticed_while_nothing_is_polled(alone: Bed, own_broker: LocalKafka) -> None:
    """The process folds, or waits for a commit."""
    source = alone.source(**SESSION)
    start(source, gain(source, 1))
    source.poll(0.1)
    own_broker.pause()
    began = time.monotonic()
    while source.connected:
        assert time.monotonic() - began < ALLOWED
        time.sleep(0.05)
    own_broker.resume()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_session_that_ended_meanwhile_is_no_other_process(
    alone: Bed, own_broker: LocalKafka, client: str
) -> None:
    """The process waits for a commit for longer than its session, and the broker starts again."""
    source = alone.source(client=client, session_timeout_ms=SHORT_MS, max_poll_interval_ms=60_000)
    alone.produce(10, 0)
    start(source, gain(source, 1))
    read(source, 10)
    own_broker.kill()
    time.sleep(1.5 * SHORT_MS / 1000)
    own_broker.start()
    time.sleep(SHORT_MS / 1000)  # four heartbeats
    alone.produce(1, 0)
    for poll in polls(source):
        start(source, poll.gained, 10)
        if poll.records:
            assert mapping(poll.records) == {0: [10]}
            break

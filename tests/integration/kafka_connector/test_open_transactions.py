"""A click log whose last records are behind the open transaction of a foreign producer."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from structlog.typing import EventDict

from streamduel.stream.decode import RecordDecoder
from streamduel.stream.repair_commits import newest_time
from streamduel_kafka.offsets import Standstill
from tests.integration.kafka_connector.bed import (
    Bed,
    answered,
    eventually,
    gain,
    mapping,
    read,
    start,
)

pytestmark = pytest.mark.kafka

HELD = 5000


@contextmanager
def open_transaction(bed: Bed) -> Iterator[Any]:
    """A foreign producer that has one record in an open transaction, and others behind it."""
    with KafkaProducer(bootstrap_servers=bed.servers, transactional_id=f"x{bed.topic}") as foreign:
        foreign.init_transactions()
        foreign.begin_transaction()
        foreign.send(bed.topic, b"in the transaction", partition=0).get(30)
        bed.produce(HELD - 1, 0)
        yield foreign


@pytest.mark.parametrize("end", ["commit_transaction", "abort_transaction"])
def test_the_lag_counts_records_behind_it(bed: Bed, end: str) -> None:
    bed.produce(10, 0)
    source = bed.source()
    start(source, gain(source))
    read(source, 10)
    with open_transaction(bed) as foreign:
        assert answered(source.lags, [0, 1], 2) == {0: HELD, 1: 0}
        assert answered(source.stable_offset_lags, [0, 1], 2) == {0: HELD, 1: 0}
        getattr(foreign, end)()
        assert len(read(source, HELD - 1)[0]) >= HELD - 1

        def drained() -> bool:
            source.poll(0.05)  # moves the position past the marker
            return source.lags([0]) == {0: 0} and source.stable_offset_lags([0]) == {0: 0}

        eventually(drained)


def test_its_records_are_not_awaited_and_the_log_says_so(bed: Bed, logged: list[EventDict]) -> None:
    bed.produce(10, 0)
    with open_transaction(bed):
        source = bed.source()
        start(source, gain(source))
        assert not source.caught_up(0)
        assert mapping(read(source, 10)) == {0: list(range(10))}
        assert all(source.caught_up(partition) for partition in (0, 0, 1))
    hints = [line for line in logged if line["event"] == "records behind an open transaction"]
    assert [(line["partition"], line["first"], line["records"]) for line in hints] == [
        (0, 10, HELD)
    ]


def test_the_newest_time_is_that_of_the_records_before_it(bed: Bed) -> None:
    bed.produce(10, 0)
    source = bed.source()
    gain(source)
    decoder = RecordDecoder(max_record_bytes=1000)
    before = newest_time(source, decoder, 0, 0)
    assert before is not None
    with open_transaction(bed):
        assert newest_time(source, decoder, 0, 10) == before


def test_a_standstill_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, logged: list[EventDict]
) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    standstill = Standstill()
    at = TopicPartition("clicks", 0)

    def see(stable: int, lag: int, seconds: float) -> list[EventDict]:
        nonlocal now
        now += seconds
        standstill.see(at, stable, lag)
        return [line for line in logged if line["event"] == "stable offset stands still"]

    assert not see(10, 0, 0)
    assert not see(10, 0, 500)  # an idle log
    assert not see(10, 5000, 5)
    assert not see(10, 5000, 80)
    assert len(see(10, 6000, 20)) == 1
    assert len(see(10, 7000, 500)) == 1
    assert len(see(8000, 1, 5)) == 1  # it moved
    assert len(see(8000, 1, 100)) == 2

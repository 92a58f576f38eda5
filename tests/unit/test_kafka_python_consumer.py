"""How long a poll of kafka-python waits."""

from __future__ import annotations

from typing import Any

import pytest
from kafka import TopicPartition

from streamduel_kafka.kafka_python import consumer as module
from streamduel_kafka.kafka_python.consumer import PythonConsumer

AT = TopicPartition("clicks", 0)
RECORDS: dict[TopicPartition, list[Any]] = {AT: ["a record"]}


class Clock:
    """Time that passes only in a poll."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


class Member:
    """Of a group; the private parts of kafka-python that the consumer looks at."""

    def __init__(self, *, stable: bool) -> None:
        self.rejoining = False
        self._heartbeat_enabled = True
        self._stable = stable

    def stable(self) -> bool:
        return self._stable

    def need_rejoin(self) -> bool:
        return not self._stable


class Sleeper:
    """A client that sleeps for its whole timeout although records have arrived.

    As kafka-python 3.0.12 does when a fetch arrives while it looks for open ones.
    """

    def __init__(self, clock: Clock, sleeps: int, *, stable: bool = True) -> None:
        self._coordinator = Member(stable=stable)
        self._clock = clock
        self._sleeps = sleeps
        self.polls = 0

    def poll(self, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        self.polls += 1
        if not self._sleeps:
            return RECORDS
        self._sleeps -= 1
        self._clock.now += max(timeout_ms, 1) / 1000
        return {}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_a_sleep_beside_fetched_records_is_short(clock: Clock) -> None:
    consumer = PythonConsumer(Sleeper(clock, sleeps=1), static=True)

    assert consumer.poll(0.1) == RECORDS
    assert clock.now == pytest.approx(module.WAIT_SECONDS)


@pytest.mark.parametrize("seconds", [0, 0.004, 0.1])
def test_a_poll_without_records_takes_its_time(clock: Clock, seconds: float) -> None:
    consumer = PythonConsumer(Sleeper(clock, sleeps=1000), static=True)

    assert consumer.poll(seconds) == {}
    assert clock.now == pytest.approx(seconds, abs=0.0011)


def test_a_rebalance_has_the_whole_poll(clock: Clock) -> None:
    client = Sleeper(clock, sleeps=1000, stable=False)

    assert PythonConsumer(client, static=True).poll(0.1) == {}
    assert client.polls == 1

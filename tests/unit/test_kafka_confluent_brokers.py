"""Which brokers count as silent, by the statistics of librdkafka."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kafka import TopicPartition
from structlog.testing import capture_logs

from streamduel_kafka.confluent.brokers import ANSWER_MICROSECONDS, Brokers

CLICKS = TopicPartition("clicks", 0)


def statistics(*, idle: int, throttle: int = 0) -> str:
    broker: dict[str, Any] = {
        "nodeid": 1, "state": "UP", "rxidle": idle, "waitresp_cnt": 1, "throttle": {"max": throttle}
    }  # fmt: skip
    topics = {"clicks": {"partitions": {"0": {"leader": 1}}}}
    return json.dumps({"brokers": {"127.0.0.1:9092/1": broker}, "topics": topics})


@pytest.mark.parametrize(("throttle", "connected"), [(0, False), (60_000, True)])
def test_a_broker_that_a_quota_keeps_silent_is_connected(throttle: int, connected: bool) -> None:
    brokers = Brokers()
    brokers.update(statistics(idle=10, throttle=throttle))
    brokers.update(statistics(idle=ANSWER_MICROSECONDS + 1))
    assert brokers.connected([CLICKS]) is connected


def test_a_quota_that_delays_answers_is_logged() -> None:
    brokers = Brokers()
    with capture_logs() as logged:
        for throttle in (0, 1500):
            brokers.update(statistics(idle=10, throttle=throttle))
    assert logged == [
        {
            "event": "throttled by a quota",
            "log_level": "warning",
            "broker": 1,
            "milliseconds": 1500,
        }
    ]

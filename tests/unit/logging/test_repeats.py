"""Repeated lines of libraries and connectors are written once a minute."""

from __future__ import annotations

import logging
from functools import partial

import pytest
import structlog

from streamduel.logging import set_up, setup
from streamduel.logging.repeats import MAX_KNOWN, QUIET_SECONDS, Repeats
from tests.unit.logging.conftest import Written
from tests.unit.monitoring.fold import Clock


class Heard:
    """The messages that pass, with the number of suppressed ones."""

    def __init__(self) -> None:
        self.clock = Clock()
        self._filter = Repeats("streamduel.", self.clock)

    def say(self, logger: str, message: object, *args: object, level: int = 30) -> int | None:
        record = logging.LogRecord(logger, level, "", 0, message, args, None)
        return getattr(record, "repeated", 0) if self._filter.filter(record) else None


@pytest.fixture
def heard() -> Heard:
    return Heard()


def test_repeated_lines_of_a_library_are_written_once_a_minute(heard: Heard) -> None:
    assert [heard.say("kafka.net", "attempt %d failed", number) for number in range(4)] == [
        0, None, None, None,
    ]  # fmt: skip
    heard.clock.now += QUIET_SECONDS
    assert heard.say("kafka.net", "attempt %d failed", 5) == 3
    heard.clock.now += QUIET_SECONDS
    assert heard.say("kafka.net", "attempt %d failed", 6) == 0


def test_other_lines_are_not_suppressed(heard: Heard) -> None:
    assert heard.say("kafka.net", "attempt failed") == 0
    assert heard.say("kafka.net", "gave up") == 0
    assert heard.say("kafka.consumer", "attempt failed") == 0
    assert heard.say("kafka.net", "attempt failed", level=40) == 0


def test_details_are_not_suppressed(heard: Heard) -> None:
    assert [heard.say("kafka.net", "request", level=10) for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("key", ["partition", "topic", "broker"])
def test_lines_about_other_partitions_are_not_suppressed(heard: Heard, key: str) -> None:
    for value in (0, 1):
        line = {"event": "snapshot not read yet", key: value, "error": "away"}
        assert heard.say("streamduel_kafka.snapshots", line) == 0
        assert heard.say("streamduel_kafka.snapshots", {**line, "error": "still away"}) is None


def test_lines_of_the_service_are_not_suppressed(heard: Heard) -> None:
    for logger in ("streamduel", "streamduel.monitoring.experiment_events"):
        for _ in range(3):
            assert heard.say(logger, {"event": "experiment paused", "experiment": "search"}) == 0


def test_memory_is_bounded(heard: Heard) -> None:
    for number in range(3 * MAX_KNOWN):
        assert heard.say("kafka.net", f"attempt {number} failed") == 0
    assert len(heard._filter._logged) <= MAX_KNOWN


def test_the_next_line_has_the_number_of_suppressed_ones(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(setup, "Repeats", partial(Repeats, clock=clock))
    set_up("json")
    log = structlog.stdlib.get_logger("streamduel_kafka.source")
    for _ in range(5):
        log.warning("read failed", topic="clicks", error="away")
    clock.now += QUIET_SECONDS
    log.warning("read failed", topic="clicks", error="away")
    first, second = written.lines
    assert "repeated" not in first
    assert second["repeated"] == 4

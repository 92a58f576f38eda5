"""The lines that tell what befalls the service: each once, and dead letters once a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.typing import EventDict

from streamduel import __version__
from streamduel.config import load
from streamduel.monitoring.service_log import DEAD_LETTER_SECONDS, MAX_NAMES, ServiceLog
from streamduel.stream.task import PartitionTask
from tests.unit.config.configurations import GOOD, changed, written
from tests.unit.monitoring.fold import Clock, config, duels, fold, task

BAD = b"{"
STRANGE = b'{"type": "duel"}'


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def logbook(clock: Clock) -> ServiceLog:
    return ServiceLog(clock=clock)


def commit(logbook: ServiceLog, target: PartitionTask, *values: bytes) -> None:
    fold(target, *values)
    target.take_commit()
    logbook.committed([target], 0.1)


def letters(told: list[EventDict]) -> list[tuple[str, int]]:
    """Reason and count of the lines about dead letters since the last time."""
    found = [(line["reason"], line["records"]) for line in told if line["event"] == "dead letters"]
    assert all(line["log_level"] == "warning" for line in told if line["event"] == "dead letters")
    told.clear()
    return found


def test_the_start_says_what_was_started(
    logbook: ServiceLog, told: list[EventDict], tmp_path: Path
) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(written(GOOD))
    logbook.started(load(path, {}))
    assert told == [
        {
            "event": "started", "log_level": "info", "version": __version__, "config": str(path),
            "source": "files", "sink": "files", "experiments": 1, "names": ["search"],
        }
    ]  # fmt: skip


def test_a_thousand_experiments_are_counted_and_some_named(
    logbook: ServiceLog, told: list[EventDict], tmp_path: Path
) -> None:
    path = tmp_path / "search.yaml"
    more = {f"experiments.e{number:03d}": {"arms": ["x", "y"]} for number in range(999)}
    path.write_text(written(changed(more, GOOD)))
    logbook.started(load(path, {}))
    assert told[0]["experiments"] == 1000
    assert len(told[0]["names"]) == MAX_NAMES


def test_a_partition_says_how_long_it_took_and_where_it_goes_on(
    logbook: ServiceLog, clock: Clock, told: list[EventDict]
) -> None:
    first = task(config({"search": ("x", "y")}), partition=3)
    fold(first, *duels("search", 0, "x", "y", "aab"))
    again = task(config({"search": ("x", "y")}), 3, first.take_commit().entries)
    logbook.gained([3, 4])
    clock.now += 1.5
    logbook.restored(again)
    logbook.lost([])
    logbook.lost([3, 4])
    assert told == [
        {
            "event": "partition restored", "log_level": "info", "partition": 3, "next_offset": 3,
            "experiments": 1, "seconds": 1.5,
        },
        {"event": "partitions lost", "log_level": "info", "partitions": [3, 4]},
    ]  # fmt: skip


def test_the_connection_is_told_of_when_it_goes_and_when_it_is_back(
    logbook: ServiceLog, clock: Clock, told: list[EventDict]
) -> None:
    for source in (False, False, True, True, False, False):
        logbook.connection(source=source)
    assert [(line["event"], line["log_level"]) for line in told] == [("connection lost", "warning")]
    clock.now += 12
    logbook.connection(source=True)
    logbook.connection(source=True)
    assert told[1:] == [{"event": "connection regained", "log_level": "info", "seconds": 12.0}]


class TestDeadLetters:
    """However many there are, a line a minute for each reason, with all of them counted."""

    def test_the_first_is_told_at_once_and_the_others_after_a_minute(
        self, logbook: ServiceLog, clock: Clock, told: list[EventDict]
    ) -> None:
        target = task(config({"search": ("x", "y")}))
        commit(logbook, target, BAD)
        assert letters(told) == [("invalid_json", 1)]
        commit(logbook, target, BAD, BAD, STRANGE)
        assert letters(told) == [("invalid_record", 1)], "another reason has a minute of its own"
        clock.now += DEAD_LETTER_SECONDS - 1
        commit(logbook, target, BAD)
        assert letters(told) == []
        clock.now += 1
        logbook.turned()  # no further record has come
        assert letters(told) == [("invalid_json", 3)]
        clock.now += 10 * DEAD_LETTER_SECONDS
        logbook.turned()
        assert letters(told) == []

    def test_none_is_left_untold_at_the_end(
        self, logbook: ServiceLog, told: list[EventDict]
    ) -> None:
        target = task(config({"search": ("x", "y")}))
        commit(logbook, target, BAD)
        commit(logbook, target, BAD, BAD)
        told.clear()
        logbook.stopped("SIGTERM")
        assert letters(told) == [("invalid_json", 2)]

    def test_those_of_an_earlier_life_are_no_news(
        self, logbook: ServiceLog, told: list[EventDict]
    ) -> None:
        first = task(config({"search": ("x", "y")}))
        fold(first, BAD, BAD, BAD)
        again = task(config({"search": ("x", "y")}), entries=first.take_commit().entries)
        logbook.restored(again)
        told.clear()
        commit(logbook, again, BAD)
        assert letters(told) == [("invalid_json", 1)]

    def test_those_that_are_folded_twice_are_told_once(
        self, logbook: ServiceLog, clock: Clock, told: list[EventDict]
    ) -> None:
        first = task(config({"search": ("x", "y")}))
        commit(logbook, first, BAD)
        fold(first, BAD)
        logbook.lost([0])  # the commit was refused
        again = task(config({"search": ("x", "y")}))
        fold(again, BAD)
        again.take_commit()
        logbook.restored(again)
        letters(told)
        clock.now += DEAD_LETTER_SECONDS
        commit(logbook, again, BAD)
        assert letters(told) == [("invalid_json", 1)]

    def test_they_are_no_warning_where_a_report_counts_them(
        self, clock: Clock, told: list[EventDict]
    ) -> None:
        commit(ServiceLog(reported=True, clock=clock), task(config({"search": ("x", "y")})), BAD)
        assert told[0]["log_level"] == "info"


def test_the_end_says_why_and_what_is_committed(
    logbook: ServiceLog, clock: Clock, told: list[EventDict]
) -> None:
    target = task(config({"search": ("x", "y")}), partition=2)
    logbook.restored(target)
    commit(logbook, target, *duels("search", 0, "x", "y", "aab"))
    clock.now += 0.25
    told.clear()
    logbook.stopped("SIGTERM")
    assert told == [
        {
            "event": "stopped", "log_level": "info", "why": "SIGTERM", "offsets": {2: 3},
            "last_commit_seconds_ago": 0.25,
        }
    ]  # fmt: skip


def test_without_a_commit_the_end_says_so(logbook: ServiceLog, told: list[EventDict]) -> None:
    logbook.stopped("an error")
    assert told[0]["last_commit_seconds_ago"] is None

"""Log events of the service: each once, and dead letters once a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.typing import EventDict

from streamduel import __version__
from streamduel.config import load
from streamduel.monitoring.service_log import (
    DEAD_LETTER_SECONDS,
    MAX_NAMES,
    OUTLIER_SECONDS,
    ServiceLog,
)
from streamduel.stream.task import PartitionTask
from tests.unit.config.configurations import GOOD, changed, written
from tests.unit.monitoring.fold import (
    STREAM_TIME,
    Clock,
    config,
    duels,
    fold,
    fold_ahead,
    task,
)

BAD = b"{"
STRANGE = b'{"type": "duel"}'


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def service_log(clock: Clock) -> ServiceLog:
    return ServiceLog(clock=clock)


def commit(service_log: ServiceLog, target: PartitionTask, *values: bytes) -> None:
    fold(target, *values)
    target.take_commit()
    service_log.committed([target], 0.1)


def dead_letters(logged: list[EventDict]) -> list[tuple[str, int]]:
    """Reason and count of the lines about dead letters since the last time."""
    found = [
        (line["reason"], line["records"]) for line in logged if line["event"] == "dead letters"
    ]
    assert all(line["log_level"] == "warning" for line in logged if line["event"] == "dead letters")
    logged.clear()
    return found


def test_started_has_version_configuration_and_experiments(
    service_log: ServiceLog, logged: list[EventDict], tmp_path: Path
) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(written(GOOD))
    service_log.started(load(path, {}))
    assert logged == [
        {
            "event": "started", "log_level": "info", "version": __version__, "config": str(path),
            "source": "files", "sink": "files", "experiments": 1, "names": ["search"],
        }
    ]  # fmt: skip


def test_of_a_thousand_experiments_some_are_named(
    service_log: ServiceLog, logged: list[EventDict], tmp_path: Path
) -> None:
    path = tmp_path / "search.yaml"
    more = {f"experiments.e{number:03d}": {"arms": ["x", "y"]} for number in range(999)}
    path.write_text(written(changed(more, GOOD)))
    service_log.started(load(path, {}))
    assert logged[0]["experiments"] == 1000
    assert len(logged[0]["names"]) == MAX_NAMES


def test_partition_restored_has_duration_and_next_offset(
    service_log: ServiceLog, clock: Clock, logged: list[EventDict]
) -> None:
    first = task(config({"search": ("x", "y")}), partition=3)
    fold(first, *duels("search", 0, "x", "y", "aab"))
    again = task(config({"search": ("x", "y")}), 3, first.take_commit().entries)
    service_log.gained([3, 4])
    clock.now += 0.5
    service_log.restored(again)
    assert not logged  # the records before the snapshot are re-read first
    again.begin(0)
    fold(again, *duels("search", 0, "x", "y", "aabb"))
    clock.now += 1
    service_log.reread(again)
    service_log.lost([])
    service_log.lost([3, 4])
    assert logged == [
        {
            "event": "partition restored", "log_level": "info", "partition": 3, "next_offset": 3,
            "experiments": 1, "seconds": 1.5,
        },
        {"event": "partitions lost", "log_level": "info", "partitions": [3, 4]},
    ]  # fmt: skip


def test_connection_lost_and_regained(
    service_log: ServiceLog, clock: Clock, logged: list[EventDict]
) -> None:
    for source in (False, False, True, True, False, False):
        service_log.connection(source=source)
    assert [(line["event"], line["log_level"]) for line in logged] == [
        ("connection lost", "warning")
    ]
    clock.now += 12
    service_log.connection(source=True)
    service_log.connection(source=True)
    assert logged[1:] == [{"event": "connection regained", "log_level": "info", "seconds": 12.0}]


def test_a_partition_that_cannot_be_read_is_logged_once(
    service_log: ServiceLog, clock: Clock, logged: list[EventDict]
) -> None:
    for why in ("", "partition 2 has no leader", "partition 2 has no leader"):
        service_log.unreadable(why)
    assert logged == [
        {"event": "connection lost", "log_level": "warning", "why": "partition 2 has no leader"}
    ]
    clock.now += 12
    service_log.unreadable("")
    service_log.unreadable("")
    assert logged[1:] == [{"event": "connection regained", "log_level": "info", "seconds": 12.0}]


class TestDeadLetters:
    """However many there are, a line a minute for each reason, with all of them counted."""

    def test_the_first_is_logged_at_once_and_others_after_a_minute(
        self, service_log: ServiceLog, clock: Clock, logged: list[EventDict]
    ) -> None:
        target = task(config({"search": ("x", "y")}))
        commit(service_log, target, BAD)
        assert dead_letters(logged) == [("invalid_json", 1)]
        commit(service_log, target, BAD, BAD, STRANGE)
        assert dead_letters(logged) == [("invalid_record", 1)], (
            "another reason has a minute of its own"
        )
        clock.now += DEAD_LETTER_SECONDS - 1
        commit(service_log, target, BAD)
        assert dead_letters(logged) == []
        clock.now += 1
        service_log.turned()  # no further record has come
        assert dead_letters(logged) == [("invalid_json", 3)]
        clock.now += 10 * DEAD_LETTER_SECONDS
        service_log.turned()
        assert dead_letters(logged) == []

    def test_the_rest_is_logged_at_the_end(
        self, service_log: ServiceLog, logged: list[EventDict]
    ) -> None:
        target = task(config({"search": ("x", "y")}))
        commit(service_log, target, BAD)
        commit(service_log, target, BAD, BAD)
        logged.clear()
        service_log.stopped("SIGTERM")
        assert dead_letters(logged) == [("invalid_json", 2)]

    def test_those_in_the_snapshot_are_not_logged(
        self, service_log: ServiceLog, logged: list[EventDict]
    ) -> None:
        first = task(config({"search": ("x", "y")}))
        fold(first, BAD, BAD, BAD)
        again = task(config({"search": ("x", "y")}), entries=first.take_commit().entries)
        service_log.restored(again)
        logged.clear()
        commit(service_log, again, BAD)
        assert dead_letters(logged) == [("invalid_json", 1)]

    def test_those_folded_twice_are_logged_once(
        self, service_log: ServiceLog, clock: Clock, logged: list[EventDict]
    ) -> None:
        first = task(config({"search": ("x", "y")}))
        commit(service_log, first, BAD)
        fold(first, BAD)
        service_log.lost([0])  # the commit was refused
        again = task(config({"search": ("x", "y")}))
        fold(again, BAD)
        again.take_commit()
        service_log.restored(again)
        dead_letters(logged)
        clock.now += DEAD_LETTER_SECONDS
        commit(service_log, again, BAD)
        assert dead_letters(logged) == [("invalid_json", 1)]

    def test_the_level_is_info_if_a_report_counts_them(
        self, clock: Clock, logged: list[EventDict]
    ) -> None:
        commit(ServiceLog(reported=True, clock=clock), task(config({"search": ("x", "y")})), BAD)
        assert logged[0]["log_level"] == "info"


def test_stopped_has_the_reason_and_committed_offsets(
    service_log: ServiceLog, clock: Clock, logged: list[EventDict]
) -> None:
    target = task(config({"search": ("x", "y")}), partition=2)
    service_log.restored(target)
    commit(service_log, target, *duels("search", 0, "x", "y", "aab"))
    clock.now += 0.25
    logged.clear()
    service_log.stopped("SIGTERM")
    assert logged == [
        {
            "event": "stopped", "log_level": "info", "why": "SIGTERM", "offsets": {2: 3},
            "last_commit_seconds_ago": 0.25,
        }
    ]  # fmt: skip


def test_stopped_without_a_commit(service_log: ServiceLog, logged: list[EventDict]) -> None:
    service_log.stopped("an error")
    assert logged[0]["last_commit_seconds_ago"] is None


class TestTimeOutliers:
    def test_they_are_logged_once_a_minute(
        self, service_log: ServiceLog, clock: Clock, logged: list[EventDict]
    ) -> None:
        target = task(config({"search": ("x", "y")}), partition=3)
        service_log.restored(target)
        logged.clear()
        for _ in range(2):
            fold_ahead(target, 3_600_000)
            commit(service_log, target)
        assert logged == [
            {
                "event": "time outliers", "log_level": "warning", "topic": "clicks",
                "partition": 3, "records": 1, "offset": 40, "record_time": STREAM_TIME + 3_600_000,
                "stream_time": STREAM_TIME,
                "advice": "the clock of a producer is wrong; stream time does not follow it",
            }
        ]  # fmt: skip
        clock.now += OUTLIER_SECONDS
        fold_ahead(target, 7_200_000)
        commit(service_log, target)
        assert [(it["records"], it["offset"]) for it in logged] == [(1, 40), (2, 200)]

    @pytest.mark.parametrize("is_stopped", [False, True])
    def test_the_rest_is_logged_without_another_commit(
        self, service_log: ServiceLog, clock: Clock, logged: list[EventDict], *, is_stopped: bool
    ) -> None:
        target = task(config({"search": ("x", "y")}))
        service_log.restored(target)
        for _ in range(3):
            fold_ahead(target, 3_600_000)
            commit(service_log, target)
        if is_stopped:
            service_log.stopped("signal")
        else:
            clock.now += OUTLIER_SECONDS
            service_log.turned()
            service_log.turned()
        lines = [it["records"] for it in logged if it["event"] == "time outliers"]
        assert lines == [1, 2]

    def test_those_in_the_snapshot_are_not_logged(
        self, service_log: ServiceLog, logged: list[EventDict]
    ) -> None:
        configured = config({"search": ("x", "y")})
        target = task(configured)
        fold_ahead(target, 3_600_000)
        again = task(configured, entries=target.take_commit().entries)
        service_log.restored(again)
        commit(service_log, again)
        assert not [line for line in logged if line["event"] == "time outliers"]

    def test_those_of_a_partition_that_is_restored_again_are_logged(
        self, service_log: ServiceLog, clock: Clock, logged: list[EventDict]
    ) -> None:
        target = task(config({"search": ("x", "y")}))
        service_log.restored(target)
        for _ in range(2):
            fold_ahead(target, 3_600_000)
            commit(service_log, target)
        service_log.lost([0])  # a later commit was refused
        service_log.restored(target)
        clock.now += OUTLIER_SECONDS
        fold_ahead(target, 3_600_000)
        commit(service_log, target)
        lines = [it["records"] for it in logged if it["event"] == "time outliers"]
        assert lines == [1, 2]

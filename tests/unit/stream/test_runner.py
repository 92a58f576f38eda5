"""Recovery: whatever strikes, what becomes visible is what an undisturbed run makes visible."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count

import pytest
from structlog.typing import EventDict

from streamduel.config import Config
from streamduel.connector import Failpoint, no_failpoint
from streamduel.stream.observer import Observer
from streamduel.stream.runner import Runner
from streamduel.stream.task import PartitionTask
from tests.logs import ARMS, Record, values
from tests.memory import (
    AWAY,
    CRASH,
    FENCE,
    PAUSE,
    REBALANCE,
    Accident,
    Broker,
    Crash,
    MemorySource,
    outlet,
)

CONFIG = Config.model_validate(
    {
        "source": {}, "sink": {}, "snapshots": {},
        "dedupe": {"window_records": 100, "window_ms": 500},
        "experiments": {"search": {"arms": list(ARMS), "decide_every": 3, "seed": 1}},
    }
)  # fmt: skip
LOG = [value for _, value in values(11, 600)]
STEPS = ("before begin", "before write", "before save", "before finish", "after finish")


def live(
    broker: Broker, failpoint: Failpoint = no_failpoint, observers: Sequence[Observer] = ()
) -> None:
    """One life of the service: it ends with the log, or with a crash."""
    ticks = count()
    runner = Runner(
        CONFIG,
        MemorySource(broker),
        outlet(broker),
        lambda: float(next(ticks)),
        observers,
        failpoint,
    )
    runner.run(lambda: False, until_end=True)


def live_through(broker: Broker, failpoint: Failpoint = no_failpoint) -> int:
    """As many lives as it takes; returns how many."""
    for life in count(1):
        try:
            live(broker, failpoint)
        except Crash:
            continue
        return life
    raise AssertionError


def visible(broker: Broker) -> tuple[object, ...]:
    return broker.assignments, broker.dead_letters, broker.entries


def undisturbed() -> Broker:
    broker = Broker(LOG)
    live(broker)
    return broker


@pytest.mark.parametrize("accident", [CRASH, REBALANCE, FENCE, AWAY, PAUSE])
@pytest.mark.parametrize("offset", [0, 1, 77, 599, 600])
def test_an_accident_leaves_no_trace(accident: Accident, offset: int) -> None:
    broker = Broker([*LOG[:offset], accident, *LOG[offset:]])
    live_through(broker)
    assert visible(broker) == visible(undisturbed())


def test_many_accidents_leave_no_trace() -> None:
    rng = random.Random(5)
    log: list[bytes | Record | Accident] = list(LOG)
    for _ in range(60):
        log.insert(rng.randrange(len(log)), rng.choice(list(Accident)))
    broker = Broker(log)
    lives = live_through(broker)
    assert visible(broker) == visible(undisturbed())
    assert lives > 5


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("commit", [0, 1, 4])
def test_a_crash_between_two_steps_of_a_commit_leaves_no_trace(step: str, commit: int) -> None:
    passes = count()

    def die(passed: str, /) -> None:
        if passed == step and next(passes) == commit:
            raise Crash

    log: list[bytes | Record | Accident] = list(LOG)
    for offset in range(560, 0, -40):
        log.insert(offset, PAUSE)
    broker = Broker(log)
    assert live_through(broker, die) == 2
    assert visible(broker) == visible(undisturbed())


def test_the_first_assignment_is_published_before_any_record() -> None:
    broker = Broker([])
    live(broker)
    (first,) = broker.assignments
    assert b'"epoch":1' in first.value
    assert b'"offset":-1' in first.value


def test_a_restart_without_news_publishes_nothing() -> None:
    broker = undisturbed()
    before = visible(broker)
    commits = broker.commits
    live(broker)
    assert visible(broker) == before
    assert broker.commits == commits


def test_a_stop_commits_what_is_done() -> None:
    broker = Broker(LOG)
    turns = count()
    runner = Runner(CONFIG, MemorySource(broker), outlet(broker), lambda: 0.0)
    runner.run(lambda: next(turns) > 8)
    assert visible(broker) == visible(undisturbed())


class Diary(Observer):
    def __init__(self) -> None:
        self.told: list[str] = []

    def polled(self, records: int) -> None:
        self.told.append(f"polled {records}")

    def restored(self, task: PartitionTask) -> None:
        self.told.append(f"restored at {task.next_offset}")

    def lost(self, partitions: object) -> None:
        self.told.append("lost")

    def fenced(self) -> None:
        self.told.append("fenced")


def test_observers_are_told_what_happens() -> None:
    diary = Diary()
    live(Broker([*LOG[:10], FENCE, *LOG[10:20], PAUSE]), observers=[diary])
    assert diary.told == [
        "restored at 0", "polled 10", "polled 10", "lost", "fenced", "lost", "restored at 10",
        "polled 20",  # the first ten only rebuild the dedupe window
    ]  # fmt: skip


def test_waiting_outputs_force_a_commit() -> None:
    frequent = Config.model_validate(
        {**CONFIG.model_dump(), "commit": {"interval_ms": 60_000, "max_outputs": 5}}
    )
    broker = Broker([item for value in LOG for item in (value, PAUSE)])
    runner = Runner(frequent, MemorySource(broker), outlet(broker), lambda: 0.0)
    runner.run(lambda: False, until_end=True)
    assert broker.commits > 20
    assert visible(broker) == visible(undisturbed())


class Nervous(Observer):
    def polled(self, records: int) -> None:
        raise ValueError("too much")


def test_an_observer_that_fails_is_dropped_and_the_fold_goes_on(
    told: list[EventDict],
) -> None:
    broker, diary = Broker(LOG), Diary()
    live(broker, observers=[Nervous(), diary])
    assert visible(broker) == visible(undisturbed())
    assert f"polled {len(LOG)}" in diary.told
    [line] = told
    assert (line["event"], line["observer"]) == ("observer failed", "Nervous")
    assert line["exc_info"], "the traceback"

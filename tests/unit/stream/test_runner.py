"""Recovery: outputs and snapshots do not depend on faults."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from itertools import count
from typing import Any

import pytest
from structlog.typing import EventDict

from streamduel.config import Config
from streamduel.connector import Poll
from streamduel.stream.observer import Observer
from streamduel.stream.runner import IDLE_POLL, RESTORE_POLL, RESTORE_SECONDS, Runner
from streamduel.stream.task import PartitionTask
from streamduel.testing import (
    CRASH,
    DUPLICATE,
    END_OF_POLL,
    FENCE,
    REBALANCE,
    UNREACHABLE,
    Broker,
    Crash,
    Fault,
    Record,
    run,
)
from streamduel.testing.broker import MemorySource
from tests.logs import ARMS, values

CONFIG = Config.model_validate(
    {
        "source": {}, "sink": {}, "snapshots": {},
        "dedupe": {"window_records": 100, "window_ms": 500},
        "experiments": {"search": {"arms": list(ARMS), "decide_every": 3, "seed": 1}},
    }
)  # fmt: skip
LOG = [value for _, value in values(11, 600)]
STEPS = ("before write", "before finish", "after finish")


def visible(broker: Broker) -> tuple[object, ...]:
    return broker.assignments, broker.dead_letters, broker.snapshots


def undisturbed() -> Broker:
    broker = Broker(LOG)
    run(CONFIG, broker)
    return broker


@pytest.mark.parametrize("fault", [CRASH, REBALANCE, FENCE, UNREACHABLE, END_OF_POLL])
@pytest.mark.parametrize("offset", [0, 1, 77, 599, 600])
def test_outputs_do_not_depend_on_a_fault(fault: Fault, offset: int) -> None:
    broker = Broker([*LOG[:offset], fault, *LOG[offset:]])
    run(CONFIG, broker)
    assert visible(broker) == visible(undisturbed())


def test_outputs_do_not_depend_on_many_faults() -> None:
    rng = random.Random(5)
    log: list[bytes | Record | Fault] = list(LOG)
    for _ in range(60):
        log.insert(rng.randrange(len(log)), rng.choice(list(Fault)))
    broker = Broker(log)
    runs = run(CONFIG, broker)
    undisturbed = Broker(broker.records())
    run(CONFIG, undisturbed)
    assert visible(broker) == visible(undisturbed)
    assert runs > 5


def test_a_retry_of_the_producer_is_a_duplicate() -> None:
    broker = Broker([*LOG[:40], DUPLICATE, *LOG[40:]])
    run(CONFIG, broker)
    state = json.loads(broker.snapshots[0].entries["experiment/search"])["state"]
    plain = json.loads(undisturbed().snapshots[0].entries["experiment/search"])["state"]
    assert state["tallies"]["duplicate"] == plain["tallies"]["duplicate"] + 1
    assert state["policy"] == plain["policy"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("commit", [0, 1, 4])
def test_outputs_do_not_depend_on_a_crash_within_a_commit(step: str, commit: int) -> None:
    passes = count()

    def die(passed: str, /) -> None:
        if passed == step and next(passes) == commit:
            raise Crash

    log: list[bytes | Record | Fault] = list(LOG)
    for offset in range(560, 0, -40):
        log.insert(offset, END_OF_POLL)
    broker = Broker(log)
    assert run(CONFIG, broker, failpoint=die) == 2
    assert visible(broker) == visible(undisturbed())


@pytest.mark.parametrize(("begin", "incomplete"), [(0, False), (150, False), (350, True)])
def test_a_restart_without_all_of_the_dedupe_window(
    begin: int, incomplete: bool, monkeypatch: pytest.MonkeyPatch, logged: list[EventDict]
) -> None:
    """The window has 100 records: those behind 300 are needed, the others only read again."""
    former, later = Broker(LOG[:400]), Broker(LOG[:410])
    run(CONFIG, former)
    later.snapshots.update(former.snapshots)
    seek = MemorySource.seek

    def seek_what_is_left(source: MemorySource, partition: int, offset: int | None) -> int:
        return seek(source, partition, max(begin, offset or 0))

    monkeypatch.setattr(MemorySource, "seek", seek_what_is_left)
    run(CONFIG, later)
    found = [line for line in logged if line["event"] == "dedupe window incomplete"]
    assert [(line["first"], line["last"]) for line in found] == [(0, begin - 1)] * incomplete


class Deleted(MemorySource):
    """The click log loses the records before an offset: before `seek`, or just after it."""

    def __init__(self, broker: Broker, begin: int, *, late: bool) -> None:
        super().__init__(broker)
        self._begin, self._late = begin, late

    def seek(self, partition: int, offset: int | None) -> int:
        return super().seek(partition, offset if self._late else max(self._begin, offset or 0))

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        if not hold and self._position is not None and self._position < self._begin:
            self._position = self._begin
            return Poll(missed={0: self._begin})
        return super().poll(timeout, hold=hold)


@pytest.mark.parametrize("late", [False, True], ids=["before", "while"])
@pytest.mark.parametrize(
    ("begin", "found"),
    [
        (400, {"dedupe window incomplete": (0, 399)}),
        (405, {"dedupe window incomplete": (0, 399), "records missed": (400, 404)}),
    ],
)
def test_records_that_are_deleted_before_or_while_a_restart_reads_again(
    begin: int, found: dict[str, tuple[int, int]], late: bool, logged: list[EventDict]
) -> None:
    """Only those behind the snapshot were never folded."""
    former, later = Broker(LOG[:400]), Broker(LOG[:410])
    run(CONFIG, former)
    later.snapshots.update(former.snapshots)
    clock = count()
    runner = Runner(CONFIG, Deleted(later, begin, late=late), later.outlet(), lambda: next(clock))
    runner.run(lambda: False, until_end=True)
    assert {line["event"]: (line["first"], line["last"]) for line in logged} == found


def test_the_first_assignment_is_published_before_any_record() -> None:
    broker = Broker([])
    run(CONFIG, broker)
    (first,) = broker.assignments
    assert b'"epoch":1' in first.value
    assert b'"offset":-1' in first.value


def test_a_restart_without_new_records_publishes_nothing() -> None:
    broker = undisturbed()
    before = visible(broker)
    commits = broker.commits
    run(CONFIG, broker)
    assert visible(broker) == before
    assert broker.commits == commits


def test_a_stop_commits_what_is_folded() -> None:
    broker = Broker(LOG)
    turns = count()
    runner = Runner(CONFIG, broker.source(), broker.outlet(), lambda: 0.0)
    runner.run(lambda: next(turns) > 8)
    assert visible(broker) == visible(undisturbed())


class Events(Observer):
    def __init__(self) -> None:
        self.calls: list[str] = []

    def polled(self, records: int) -> None:
        self.calls.append(f"polled {records}")

    def restored(self, task: PartitionTask) -> None:
        self.calls.append(f"restored at {task.next_offset}")

    def lost(self, partitions: object) -> None:
        self.calls.append("lost")

    def fenced(self) -> None:
        self.calls.append("fenced")


def test_observers_are_called_after_each_event() -> None:
    events = Events()
    run(CONFIG, Broker([*LOG[:10], FENCE, *LOG[10:20], END_OF_POLL]), observers=[events])
    assert events.calls == [
        "restored at 0", "polled 10", "polled 10", "lost", "fenced", "lost", "restored at 10",
        "polled 20",  # the first ten only rebuild the dedupe window
    ]  # fmt: skip


class Lags(Observer):
    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def reread(self, task: PartitionTask) -> None:
        self.calls.append(("reread", task.next_offset))

    def lagging(self, lags: Mapping[int, int]) -> None:
        self.calls.append(("lag", lags[0]))


def test_the_lag_of_a_restored_partition_is_known_when_the_click_log_was_read_again() -> None:
    """Before, the position is that of a record which was folded by an earlier process."""
    lags = Lags()
    run(CONFIG, Broker([*LOG[:20], CRASH, END_OF_POLL, *LOG[20:]]), observers=[lags])
    assert lags.calls == [("lag", 600), ("lag", 580), ("reread", 20), ("lag", 580), ("lag", 0)]


def test_the_number_of_outputs_forces_a_commit() -> None:
    frequent = Config.model_validate(
        {**CONFIG.model_dump(), "commit": {"interval_ms": 60_000, "max_outputs": 5}}
    )
    broker = Broker([item for value in LOG for item in (value, END_OF_POLL)])
    runner = Runner(frequent, broker.source(), broker.outlet(), lambda: 0.0)
    runner.run(lambda: False, until_end=True)
    assert broker.commits > 20
    assert visible(broker) == visible(undisturbed())


def slow_commits(seconds: Callable[[int], float]) -> tuple[Broker, list[float]]:
    """A run whose commits, by their number, take so long; and the times when they finish."""
    now = 0.0
    finished: list[float] = []

    class Turns(Observer):
        def turned(self) -> None:
            nonlocal now
            now += 0.1

    def slow(step: str) -> None:
        nonlocal now
        if step == "before finish":
            now += seconds(len(finished))
            finished.append(now)

    broker = Broker([item for value in LOG for item in (value, END_OF_POLL)])
    runner = Runner(CONFIG, broker.source(), broker.outlet(), lambda: now, [Turns()], slow)
    runner.run(lambda: False, until_end=True)
    return broker, finished


def test_slow_commits_leave_as_much_time_for_folding() -> None:
    broker, _ = slow_commits(lambda _: 1.0)
    assert 105 <= broker.commits <= 125  # five records between two of them
    assert visible(broker) == visible(undisturbed())


def test_a_commit_that_waited_for_a_failover_does_not_delay_the_next_one() -> None:
    broker, finished = slow_commits(lambda number: 9.0 if number == 3 else 0.0)
    assert finished[3] - finished[2] > 9.0
    assert finished[4] - finished[3] < 0.3
    assert visible(broker) == visible(undisturbed())


class Never(Executor):
    """Loads no snapshot, as while the broker is down."""

    def submit(self, *_: object, **__: object) -> Future[Any]:
        return Future()


def test_a_snapshot_that_does_not_arrive_is_polled_for_less_often() -> None:
    now = 0.0
    timeouts: list[float] = []

    class Source(MemorySource):
        def poll(self, timeout: float, *, hold: bool = False) -> Poll:
            nonlocal now
            now += 1.0
            timeouts.append(timeout)
            return super().poll(timeout, hold=hold)

    broker = Broker(LOG)
    runner = Runner(CONFIG, Source(broker), broker.outlet(), lambda: now, restorer=Never())
    runner.run(lambda: len(timeouts) > RESTORE_SECONDS + 2)
    soon = int(RESTORE_SECONDS)
    assert timeouts[1:] == [RESTORE_POLL] * soon + [IDLE_POLL] * 2


class Immediate(Executor):
    """Loads each snapshot before the next step."""

    def submit(self, call: Callable[..., Any], /, *arguments: object, **_: object) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(call(*arguments))
        return future


class Rebalanced(MemorySource):
    """The partition is taken away and given back while another one begins, after the first poll."""

    partitions = 2

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._polls = [Poll(lost=[0], gained=[0]), Poll(gained=[1])]

    def home(self, experiment: str) -> int:
        return int(experiment == "ads")

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        if hold and len(self._polls) == 1:
            self._position = None
            return self._polls.pop()
        poll = super().poll(timeout, hold=hold)
        if poll.records and len(self._polls) == 2:
            return Poll(records=poll.records, gained=self._polls.pop().gained)
        return poll

    def seek(self, partition: int, offset: int | None) -> int:
        return super().seek(0, offset) if partition == 0 else 0

    def caught_up(self, partition: int) -> bool:
        return partition == 1 or super().caught_up(0)


def test_records_of_a_partition_that_was_lost_since_the_poll_are_not_folded() -> None:
    """Another partition begins in between, with a decision that takes long."""
    ads = {"ads": CONFIG.experiments["search"]}
    settings = CONFIG.model_copy(update={"experiments": {**CONFIG.experiments, **ads}})
    broker, clock = Broker([*LOG[:100], END_OF_POLL, *LOG[100:]]), count()
    source = Rebalanced(broker)
    runner = Runner(settings, source, broker.outlet(), lambda: next(clock), restorer=Immediate())
    runner.run(lambda: False, until_end=True)
    assert sorted(broker.snapshots) == [0, 1]
    assert not source._polls
    entry = "experiment/search"
    assert broker.snapshots[0].entries[entry] == undisturbed().snapshots[0].entries[entry]


class Failing(Observer):
    """Fails with the first polls."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.seen = 0

    def polled(self, records: int) -> None:
        self.failures -= 1
        if self.failures >= 0:
            raise ValueError("too much")
        self.seen += records


def test_a_failing_observer_gets_the_next_events_and_the_fold_continues(
    logged: list[EventDict],
) -> None:
    broker, failing, events = Broker([*LOG[:40], END_OF_POLL, *LOG[40:]]), Failing(1), Events()
    run(CONFIG, broker, observers=[failing, events])
    assert visible(broker) == visible(undisturbed())
    assert failing.seen == len(LOG) - 40
    assert "polled 40" in events.calls
    [line] = logged
    assert (line["event"], line["observer"]) == ("observer failed", "Failing")
    assert line["exc_info"], "the traceback"


def test_an_observer_that_fails_with_every_poll_is_logged_once_a_minute(
    logged: list[EventDict],
) -> None:
    now = 0.0

    class Polls(Observer):
        def polled(self, records: int) -> None:
            nonlocal now
            now += 1.0

    broker = Broker([item for value in LOG[:150] for item in (value, END_OF_POLL)])
    observers = [Polls(), Failing(150), Failing(1)]
    runner = Runner(CONFIG, broker.source(), broker.outlet(), lambda: now, observers)
    runner.run(lambda: False, until_end=True)
    assert [line["observer"] for line in logged] == ["Failing"] * 4

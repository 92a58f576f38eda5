"""Folding that takes long: polls in between keep the ownership of the partitions."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from itertools import count
from typing import Any

from streamduel.config import Config
from streamduel.connector import Poll
from streamduel.stream.observer import Observer
from streamduel.stream.partition_context import WINDOWS_PER_HEARTBEAT
from streamduel.stream.runner import HOLD_INTERVAL, SLICE, Runner
from streamduel.stream.task import PartitionTask
from streamduel.testing import Broker, Record, duel, encode
from streamduel.testing.broker import START, MemorySource

PAIR = ("bm25", "ltr")
RECORDS = 4 * SLICE


class Clock:
    """Seconds; each look at the clock takes some of them."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


class HeldSource(MemorySource):
    """Notes the time of each poll that only holds; at one of them the partition is lost.

    Attributes:
        held: the times.
        lost_at: the number of the poll that loses the partition for good; 0 for none.
    """

    def __init__(self, broker: Broker, clock: Clock, lost_at: int = 0) -> None:
        super().__init__(broker)
        self._clock = clock
        self.held: list[float] = []
        self.lost_at = lost_at

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        if hold:
            self.held.append(self._clock.now)
            if len(self.held) == self.lost_at:
                return Poll(lost=[0])
        return super().poll(timeout, hold=hold)


CONFIG = Config.model_validate(
    {
        "source": {}, "sink": {}, "snapshots": {},
        "commit": {"interval_ms": 60_000},
        "experiments": {"search": {"arms": PAIR, "seed": 1, "decide_every": 10_000}},
    }
)  # fmt: skip


def ran(broker: Broker, step: float, lost_at: int = 0) -> HeldSource:
    """The source after the broker's whole log was folded, or the partition was lost."""
    clock = Clock(step)
    source = HeldSource(broker, clock, lost_at)
    runner = Runner(CONFIG, source, broker.outlet(), clock)
    runner.run(lambda: bool(lost_at) and not runner.tasks and bool(source.held), until_end=True)
    return source


def duels() -> Broker:
    return Broker([duel("search", number, *PAIR, "a") for number in range(RECORDS)])


def impressions() -> Broker:
    """Many join windows, and a record much later that closes all of them."""
    values = [
        encode(
            {
                "type": "impression", "id": str(number), "experiment": "search", "a": PAIR[0],
                "b": PAIR[1], "teams": ["a", "b"], "docs": ["x", "y"],
            }
        )
        for number in range(3 * WINDOWS_PER_HEARTBEAT)
    ]  # fmt: skip
    log = [Record(number, value, START + number) for number, value in enumerate(values)]
    # As many as move stream time over a gap.
    later = [
        Record(len(log) + number, duel("search", 9000 + number, *PAIR, "a"), START + 3_600_000)
        for number in range(40)
    ]
    return Broker([*log, *later])


def test_a_short_fold_is_not_interrupted() -> None:
    assert ran(duels(), step=0.0).held == []


def test_a_long_fold_polls_between_slices() -> None:
    source = ran(duels(), step=HOLD_INTERVAL)
    assert len(source.held) >= RECORDS // SLICE - 1
    assert all(b - a >= HOLD_INTERVAL for a, b in zip(source.held, source.held[1:], strict=False))


def test_one_record_with_much_work_polls_in_between() -> None:
    """All records come in one slice, so only the heartbeat of the fold can poll."""
    broker = impressions()
    assert len(broker.records()) > SLICE  # the gap is passed within the last slice
    source = ran(broker, step=HOLD_INTERVAL)
    slices = -(-len(broker.records()) // SLICE) - 1
    assert len(source.held) - slices >= 2


def test_polls_in_between_change_nothing() -> None:
    for make in (duels, impressions):
        quick, slow = make(), make()
        ran(quick, step=0.0)
        assert ran(slow, step=HOLD_INTERVAL).held
        assert quick.snapshots == slow.snapshots
        assert quick.assignments == slow.assignments


def test_a_partition_lost_in_between_is_not_folded_on() -> None:
    broker = duels()
    source = ran(broker, step=HOLD_INTERVAL, lost_at=2)
    assert len(source.held) == 2
    assert broker.snapshots[0].next_offset == 0, "only the first assignment was committed"


class Immediate(Executor):
    """Loads snapshots at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class MovingSource(MemorySource):
    """Gains two partitions, loses both at the first poll that only holds, and regains one."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self._ownership = Poll(gained=[0, 1])
        self.moved = False

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        if not hold or self.moved:
            return super().poll(timeout, hold=hold)
        self.moved = True
        self._position = None
        return Poll(lost=[0, 1], gained=[1])


class Restored(Observer):
    def __init__(self) -> None:
        self.partitions: list[int] = []

    def restored(self, task: PartitionTask) -> None:
        self.partitions.append(task.partition)


def test_a_partition_lost_while_its_experiments_start_is_not_begun() -> None:
    """A decision for each of many new experiments takes long, so they poll in between."""
    broker, clock, restored = duels(), Clock(HOLD_INTERVAL), Restored()
    source, turns = MovingSource(broker), count()
    runner = Runner(CONFIG, source, broker.outlet(), clock, [restored], restorer=Immediate())
    runner.run(lambda: next(turns) > 3)
    assert source.moved
    assert list(runner.tasks) == restored.partitions == [1]

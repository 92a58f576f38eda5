"""An experiment that is removed from the configuration leaves its neighbours as they are."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from streamduel.config import Config
from streamduel.connector import Poll, Snapshot
from streamduel.stream import repair_commits
from streamduel.stream.repair_commits import Move
from streamduel.stream.replay import replay
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask
from streamduel.testing import Broker, MemorySource, Record
from streamduel.testing import run as run_service
from tests.unit.stream.folding import ARMS, config, control
from tests.unit.stream.restarts import LOG, Output, run
from tests.unit.stream.sealing import changed
from tests.unit.stream.test_time_restarts import ADVANCE, WINDOW, continued, log_of

FOLDED = {"arms": ARMS, "join_window_ms": WINDOW, "decide_every": 3, "max_per_client": 9}


def made_of(names: Sequence[str], window_records: int, open_bytes: int) -> Config:
    return config().model_validate(
        {
            "source": {}, "sink": {}, "snapshots": {},
            "experiments": dict.fromkeys(names, FOLDED),
            "dedupe": {"window_records": window_records, "window_ms": 2 * WINDOW},
            "time": {"max_advance_ms": ADVANCE},
            "limits": {"max_open_bytes": open_bytes},
        }
    )  # fmt: skip


def shared(log: Sequence[Record], rng: random.Random) -> list[Record]:
    """A click log of both experiments; its records name some clients."""
    found = []
    for record in log:
        value = record.value or b""
        if rng.random() < 0.5:
            value = value.replace(b'"search"', b'"ads"')
        if value.startswith(b"{") and rng.random() < 0.5:
            value = value[:-1] + b', "client": "%d"}' % rng.randrange(8)
        found.append(record._replace(value=value))
    return found


def drawn(kind: str, rng: random.Random) -> tuple[list[Record], Config, Config]:
    """A click log, and configurations with both experiments and without `ads`."""
    log = shared(log_of(kind, rng, rng.choice([1, 41])), rng)
    bounds = rng.choice([60, 10**6]), rng.choice([5_000, 10**9])
    return log, made_of(["ads", "search"], *bounds), made_of(["search"], *bounds)


def undisturbed(made: Config, log: Sequence[Record], changes: Sequence[int]) -> Output:
    """A run without a restart, in which `ads` leaves and joins by turns, before these records."""
    output, absent = Output(), None
    task = PartitionTask(made, LOG, 0)
    task.begin(0)
    for begin, end in pairwise([0, *changes, len(log)]):
        task.fold(log[begin:end])
        if end < len(log) and absent is None:
            absent = task.leave("ads")
        elif end < len(log) and absent is not None:
            task.rejoin(absent)
            absent = None
    output.take(task.take_commit())
    return output


def visible(output: Output, *experiments: str) -> list[Any]:
    """What is visible of some experiments, and the state of the partition but for dead letters."""
    partition = json.loads(output.entries["partition"])
    for field in ("dead_letters", "entries", "checksum"):
        partition.pop(field, None)
    names = [b'"experiment":"%s"' % name.encode() for name in experiments]
    return [
        partition,
        *([it for it in output.assignments if name in it] for name in names),
        *(json.loads(output.entries[f"experiment/{name}"])["state"] for name in experiments),
    ]


def with_restarts(
    both: Config, one: Config, log: Sequence[Record], changes: Sequence[int], rng: random.Random
) -> Output:
    """Runs with both experiments and without `ads`, by turns."""
    ends = [*changes, len(log)]
    whole = run(both, log[: ends[0]], [], set())
    for number, (begin, end) in enumerate(pairwise(ends)):
        made = both if number % 2 else one
        restarts = {rng.randrange(begin, end) for _ in range(rng.randrange(3)) if begin < end}
        part = continued(made, list(log[:end]), begin, whole.entries, restarts - {begin})
        part.assignments[:0] = whole.assignments
        whole = part
    return whole


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["healthy", "gaps", "chaos"])
def test_a_removed_experiment_leaves_its_neighbour_as_it_is(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    log, both, one = drawn(kind, rng)
    at = rng.randrange(1, len(log) - 1)
    found = with_restarts(both, one, log, [at], rng)
    assert visible(found, "search") == visible(undisturbed(both, log, [at]), "search")
    assert json.loads(found.entries["experiment/ads"])["ended_at"] == log[at - 1].offset + 1


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["healthy", "gaps", "chaos"])
def test_an_experiment_that_is_configured_again_continues(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed} again")
    log, both, one = drawn(kind, rng)
    gap = sorted(rng.sample(range(1, len(log)), 2))
    found = with_restarts(both, one, log, gap, rng)
    expected = undisturbed(both, log, gap)
    assert visible(found, "ads", "search") == visible(expected, "ads", "search")
    offsets = [log[at - 1].offset + 1 for at in gap]
    assert json.loads(found.entries["experiment/ads"])["gaps"] == [offsets]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["healthy", "gaps", "chaos"])
def test_processes_with_and_without_an_experiment_may_take_turns(kind: str, seed: int) -> None:
    """As in a rolling restart: some of them fold no record at all."""
    rng = random.Random(f"{kind} {seed} turns")
    log, both, one = drawn(kind, rng)
    changes = sorted(rng.choice(range(100, len(log), 20)) for _ in range(rng.randrange(3, 9)))
    found = with_restarts(both, one, log, changes, rng)
    expected = undisturbed(both, log, changes)
    assert visible(found, "search") == visible(expected, "search")
    if len(changes) % 2 == 0:
        assert visible(found, "ads") == visible(expected, "ads")


def served(log: Sequence[Record], *parts: tuple[Config, int]) -> Broker:
    """The service ran with each configuration up to a record."""
    broker = Broker([])
    for made, end in parts:
        former, broker = broker, Broker(log[:end])
        broker.assignments, broker.dead_letters = former.assignments, former.dead_letters
        broker.snapshots = former.snapshots
        run_service(made, broker)
    return broker


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("again", [False, True])
def test_a_replay_folds_a_removed_experiment_but_for_the_gap(seed: int, again: bool) -> None:
    rng = random.Random(seed)
    log = shared(log_of("chaos", rng, 1), rng)
    both, one = (made_of(names, 60, 5_000) for names in (["ads", "search"], ["search"]))
    at, back = sorted(rng.sample(range(1, len(log)), 2))
    parts = [(both, at), (one, back), (both, len(log))] if again else [(both, at), (one, len(log))]
    broker = served(log, *parts)
    verdict = replay(parts[-1][0], broker.source(), broker.outlet())
    assert (verdict.difference, verdict.unchecked) == (None, [])
    assert verdict.assignments == len(broker.assignments)


def test_a_replay_names_a_removed_experiment_whose_settings_cannot_be_read() -> None:
    both, one = (made_of(names, 60, 5_000) for names in (["ads", "search"], ["search"]))
    rng = random.Random(1)
    log = shared(log_of("healthy", rng, 1), rng)
    broker = served(log, (both, 200), (one, len(log)))
    entries = changed(
        broker.snapshots[0].entries,
        "experiment/ads",
        lambda entry: entry["settings"].update(policy={"name": "gone"}),
    )
    broker.snapshots[0] = replace(broker.snapshots[0], entries=entries)
    assert replay(one, broker.source(), broker.outlet()).unchecked == ["ads"]
    before = len(broker.assignments)
    run_service(one, broker)  # it starts all the same
    assert len(broker.assignments) == before


@pytest.mark.parametrize("at", [0, 150])
def test_an_experiment_that_was_removed_before_a_move_continues_in_the_new_log(at: int) -> None:
    rng = random.Random(at)
    both, one = (made_of(names, 60, 5_000) for names in (["ads", "search"], ["search"]))
    log, new = (shared(log_of("chaos", rng, 1), rng) for _ in range(2))
    former = served(log, (both, 200), (one, len(log)))
    saved = repair_commits.read(former.snapshots[0], 0)
    shape = ClickLog(former.source().topic, 1, lambda experiment: 0, lambda partition: None)
    (moved,) = Move({0: saved}, shape, {0: 0}, "new_log", "by a test").commits()

    broker = Broker(new[:at])
    broker.assignments = former.assignments
    broker.snapshots[0] = Snapshot(0, {**former.snapshots[0].entries, **moved.entries})
    run_service(one, broker)
    broker.log = list(new)
    run_service(both, broker)
    entry = json.loads(broker.snapshots[0].entries["experiment/ads"])
    assert (entry["ended_at"], entry["gaps"]) == (None, [[0, at]])
    verdict = replay(both, broker.source(), broker.outlet())
    assert (verdict.difference, verdict.unchecked) == (None, [])
    assert sum(b'"experiment":"ads"' in it.value for it in broker.assignments) > 10


class Grown(Broker):
    """A broker whose topic has got a second partition, which is empty."""

    def source(self) -> MemorySource:
        return OfTwoPartitions(self)


class OfTwoPartitions(MemorySource):
    partitions = 2

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        found = super().poll(timeout, hold=hold)
        return Poll(gained=[0, 1]) if found.gained else found

    def seek(self, partition: int, offset: int | None) -> int:
        return super().seek(partition, offset) if partition == 0 else 0

    def caught_up(self, partition: int) -> bool:
        return partition == 1 or super().caught_up(partition)


class Deleting(OfTwoPartitions):
    """Partition 1 loses records behind the end of its snapshot, while partition 0 is read."""

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        found = super().poll(timeout, hold=hold)
        return Poll(records=found.records, missed={1: 7}) if found.records else found


MOVED_AT = 180
NAMES = ["ads", "gone", "search", "shop"]


def named(*names: str, **limits: Any) -> Config:
    made = made_of(names, 60, 5_000)
    return made.model_copy(update={"limits": made.limits.model_copy(update=limits)})


def repartitioned(log: list[Record]) -> Broker:
    """Partition 0 goes on in the same topic with one partition more, and with new assignments.

    Before, `ads` was removed and configured again, stream time was set back, and `gone` and `shop`
    were removed.
    """
    former = served(
        log, (named(*NAMES), 60), (named("search", "shop"), 90), (named("ads", "search"), 120)
    )
    entry = repair_commits.read(former.snapshots[0], 0).partition
    commit = repair_commits.set_time(former.snapshots[0], 0, entry.stream_time - 1000, "by a test")
    former.snapshots[0] = Snapshot(120, {**former.snapshots[0].entries, **commit.entries})
    former.log = log[:MOVED_AT]
    run_service(named("ads", "search"), former)
    saved = repair_commits.read(former.snapshots[0], 0)
    broker = Grown(log[:MOVED_AT])
    shape = ClickLog.of(broker.source())
    move = Move({0: saved}, shape, {0: 0, 1: 0}, "repartition", "by a test")
    for moved in move.commits():
        broker.snapshots[moved.partition] = Snapshot(moved.next_offset, dict(moved.entries))
    return broker


@pytest.mark.parametrize("seed", range(4))
def test_a_replay_after_a_repartition_begins_with_what_was_so_far(seed: int) -> None:
    """Repairs, gaps and ends before it are part of the state; a gap may also reach across it.

    Control records count as they did: they are switched off when `shop` is configured again.
    """
    rng = random.Random(seed)
    log = [
        record._replace(
            value=(record.value or b"").replace(b'"search"', b'"%s"' % rng.choice(NAMES).encode())
        )
        for record in log_of("chaos", rng, 1)
    ]
    for at in (200, 250):
        log[at] = log[at]._replace(value=control("reset", number=at))
    broker = repartitioned(log)
    last = named("ads", "search", "shop", control_records=False)
    for made, end in ((named("ads", "search"), 220), (last, len(log))):
        broker.log = log[:end]
        run_service(made, broker)
    assert json.loads(broker.snapshots[0].entries["experiment/shop"])["gaps"] == [[90, 220]]
    verdict = replay(last, Deleting(broker), broker.outlet())
    assert (verdict.difference, verdict.unchecked) == (None, [])
    assert verdict.records == len(log) - MOVED_AT
    assert verdict.assignments == len(broker.assignments) > 0

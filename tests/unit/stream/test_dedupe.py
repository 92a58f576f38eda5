"""The dedupe window against a slow model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamduel.stream.dedupe import DedupeWindow, record_key
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record
from tests.unit.stream.folding import DUEL, DUELS, INTERLEAVING, Partition, config, letters, text


class Model:
    """A slow model: keeps everything and searches all of it every time."""

    def __init__(self, max_records: int, max_ms: int) -> None:
        self.max_records, self.max_ms = max_records, max_ms
        self.seen: list[tuple[object, int]] = []

    def add(self, key: object, now: int) -> bool:
        lately = self.seen[-self.max_records :]
        known = any(key == other and now - then <= self.max_ms for other, then in lately)
        self.seen.append((key, now))
        return known


STEPS = st.lists(
    st.tuples(
        st.integers(0, 6),  # the key
        st.sampled_from([1, 1, 1, 2, 4095, 4096, 9000]),  # how far the offset moves
        st.sampled_from([0, 0, 1, 3, 10, 40]),  # how far stream time moves
    ),
    max_size=60,
)
Steps = Sequence[tuple[int, int, int]]


def walk(window: DedupeWindow, steps: Steps, offset: int = 0, now: int = 0) -> list[bool]:
    """The answers of a window to each entry."""
    told = []
    for key, further, later in steps:
        offset, now = offset + further, now + later
        if later:
            window.advance(now, offset)
        told.append(add(window, key, offset))
    return told


def add(window: DedupeWindow, key: int, offset: int) -> bool:
    """Add a key with the next record, as the fold does."""
    if offset >= window.block_end:
        window.begin_block(offset)
    return window.add(key)


def reach(steps: Steps) -> tuple[int, int]:
    """Offset and stream time after some steps."""
    return sum(step[1] for step in steps), sum(step[2] for step in steps)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(STEPS, st.integers(1, 12), st.integers(0, 50))
def test_an_id_is_remembered_within_both_bounds(
    steps: Steps, max_records: int, max_ms: int
) -> None:
    window, model = DedupeWindow(max_records, max_ms), Model(max_records, max_ms)
    window.advance(0, 0)
    expected = [model.add(step[0], reach(steps[: i + 1])[1]) for i, step in enumerate(steps)]
    assert walk(window, steps) == expected
    assert len(window) <= max_records


@settings(max_examples=300, deadline=None, derandomize=True)
@given(STEPS, STEPS, st.integers(1, 12), st.integers(0, 50))
def test_a_rebuilt_window_gives_the_same_answers(
    before: Steps, after: Steps, max_records: int, max_ms: int
) -> None:
    original, rebuilt = DedupeWindow(max_records, max_ms), DedupeWindow(max_records, max_ms)
    original.advance(0, 0)
    walk(original, before)
    offset, now = reach(before)
    start = original.start
    rebuilt.advance(start.stream_time, start.offset)
    at, time = 0, 0
    for key, further, later in before:
        at, time = at + further, time + later
        if at < start.offset:
            continue
        if later and at > start.offset:
            rebuilt.advance(time, at)
        add(rebuilt, key, at)
    assert len(rebuilt) == len(original)
    assert rebuilt.start == original.start
    assert walk(rebuilt, after, offset, now) == walk(original, after, offset, now)
    assert rebuilt.start == original.start


def test_the_start_of_a_window_is_near_its_oldest_entry() -> None:
    """Also in a click log without timestamps."""
    window = DedupeWindow(max_records=100, max_ms=1000)
    window.advance(0, 0)
    for offset in range(50_000):
        add(window, offset, offset)
    assert 50_000 - 100 - 4096 <= window.start.offset <= 50_000 - 100


def test_an_empty_window_starts_at_the_present() -> None:
    window = DedupeWindow(max_records=100, max_ms=10)
    window.advance(0, 0)
    window.add(1)
    window.advance(11, 5)
    assert len(window) == 0
    assert window.start == (5, 11)


def test_forgotten_ids_take_no_memory() -> None:
    window = DedupeWindow(max_records=100, max_ms=0)
    for offset in range(100_000):
        window.advance(offset, offset)
        add(window, offset, offset)
    assert len(window) == len(window.keys) == 1
    assert len(window._times) < 20_000


def test_record_keys_are_pinned() -> None:
    # Equal in every process.
    assert record_key("click-1", 0) == 0x44EE4F56DB1A72E8CA4DACFF129BC71D
    assert record_key("click-1", 1) != record_key("click-1", 0)


RECORDS = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.sampled_from(["search", "search", "ads"]),
        st.sampled_from([-20, 0, 1, 5, 30]),
        st.sampled_from(["duel", "duel", "duels", "interleaving", "poison"]),
        st.sampled_from([1, 1, 1, 4096]),  # how far the offset moves
    ),
    max_size=50,
)


def record_of(offset: int, timestamp: int, id_: str, experiment: str, kind: str) -> Record:
    arms = {"a": "x", "b": "y"} if experiment == "ads" else {}
    makers = {"duel": DUEL, "duels": DUELS, "interleaving": INTERLEAVING}
    if kind == "poison":
        return Record(offset, text(DUEL, id=id_, experiment=experiment, a="nobody"), timestamp)
    return Record(
        offset, text(makers[kind], id=id_, experiment=experiment, **arms), max(0, timestamp)
    )


@settings(max_examples=150, deadline=None, derandomize=True)
@given(RECORDS, st.integers(1, 12), st.integers(0, 40), st.data())
def test_the_fold_counts_each_id_once_across_chunks_and_restarts(
    drawn: list[tuple[str, str, int, str, int]], max_records: int, max_ms: int, data: st.DataObject
) -> None:
    """Valid records enter the window, invalid ones do not; ids are unique per experiment."""
    dedupe = {"window_records": max_records, "window_ms": max_ms}
    model, now, log = Model(max_records, max_ms), 0, []
    expected = {"search": 0, "ads": 0}
    timestamp = offset = 0
    for id_, experiment, step, kind, further in drawn:
        offset += further
        timestamp = max(0, timestamp + step)
        log.append(record_of(offset, timestamp, id_, experiment, kind))
        if kind != "poison":  # dead letters do not move stream time
            now = max(now, timestamp)
            expected[experiment] += model.add((experiment, id_), now)
    entries: dict[str, bytes] = {}
    cuts = data.draw(st.sets(st.integers(0, len(log)), max_size=4))
    for cut in sorted({*cuts, len(log)}):
        task = PartitionTask(
            config(dedupe=dedupe), ClickLog("clicks", 1, lambda name: 0), 0, entries or None
        )
        task.begin(task.resume_offset or 0)
        task.fold([record for record in log[:cut] if record.offset >= (task.resume_offset or 0)])
        entries.update(task.take_commit().entries)
    assert {name: it.tallies["duplicate"] for name, it in task.experiments.items()} == expected


def test_a_duplicate_is_counted_and_changes_nothing_else() -> None:
    partition = Partition()
    partition.fold(text(DUEL))
    known = partition.task.experiments["search"].policy.state_dict()
    commit = partition.fold(text(DUEL), text(DUEL, winner="b"), text(DUELS), text(INTERLEAVING))
    assert partition.task.experiments["search"].policy.state_dict() == known
    assert partition.tallies() == {
        "accepted": 1, "duplicate": 4, "dead_letter": 0, "late": 0, "unjoined": 0, "capped": 0,
    }  # fmt: skip
    assert not commit.assignments
    assert not commit.dead_letters


@pytest.mark.parametrize(("others", "accepted"), [(2, 1), (3, 2)])
def test_a_duplicate_is_forgotten_beyond_the_window_of_records(others: int, accepted: int) -> None:
    partition = Partition(config(dedupe={"window_records": 3}))
    partition.fold(text(DUEL), *(text(DUEL, id=f"other-{i}") for i in range(others)), text(DUEL))
    assert partition.tallies()["accepted"] - others == accepted


@pytest.mark.parametrize(("later", "accepted"), [(100, 1), (101, 2)])
@pytest.mark.parametrize("clock", ["broker", "event"])
def test_a_duplicate_is_forgotten_beyond_the_window_of_time(
    later: int, accepted: int, clock: str
) -> None:
    partition = Partition(config(dedupe={"window_ms": 100}))
    times = [5_000, 5_000 + later]
    partition.task.fold(
        [Record(at, text(DUEL, ts=time), time if clock == "broker" else None)
         for at, time in enumerate(times)]
    )  # fmt: skip
    partition.task.take_commit()
    assert partition.tallies()["accepted"] == accepted


def test_dead_letters_do_not_enter_the_window() -> None:
    partition = Partition(config(dedupe={"window_records": 1}))
    poison = text(DUEL, a="nobody")
    commit = partition.fold(poison, text(DUEL), *[poison] * 5, text(DUEL))
    assert len(letters(commit)) == 6
    assert partition.tallies()["accepted"] == 1
    assert partition.tallies()["duplicate"] == 1


def test_an_id_is_unique_within_its_experiment_only() -> None:
    partition = Partition()
    partition.fold(text(DUEL), text(DUEL, experiment="ads", a="x", b="y"))
    assert partition.tallies("search")["accepted"] == partition.tallies("ads")["accepted"] == 1

"""A restart with other limits re-reads earlier records as what they were."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec import structs

from streamduel.config import Config
from streamduel.stream import snapshot_reading
from streamduel.stream.snapshot import Entries
from tests.unit.stream.folding import (
    DUEL,
    DUELS,
    Partition,
    bulk,
    config,
    letters,
    text,
)

IMPRESSION = {"type": "impression", "experiment": "search", "a": "bm25", "b": "ltr-v1"}
CLICK = {"type": "click", "experiment": "search"}
WIDE = {"max_record_bytes": 10_000, "max_ranks": 50, "max_duels_per_record": 50}
DEDUPE = ("window_ms", "window_records")


def made_of(**limits: int) -> Config:
    search = {"join_window_ms": 200, "decide_every": 5}
    dedupe = {key: limits.pop(key) for key in DEDUPE if key in limits}
    return config(search=search, limits=WIDE | limits, dedupe={"window_ms": 1000} | dedupe)


SMALL = [{"window_ms": 5}, {"window_records": 5}, {"max_open_bytes": 4096}]


def shown(number: int | str, ranks: int = 4, **fields: Any) -> bytes:
    return text(IMPRESSION, id=f"i-{number}", teams=["a", "b"] * (ranks // 2), **fields)


def clicked(number: int | str) -> bytes:
    return text(CLICK, id=f"c-{number}", impression=f"i-{number}", rank=0)


def continued(partition: Partition, settings: Config) -> Partition:
    """The partition after a restart with another configuration."""
    other = Partition(settings, entries=dict(partition.entries))
    assert other.task.resume_offset is not None
    other.task.fold(partition.log[other.task.resume_offset :])
    other.log = list(partition.log)
    return other


def closed(partition: Partition) -> Partition:
    """The partition after all join windows have been closed."""
    for number in range(40):
        partition.fold_at(3_000 + number, bulk("bm25", "ltr-v1", 1, number=number))
    return partition


@pytest.mark.parametrize(
    ("limits", "value"),
    [
        ({"max_ranks": 5}, shown("large", 10)),
        ({"max_record_bytes": 300}, shown("large", query="q" * 250)),
    ],
    ids=["ranks", "bytes"],
)
def test_a_raised_limit_holds_for_records_from_then_on(
    limits: dict[str, int], value: bytes
) -> None:
    before = Partition(made_of(**limits))
    before.fold(shown("small"))
    assert len(letters(before.fold(value))) == 1
    after = continued(before, made_of())
    assert after.fold(value).dead_letters == []
    after.fold(clicked("large"))
    assert after.tallies()["duplicate"] == 0
    assert after.tallies()["unjoined"] == 0
    assert closed(after).duels() == 2 + 40


def test_a_refused_record_stays_one_after_a_raised_limit() -> None:
    before = Partition(made_of(max_ranks=5))
    before.fold(shown("small"), *(shown(number, 10) for number in range(20)))
    assert closed(continued(before, made_of())).duels() == 1 + 40


def test_an_open_impression_stays_one_after_a_lowered_limit() -> None:
    before = Partition(made_of())
    before.fold(*(shown(number, 10) for number in range(20)))
    after = continued(before, made_of(max_ranks=5))
    assert len(letters(after.fold(shown("new", 10)))) == 1
    after.fold(clicked(3))
    assert after.tallies()["unjoined"] == 0
    assert closed(after).duels() == 20 + 40


def too_large(limits: dict[str, int], value: bytes, ranks: int, duels: int) -> bool:
    return (
        len(value) > limits["max_record_bytes"]
        or ranks > limits["max_ranks"]
        or duels > limits["max_duels_per_record"]
    )


@pytest.mark.parametrize("seed", range(30))
def test_results_do_not_depend_on_changes_of_the_limits(seed: int) -> None:
    """What the limits refused is junk for the partition that it is compared with."""
    rng = random.Random(seed)
    undisturbed, restarted = Partition(made_of()), Partition(made_of())
    number, values = 0, list[tuple[bytes, int, int]]()
    for _ in range(rng.randint(2, 5)):
        limits = {
            "max_record_bytes": rng.choice([300, 10_000]),
            "max_ranks": rng.choice([4, 8, 50]),
            "max_duels_per_record": rng.choice([2, 50]),
        }
        restarted = continued(restarted, made_of(**limits))
        batch = []
        for _ in range(rng.randint(1, 150)):
            number += 1
            ranks, duels = rng.choice([2, 4, 6, 10]), rng.randint(1, 4)
            query = "q" * rng.choice([0, 0, 0, 250])
            made = rng.choice([
                (shown(number, ranks, query=query), ranks, 0),
                (text(DUELS, id=f"d-{number}", wins_a=duels, wins_b=0, query=query), 0, duels),
                (clicked(rng.randint(max(0, number - 100), number + 3)), 0, 0),
            ])  # fmt: skip
            values.append(made)
            batch.append(rng.choice([made, made, made, rng.choice(values)]))  # some once more
        seen = [b"junk" if too_large(limits, *one) else one[0] for one in batch]
        found = restarted.fold(*(one[0] for one in batch))
        expected = undisturbed.fold(*seen)
        assert len(found.dead_letters) == len(expected.dead_letters)
        assert found.assignments == expected.assignments
    states = [closed(each).knows()["search"] for each in (restarted, undisturbed)]
    for state in states:
        del state["timeline"]  # it has the alarm about dead letters of an experiment
    assert states[0] == states[1]


@pytest.mark.parametrize("lowered", SMALL)
def test_what_was_open_is_credited_after_a_lowered_bound(lowered: dict[str, int]) -> None:
    before = Partition(made_of())
    before.fold(*map(clicked, range(20)), *map(shown, range(20)))
    after = continued(before, made_of(**lowered))
    after.fold(shown("new"), clicked("new"))
    assert closed(after).wins()[0][1] == 20 + 1 + 40
    assert after.tallies()["accepted"] == 20 + 20 + 2 + 40


def test_windows_that_a_shorter_one_ends_close_with_the_next_record() -> None:
    before = Partition(made_of())
    before.fold(*(text(DUEL, id=f"d-{number}") for number in range(40)), *map(shown, range(20)))
    after = continued(before, made_of(window_ms=5))
    after.fold_at(None, bulk("bm25", "ltr-v1", 1))
    assert after.task.experiments["search"].open == {"impressions": 6, "clicks": 0}
    assert after.duels() == 40 + 14 + 1
    again = continued(after, made_of(window_ms=5))
    assert again.knows() == after.knows()
    assert closed(again).duels() == 40 + 20 + 1 + 40


def test_a_window_that_is_over_stays_so_after_a_raised_window_ms() -> None:
    before = Partition(made_of(window_ms=100))
    before.fold_at(0, clicked("late"))
    before.fold_at(10, shown("over"))
    before.fold_at(90, shown("late"))
    before.fold_at(130, bulk("bm25", "ltr-v1", 1))
    assert before.duels() == 1 + 1
    after = continued(before, made_of())
    assert closed(after).duels() == 2 + 1 + 40


def test_a_window_that_is_over_stays_so_after_a_raised_window_records() -> None:
    before = Partition(made_of(window_records=5))
    before.fold(text(IMPRESSION, id="i", experiment="ads", a="x", b="y", teams=["a", "b"]))
    before.fold(*map(shown, range(20)))
    assert before.task.experiments["ads"].open["impressions"] == 1
    assert before.duels() == 15
    after = continued(before, made_of())
    after.fold(clicked(3), clicked(18))
    assert after.tallies()["accepted"] == 20 + 1
    assert closed(after).duels() == 20 + 40


@pytest.mark.parametrize("unknown", [{"open": None}, {"max_advance_ms": None}])
def test_a_snapshot_that_does_not_note_the_bounds_takes_those_of_the_configuration(
    unknown: dict[str, Any],
) -> None:
    before = Partition(made_of())
    before.fold(*map(shown, range(20)))
    entry = snapshot_reading.read(before.entries, 0).partition
    assert isinstance(entry.limits, list)
    unnoted = [limits._replace(**unknown) for limits in entry.limits]
    before.entries |= Entries(before.entries).take(structs.replace(entry, limits=unnoted))
    after = continued(before, made_of())
    after.fold(*map(clicked, range(20)))
    assert closed(after).wins()[0][1] == 20 + 40


@pytest.mark.parametrize("seed", range(12))
def test_further_restarts_change_nothing_after_changed_bounds(seed: int) -> None:
    """And every impression becomes one duel."""
    rng = random.Random(seed)
    steady, restarted = Partition(made_of()), Partition(made_of())
    now, number, duels, values = 0, 0, 0, list[bytes]()
    for _ in range(rng.randint(3, 8)):
        settings = made_of(
            window_ms=rng.choice([20, 100, 1000]),
            window_records=rng.choice([5, 30, 1000]),
            max_open_bytes=rng.choice([4096, 10_000, 10**6]),
        )
        steady, restarted = continued(steady, settings), continued(restarted, settings)
        for _ in range(rng.randint(1, 100)):
            number += 1
            now += rng.choice([0, 0, 1, 5, 20])
            on = rng.randint(max(0, number - 20), number + 5)
            other = text(IMPRESSION, id=f"i-{number}", experiment="ads", a="x", b="y", teams=["a"])
            made = rng.choice([shown(number), clicked(on), text(DUEL, id=f"d-{number}"), other])
            values.append(made)
            value = rng.choice([made, made, made, rng.choice(values)])  # some once more
            duplicates = steady.tallies()["duplicate"]
            found, expected = restarted.fold_at(now, value), steady.fold_at(now, value)
            if b'"search"' in value and b'"click"' not in value:
                duels += 1 - (steady.tallies()["duplicate"] - duplicates)
            assert found.assignments == expected.assignments
            assert restarted.entries == steady.entries
            if rng.random() < 0.1:
                restarted = continued(restarted, settings)
    assert restarted.knows() == steady.knows()
    assert closed(steady).duels() == duels + 40

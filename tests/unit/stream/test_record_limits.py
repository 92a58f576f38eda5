"""A restart with other limits re-reads earlier records as what they were."""

from __future__ import annotations

import random
from typing import Any

import pytest

from streamduel.config import Config
from tests.unit.stream.folding import (
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


def made_of(**limits: int) -> Config:
    search = {"join_window_ms": 200, "decide_every": 5}
    return config(search=search, limits=WIDE | limits, dedupe={"window_ms": 1000})


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

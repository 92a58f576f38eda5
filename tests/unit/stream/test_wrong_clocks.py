"""The fold of click logs whose timestamps are partly wrong."""

from __future__ import annotations

import json
import random
from itertools import combinations
from typing import Any

import pytest

from streamduel.records import MAX_TIME
from streamduel.testing import Record
from tests.unit.stream.folding import (
    ARMS,
    CONTROL,
    DUEL,
    DUELS,
    INTERLEAVING,
    Partition,
    assignments,
    config,
    letters,
    text,
)
from tests.unit.stream.test_attribution import click, impression

START = 1_790_000_000_000
YEAR_2100 = 4_102_444_800_000
MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR

ALONE = {"experiment": "ads", "a": "x", "b": "x", "winner": None}
FALLBACK = {"fallback": {"arm": "bm25", "idle_ms": 10 * MINUTE}}


class Traffic:
    """A partition with two experiments, and the time of its well set clocks."""

    def __init__(self, **parts: Any) -> None:
        search = {"guardrails": FALLBACK, **parts.pop("search", {})}
        self.partition = Partition(config(search=search, **parts))
        self.now = START
        self.number = 0

    def fold(self, *values: bytes, at: int | None = None) -> list[dict[str, Any]]:
        """Fold values with the present time, or another one.

        Returns:
            The assignments of "search".
        """
        timestamp = self.now if at is None else at
        commit = self.partition.fold_at(timestamp, *values)
        self.letters = letters(commit)
        return [it for it in assignments(commit) if it["experiment"] == "search"]

    def others(self, count: int = 40, *, step: int = 10) -> list[dict[str, Any]]:
        """Duels of the other experiment, with all clocks right."""
        made = []
        for _ in range(count):
            self.now += step
            self.number += 1
            made += self.fold(text(DUEL, id=f"o-{self.number}", **ALONE))
        return made

    def clicked(self, first: int, count: int = 20) -> None:
        """Impressions, and a minute later a click on each."""
        shown = range(first, first + count)
        for number in shown:
            self.fold(impression(number))
        self.others(step=MINUTE // 40)
        for number in shown:
            self.fold(click(number, number))

    @property
    def duels(self) -> int:
        return self.partition.duels()

    @property
    def time(self) -> int:
        return self.partition.task.stream_time


JUNK = {
    "not JSON": b"\xff\xfe{",
    "unknown experiment": text(DUEL, id="j", experiment="sarch"),
    "unknown arm": text(DUEL, id="j", a="nobody"),
    "contradiction": text(INTERLEAVING, id="j", b="bm25"),
    "unknown arm of an impression": impression(77, a="nobody"),
}


@pytest.mark.parametrize("before", [0, 10, 100])
@pytest.mark.parametrize("junk", JUNK)
def test_a_dead_letter_does_not_move_stream_time(junk: str, before: int) -> None:
    traffic = Traffic()
    traffic.others(before)
    for _ in range(100):
        traffic.fold(JUNK[junk], at=YEAR_2100)
        assert len(traffic.letters) == 1
    assert traffic.time == (traffic.now if before else 0)
    traffic.clicked(1)
    assert traffic.partition.restarted().task.stream_time == traffic.time
    assert traffic.partition.task.time_outliers == 0


@pytest.mark.parametrize("wrong", [YEAR_2100, START + 7 * DAY, MAX_TIME, 2**60])
@pytest.mark.parametrize("kind", ["duel", "duplicate", "impression", "click"])
def test_one_record_far_ahead_changes_nothing(wrong: int, kind: str) -> None:
    odd = {
        "duel": text(DUEL, id="odd", **ALONE),
        "duplicate": text(DUEL, id="o-1", **ALONE),
        "impression": impression(999),
        "click": click(998, 998),
    }
    outcomes = []
    for at in (wrong, None):
        traffic = Traffic()
        traffic.others()
        traffic.clicked(1)
        traffic.fold(odd[kind], at=at)
        traffic.clicked(100)
        published = traffic.others(80, step=2 * MINUTE)
        published += traffic.fold(text(DUEL, id="last"))
        outcomes.append((traffic.duels, traffic.partition.tallies(), traffic.time, published))
        assert traffic.partition.task.time_outliers == (at is not None)
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0] == 41 + (kind == "impression")
    assert traffic.now < outcomes[0][3][-1]["valid_until"] <= traffic.now + 10 * MINUTE


@pytest.mark.parametrize("first", [0, 1, 12, 29])
def test_a_wrong_clock_among_the_first_records_is_found_with_the_31st(first: int) -> None:
    traffic = Traffic()
    traffic.others(first)
    traffic.fold(text(DUEL, id="odd", **ALONE), at=YEAR_2100)
    assert traffic.time == YEAR_2100
    traffic.clicked(1, 8)
    assert traffic.time == traffic.now
    published = traffic.others(200, step=MINUTE)
    assert traffic.duels == 8
    assert traffic.partition.tallies()["late"] == 0
    assert published[-1]["valid_until"] <= traffic.now + 10 * MINUTE
    assert traffic.partition.task.time_outliers == 1


def test_duplicates_are_known_though_a_clock_is_59_minutes_ahead() -> None:
    traffic = Traffic()
    traffic.others()
    duels = [text(DUEL, id=f"d-{number}") for number in range(1000)]
    traffic.fold(*duels)
    traffic.others(10, step=MINUTE)
    traffic.fold(text(DUEL, id="odd", **ALONE), at=traffic.now + 59 * MINUTE)
    traffic.fold(*duels)
    assert traffic.partition.tallies()["duplicate"] == 1000
    assert traffic.duels == 1000


def test_a_tenth_of_the_records_with_a_clock_an_hour_ahead() -> None:
    traffic = Traffic()
    rng = random.Random(3)
    outliers = 0
    for number in range(2_000):
        traffic.now += 500
        wrong = rng.random() < 0.1 and number >= 31
        outliers += wrong and number < 2_000 - 31
        at = traffic.now + HOUR if wrong else traffic.now
        value = impression(number // 2) if number % 2 == 0 else click(number, number // 2)
        traffic.fold(value, at=at)
        assert traffic.time <= traffic.now
    assert traffic.partition.tallies()["late"] == traffic.partition.tallies()["unjoined"] == 0
    assert traffic.partition.task.time_outliers == outliers > 100


@pytest.mark.parametrize("away", [2 * HOUR, 3 * DAY, 400 * DAY])
def test_a_real_gap_in_traffic_closes_windows_and_opens_new_ones(away: int) -> None:
    traffic = Traffic()
    traffic.others()
    for number in range(20):
        traffic.fold(impression(number))
    traffic.fold(text(DUEL, id="again"))
    traffic.now += away
    traffic.clicked(100)
    assert traffic.duels == 21, "those before the gap are closed"
    assert traffic.time == traffic.now
    traffic.fold(text(DUEL, id="again"))
    assert traffic.duels == 22, "and their ids are forgotten"
    traffic.others(80, step=MINUTE)
    assert traffic.duels == 42
    tallies = traffic.partition.tallies()
    assert (tallies["late"], tallies["unjoined"]) == (0, 0), "no click after the gap is lost"
    assert traffic.partition.task.time_outliers == 0


def test_ids_from_behind_a_gap_are_dated_there() -> None:
    traffic = Traffic()
    traffic.others()
    traffic.now += 3 * DAY
    duels = [text(DUEL, id=f"d-{number}") for number in range(31)]
    traffic.fold(*duels)
    traffic.fold(*duels)
    assert traffic.partition.tallies()["duplicate"] == 31


def test_sparse_traffic() -> None:
    traffic = Traffic(search={"join_window_ms": HOUR})
    for number in range(3_000):
        traffic.fold(impression(number))
        traffic.now += 10 * MINUTE
        traffic.fold(click(number, number))
        traffic.now += 10 * MINUTE
    tallies = traffic.partition.tallies()
    assert (tallies["accepted"], tallies["late"], tallies["unjoined"]) == (6_000, 0, 0)
    assert traffic.duels > 2_980
    assert traffic.partition.task.time_outliers == 0


def test_clocks_that_are_behind_never_turn_stream_time_back() -> None:
    traffic = Traffic()
    traffic.others()
    for number in range(200):
        traffic.fold(text(DUEL, id=f"b-{number}"), at=START - DAY)
    assert traffic.time == traffic.now
    traffic.others()
    assert traffic.time == traffic.now


def test_files_follow_the_same_rule_by_ts() -> None:
    traffic = Traffic()
    for number in range(100):
        traffic.now += 10
        traffic.partition.task.fold(
            [
                Record(
                    number,
                    text(DUEL, id=f"d-{number}", ts=traffic.now if number != 70 else YEAR_2100),
                )
            ]
        )
    assert traffic.time == traffic.now
    assert traffic.partition.task.time_outliers == 0
    traffic.partition.task.fold([Record(100, text(DUEL, id="none", ts=None))])
    assert traffic.time == traffic.now
    assert traffic.partition.task.clock.newest_ahead == (YEAR_2100, 70)


def test_an_outlier_among_the_first_records_is_named() -> None:
    traffic = Traffic()
    task = traffic.partition.task
    for number in range(100):
        now = START + 10 * number if number != 3 else YEAR_2100
        task.fold([Record(number, text(DUEL, id=f"d-{number}", ts=now))])
    assert task.time_outliers == 1
    assert task.clock.newest_ahead == (YEAR_2100, 3)


def test_an_outlier_just_before_a_restart_is_named() -> None:
    traffic = Traffic()
    traffic.others()
    traffic.fold(text(DUEL, id="ahead"), at=YEAR_2100)
    traffic.partition = traffic.partition.restarted()
    assert traffic.partition.task.time_outliers == 0
    traffic.others()
    assert traffic.partition.task.time_outliers == 1
    assert traffic.partition.task.clock.newest_ahead == (YEAR_2100, 40)


def test_a_wider_limit_obeys_one_record() -> None:
    traffic = Traffic(time={"max_advance_ms": DAY})
    traffic.others()
    traffic.fold(text(DUEL, id="tick"), at=traffic.now + DAY - MINUTE)
    assert traffic.time == traffic.now + DAY - MINUTE


# Stream time that was poisoned before, and is set back.


def poisoned() -> Traffic:
    """Everybody's clock was in the year 2100 for a while."""
    traffic = Traffic(search={"guardrails": FALLBACK, "join_window_ms": HOUR})
    traffic.others()
    traffic.clicked(1)
    for number in range(31):
        traffic.fold(text(DUEL, id=f"p-{number}", **ALONE), at=YEAR_2100)
    assert traffic.time == YEAR_2100
    traffic.clicked(100)
    assert traffic.time == YEAR_2100
    return traffic


def test_stream_time_can_be_set_back() -> None:
    traffic = poisoned()
    duels = traffic.duels
    task = traffic.partition.task
    assert duels == 20, "the windows before it were closed"
    task.set_stream_time(traffic.now)
    published = assignments(task.take_commit())
    search = next(it for it in published if it["experiment"] == "search")
    assert (search["ts"], search["valid_until"]) == (traffic.now, traffic.now + 10 * MINUTE)
    traffic.clicked(200)
    published = traffic.others(100, step=MINUTE)
    assert traffic.duels == 60, "impressions from before and after it are joined and credited"
    assert published[-1]["valid_until"] <= traffic.now + 10 * MINUTE
    assert traffic.partition.tallies()["late"] == 0
    assert traffic.time == traffic.now


def test_ids_are_forgotten_again_after_stream_time_was_set_back() -> None:
    traffic = poisoned()
    traffic.partition.task.set_stream_time(traffic.now)
    traffic.fold(text(DUEL, id="p-1", **ALONE))
    assert traffic.partition.tallies("ads")["duplicate"] == 1
    traffic.others(100, step=MINUTE)
    traffic.fold(text(DUEL, id="p-2", **ALONE))
    assert traffic.partition.tallies("ads")["duplicate"] == 1


def test_a_batch_deadline_passes_after_stream_time_was_set_back() -> None:
    batch = {"policy": {"name": "c2b", "horizon": 1_000}, "batch_deadline_ms": 10 * MINUTE,
             "batch_min_fill": 0.001, "batch_republish_ms": MINUTE}  # fmt: skip
    traffic = Traffic(search=batch)
    decisions = traffic.partition.task.experiments["search"].decisions
    pairs = list(combinations(ARMS, 2))
    traffic.others()
    for number in range(31):
        traffic.fold(text(DUEL, id=f"p-{number}", **ALONE), at=YEAR_2100)
    traffic.fold(*(text(DUELS, id=f"1 {a} {b}", a=a, b=b) for a, b in pairs))
    assert decisions.batch == (2, 30), "opened in the year 2100"
    traffic.partition.task.set_stream_time(traffic.now)
    traffic.fold(*(text(DUELS, id=f"2 {a} {b}", a=a, b=b) for a, b in pairs))
    assert decisions.batch == (2, 21)
    traffic.others(9, step=MINUTE)
    assert decisions.batch == (2, 21)
    traffic.others(20, step=MINUTE)
    assert (decisions.batch or ())[0] == 3


def test_setting_stream_time_forward_closes_windows() -> None:
    traffic = Traffic(search={"join_window_ms": HOUR})
    traffic.others()
    traffic.fold(impression(1))
    traffic.partition.task.set_stream_time(traffic.now + 2 * HOUR)
    assert traffic.duels == 1


@pytest.mark.parametrize("restarts", [1, 3])
def test_a_restart_after_stream_time_was_set_is_exact(restarts: int) -> None:
    states = []
    for restarted in (False, True):
        traffic = poisoned()
        partition = traffic.partition
        partition.task.set_stream_time(traffic.now)
        partition.entries.update(partition.task.take_commit().entries)
        for number in range(restarts):
            traffic.clicked(200 + 50 * number, 10)
            if restarted:
                traffic.partition = traffic.partition.restarted()
                assert traffic.partition.fold().entries.keys() == {"partition"}
        traffic.fold(text(DUEL, id="p-1", **ALONE), text(CONTROL, id="c"))
        traffic.others(100, step=MINUTE)
        entries = traffic.partition.entries
        states.append({name: json.loads(entry) for name, entry in sorted(entries.items())})
    assert states[0] == states[1]

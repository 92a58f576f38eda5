"""Impressions and clicks as records of their own, by hand."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from streamduel.connector import PartitionCommit
from tests.unit.stream.folding import (
    CONTROL,
    DUEL,
    Partition,
    assignments,
    config,
    letters,
    text,
)

START = 1_790_000_000_000
WINDOW = 1000

IMPRESSION: dict[str, Any] = {
    "type": "impression", "id": "i-1", "experiment": "search", "a": "bm25", "b": "ltr-v1",
    "teams": ["a", "b", None], "docs": ["d1", "d2", "d3"],
}  # fmt: skip
CLICK: dict[str, Any] = {
    "type": "click", "id": "c-1", "experiment": "search", "impression": "i-1", "rank": 0,
}  # fmt: skip


class Stream:
    """An experiment with a join window of one second, and control of stream time."""

    def __init__(self, window_records: int = 10**6, **experiment: Any) -> None:
        dedupe = {"window_records": window_records, "window_ms": 3_600_000}
        search = {"join_window_ms": WINDOW, **experiment}
        self.partition = Partition(config(search=search, dedupe=dedupe))
        self.now = START
        self._number = 0

    def fold(self, *records: bytes, after: int = 0) -> PartitionCommit:
        self.now += after
        commit = self.partition.fold_at(self.now, *records)
        self.verdicts = [(it["offset"], it["reason"], it["error"]) for it in letters(commit)]
        return commit

    def tick(self, after: int = WINDOW + 1) -> PartitionCommit:
        """Advance stream time by a duel."""
        self._number += 1
        return self.fold(text(DUEL, id=f"t-{self._number}", a="ltr-v2", b="ltr-v2", winner=None),
                         after=after)  # fmt: skip

    @property
    def wins(self) -> tuple[float, float]:
        wins = self.partition.wins()
        return wins[0][1], wins[1][0]

    def tallies(self) -> tuple[int, ...]:
        tallies = self.partition.tallies()
        names = ("accepted", "duplicate", "late", "unjoined", "dead_letter")
        assert tallies.keys() == {*names, "capped"}
        return tuple(tallies[name] for name in names)


def impression(number: int | str, **changes: Any) -> bytes:
    return text(IMPRESSION, id=f"i-{number}", **changes)


def click(number: int | str, on: int | str, **changes: Any) -> bytes:
    return text(CLICK, id=f"c-{number}", impression=f"i-{on}", **changes)


def test_an_impression_becomes_a_duel_when_its_window_closes() -> None:
    stream = Stream()
    stream.fold(impression(1))
    stream.fold(click(1, 1), after=WINDOW // 2)
    assert stream.wins == (0, 0)
    stream.tick(after=WINDOW - WINDOW // 2)
    assert stream.wins == (0, 0), "clicks may come with this very millisecond"
    stream.tick(after=1)
    assert stream.wins == (1, 0)
    assert stream.tallies() == (4, 0, 0, 0, 0)


@pytest.mark.parametrize(("delay", "late"), [(0, 0), (WINDOW, 0), (WINDOW + 1, 1), (50_000, 1)])
def test_a_click_after_the_window_is_late(delay: int, late: int) -> None:
    stream = Stream()
    stream.fold(impression(1))
    stream.fold(click(1, 1, rank=1), after=delay)
    stream.tick()
    assert stream.wins == ((0.5, 0.5) if late else (0, 1))
    assert stream.tallies() == (3 - late, 0, late, 0, 0)


@pytest.mark.parametrize(("delay", "lost"), [(0, 0), (WINDOW, 0), (WINDOW + 1, 1)])
def test_a_click_may_arrive_before_its_impression(delay: int, lost: int) -> None:
    stream = Stream()
    stream.fold(click(1, 1, rank=1))
    assert stream.tallies() == (0, 0, 0, 0, 0), "nothing is said yet"
    stream.fold(impression(1), after=delay)
    stream.tick()
    assert stream.wins == ((0.5, 0.5) if lost else (0, 1))
    assert stream.tallies() == (3 - lost, 0, 0, lost, 0)


def test_a_click_without_impression_is_unjoined() -> None:
    stream = Stream()
    stream.fold(click(1, "nowhere"), click(2, "nowhere"))
    stream.tick()
    assert stream.tallies() == (1, 0, 0, 2, 0)


@pytest.mark.parametrize(
    ("passing", "closed"),
    [(text(DUEL, experiment="ads", a="x", b="y"), True), (b"nonsense", False)],
    ids=["valid", "dead-letter"],
)
def test_a_window_closes_with_the_valid_record_of_any_experiment(
    passing: bytes, closed: bool
) -> None:
    stream = Stream()
    stream.fold(click(1, "nowhere"))
    stream.fold(passing, after=WINDOW + 1)
    search = stream.partition.task.experiments["search"]
    assert (search.tallies["unjoined"], search.open["clicks"]) == (closed, not closed)
    again = stream.partition.restarted().task.experiments["search"]
    assert again.state() == search.state()


@pytest.mark.parametrize(("mates", "most"), [(1, 450), (2, 800), (50, 400)])
def test_a_pending_click_takes_little_more_memory_than_its_text(mates: int, most: int) -> None:
    """Measured: 350, 730 and 350 bytes, of which 110 are the dedupe window's."""
    count = 20_000
    stream = Stream()
    values = [click(number, number // mates, action="cart") for number in range(count)]
    text_bytes = sum(map(sys.getsizeof, values)) / count
    tracemalloc.start()
    stream.fold(*[bytes(bytearray(value)) for value in values])  # copies, as a source makes them
    stream.partition.log.clear()
    gc.collect()
    each = tracemalloc.get_traced_memory()[0] / count
    tracemalloc.stop()
    assert stream.partition.task.experiments["search"].open["clicks"] == count
    assert text_bytes < each < text_bytes + most


def test_pending_clicks_on_one_impression_expire_one_by_one() -> None:
    stream = Stream()
    for number in range(4):
        stream.fold(click(number, 1, rank=number % 2), after=WINDOW // 4)
    stream.tick(after=WINDOW // 2)
    stream.tick(after=1)
    assert stream.tallies() == (2, 0, 0, 2, 0)
    stream.fold(impression(1))
    assert stream.tallies() == (5, 0, 0, 2, 0), "two have waited until now"
    stream.tick()
    assert stream.wins == (0.5, 0.5)


def test_clicks_by_rank_and_by_document_count() -> None:
    stream = Stream()
    stream.fold(
        impression(1), click(1, 1, rank=0), click(2, 1, rank=None, doc="d2"), click(3, 1, rank=1),
        click(4, 1, rank=None, doc="d3"),
    )  # fmt: skip
    stream.tick()
    assert stream.wins == (0, 1)


def test_the_same_record_twice_is_a_duplicate() -> None:
    stream = Stream()
    stream.fold(impression(1), impression(1), click(1, 1), click(1, 1), click(2, 1, rank=1))
    stream.tick()
    assert stream.wins == (0.5, 0.5)
    assert stream.tallies() == (4, 2, 0, 0, 0)


@pytest.mark.parametrize(("no_click", "wins"), [("tie", (0.5, 0.5)), ("drop", (0, 0))])
def test_an_impression_without_clicks_is_a_tie_or_no_duel(no_click: str, wins: Any) -> None:
    stream = Stream(no_click=no_click)
    stream.fold(impression(1))
    stream.tick()
    assert stream.wins == wins
    assert stream.tallies() == (2, 0, 0, 0, 0)
    whole = {"type": "interleaving", "teams": ["a", "b"], "clicks": []}
    stream.fold(text(IMPRESSION, **{**whole, "id": "w"}))
    assert stream.wins == (2 * wins[0], 2 * wins[1])


def test_a_dropped_tie_is_no_duel() -> None:
    stream = Stream(ties="drop")
    stream.fold(impression(1), click(1, 1), click(2, 1, rank=1))
    stream.tick()
    assert (stream.wins, stream.partition.duels()) == ((0, 0), 1)


NO_FIT: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"rank": 3}, {}, "the click has rank 3, but impression 'i-1' has 3 ranks, from 0."),
    ({"rank": None, "doc": "d9"}, {},
     "the click names the document 'd9', which impression 'i-1' does not have."),
    ({"rank": None, "doc": "d1"}, {"docs": None},
     "the click names the document 'd1', but impression 'i-1' has no docs."),
]  # fmt: skip


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize(("on_click", "on_impression", "sentence"), NO_FIT)
def test_a_click_that_does_not_fit_its_impression_is_one_dead_letter(
    early: bool, on_click: dict[str, Any], on_impression: dict[str, Any], sentence: str
) -> None:
    stream = Stream()
    shown, wrong = impression(1, **on_impression), click(1, 1, **on_click)
    if early:
        stream.fold(wrong)
        assert stream.verdicts == []
        commit = stream.fold(shown)
    else:
        stream.fold(shown)
        commit = stream.fold(wrong)
    assert stream.verdicts == [(0 if early else 1, "invalid_record", sentence)]
    assert letters(commit)[0]["value"] == wrong.decode()
    stream.fold(wrong)
    assert stream.tallies() == (1, 1, 0, 0, 1), "its id is remembered all the same"


REFUSED: list[tuple[bytes, str, str]] = [
    (click(1, 1, rank=None), "invalid_record",
     "a click must name a 'rank' or a 'doc' (found neither)."),
    (click(1, 1, rank=-1), "invalid_record", "rank must be an integer from 0, or null (found -1)."),
    (click(1, 1, action=""), "invalid_record",
     "action must be a string of 1 to 64 characters (found '')."),
    (impression(1, b="bm25"), "invalid_record",
     "a and b must be two arms (found 'bm25' twice); only a 'duel' may have one arm on both "
     "sides."),
    (impression(1, a="nobody"), "unknown_arm",
     "unknown arm 'nobody' in experiment 'search'; its arms are bm25, ltr-v1, ltr-v2."),
    (impression(1, docs=["d1"]), "invalid_record",
     "docs must have an entry for each rank, 3 as 'teams' has (found 1)."),
    (impression(1, chances=[0.5]), "invalid_record",
     "chances must have an entry for each rank, 3 as 'teams' has (found 1)."),
]  # fmt: skip


@pytest.mark.parametrize(("value", "reason", "sentence"), REFUSED)
def test_an_invalid_impression_or_click_is_refused_on_arrival(
    value: bytes, reason: str, sentence: str
) -> None:
    stream = Stream()
    stream.fold(value)
    assert stream.verdicts == [(0, reason, sentence)]
    assert stream.tallies() == (0, 0, 0, 0, 1)


def test_clicks_on_one_impression_are_limited() -> None:
    stream = Stream()
    stream.fold(impression(1), *(click(number, 1, rank=1) for number in range(1001)))
    assert stream.verdicts == [
        (1001, "invalid_record", "the click is one too many: impression 'i-1' already has 1000.")
    ]


def test_clicks_that_wait_for_one_impression_are_limited_to_the_newest() -> None:
    stream = Stream()
    stream.fold(click("another", 2), *(click(number, 1, rank=0) for number in range(3)))
    stream.fold(*(click(number, 1, rank=1) for number in range(3, 1003)))
    assert stream.tallies() == (0, 0, 0, 3, 0)
    again = stream.partition.restarted()
    assert again.task.experiments["search"].open == {"impressions": 0, "clicks": 1001}
    stream.fold(impression(1))
    assert stream.verdicts == [], "as many as an impression may have"
    stream.tick()
    assert stream.wins == (0, 1)
    assert stream.tallies() == (1002, 0, 0, 4, 0)


def test_an_impression_of_a_retired_arm_is_no_duel() -> None:
    stream = Stream()
    stream.fold(impression(1), click(1, 1))
    stream.fold(text(CONTROL, id="r-1", action="retire_arm", arm="bm25"))
    stream.tick()
    assert stream.partition.duels() == 1
    assert stream.tallies() == (4, 0, 0, 0, 0)


def test_a_decision_follows_the_window_that_makes_it_due() -> None:
    stream = Stream(decide_every=3)
    stream.fold(*(impression(number, a="bm25", b="ltr-v2") for number in range(8)),
                *(click(number, number, rank=1) for number in range(8)))  # fmt: skip
    commit = stream.tick()
    made = [it for it in assignments(commit) if it["experiment"] == "search"]
    assert [it["duels"] for it in made][:1] == [3]
    assert {it["duels"] for it in made} <= {3, 6}
    assert {it["offset"] for it in made} == {15}, "before the record with the later time"


def test_windows_close_by_number_of_records_when_time_does_not_advance() -> None:
    stream = Stream(window_records=5)
    stream.fold(impression(1), click(1, 1), *(DUEL_OF(number) for number in range(3)))
    assert stream.wins[0] == 3, "its window is open"
    stream.fold(click(2, 1))
    assert stream.wins[0] == 4, "the dedupe window has forgotten it"
    assert stream.partition.task.experiments["search"].attribution.pending == 1


def DUEL_OF(number: int) -> bytes:  # noqa: N802 - reads as a record
    return text(DUEL, id=f"d-{number}")


def opened(partition: Partition) -> dict[str, tuple[dict[str, int], int]]:
    """What is open, and the number of records."""
    return {name: (it.open, it.records) for name, it in partition.task.experiments.items()}


@pytest.mark.parametrize(
    ("window_records", "closing", "expected"),
    [
        pytest.param(100, lambda stream: stream.tick(), (0, 0), id="by time"),
        pytest.param(5, lambda stream: stream.fold(click(2, 1)), (0, 1), id="by number"),
        pytest.param(100, lambda stream: stream.fold(click(2, 2)), (1, 1), id="not yet"),
    ],
)
def test_a_restart_shows_what_is_open(
    window_records: int, closing: Callable[[Stream], object], expected: tuple[int, int]
) -> None:
    stream = Stream(window_records)
    stream.fold(impression(0, experiment="ads", a="x", b="y"))  # stays open: all is read again
    stream.fold(impression(1), click(1, 1), *(DUEL_OF(number) for number in range(5)))
    closing(stream)
    impressions, clicks = expected
    before = opened(stream.partition)
    assert before["search"][0] == {"impressions": impressions, "clicks": clicks}
    assert before["ads"][0] == {"impressions": 1, "clicks": 0}
    settings_, number, home = stream.partition.made_of
    begun = Partition(settings_, number, home, stream.partition.entries)
    assert begun.task.resume_offset == 0
    assert opened(begun) == before, "the click log has not been read again yet"
    again = stream.partition.restarted()
    assert opened(again) == before
    again.fold_at(stream.now, b"not of an experiment")
    assert opened(again) == before, "as rebuilt"


def test_windows_without_timestamps_close_by_number_of_records() -> None:
    settings_ = config(
        search={"join_window_ms": WINDOW}, dedupe={"window_records": 40, "window_ms": WINDOW}
    )
    partition = Partition(settings_)
    for number in range(100):
        partition.fold_at(None, impression(number), click(number, number))
    assert partition.duels() == 100 - 20, "of the last forty records, half are impressions"

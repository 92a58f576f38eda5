"""Valid records: duels, wins, decisions and assignments, by hand."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from streamduel.config.model import LimitSettings
from streamduel.preference.counts import MAX_DUELS
from streamduel.stream.dedupe import DedupeWindow
from streamduel.stream.experiment import Experiment
from streamduel.stream.output_buffer import OutputBuffer
from streamduel.stream.partition_context import PartitionContext
from streamduel.stream.timers import Timers
from tests.unit.stream.folding import (
    DUEL,
    DUELS,
    INTERLEAVING,
    Partition,
    assignments,
    config,
    searched,
    text,
)

CONTEXT = PartitionContext(
    0,
    1000,
    DedupeWindow(10, 1000),
    Timers(),
    OutputBuffer("clicks", 0),
    LimitSettings(max_duels_per_record=2**40),
    lambda: None,
)
BULK = 10**12


def search(**settings: Any) -> Partition:
    return Partition(config(search=settings, limits={"max_duels_per_record": 2**40}))


def duel(number: int, a: str, b: str, winner: str | None) -> bytes:
    return text(DUEL, id=str(number), a=a, b=b, winner=winner)


@pytest.mark.parametrize(("a", "b", "winner"), [("bm25", "ltr-v1", "a"), ("ltr-v1", "bm25", "b")])
def test_a_pair_has_no_order(a: str, b: str, winner: str) -> None:
    partition = search()
    partition.fold(duel(1, a, b, winner))
    assert partition.wins() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


def test_the_order_of_a_pair_does_not_change_state_or_bytes() -> None:
    one, other = search(), search()
    first = one.fold(duel(1, "bm25", "ltr-v1", "a"), duel(2, "ltr-v2", "bm25", "tie"))
    second = other.fold(duel(1, "ltr-v1", "bm25", "b"), duel(2, "bm25", "ltr-v2", "tie"))
    assert one.knows() == other.knows()
    assert first == second


@pytest.mark.parametrize(("ties", "wins", "duels"), [("half", 0.5, 1), ("drop", 0.0, 0)])
@pytest.mark.parametrize(
    "value", [text(DUEL, winner="tie"), text(INTERLEAVING, clicks=[]),
              text(DUELS, wins_a=0, wins_b=0, ties=1)],
    ids=["duel", "interleaving", "duels"],
)  # fmt: skip
def test_a_tie_is_half_a_win_each_way_or_no_duel(
    value: bytes, ties: str, wins: float, duels: int
) -> None:
    partition = search(ties=ties)
    partition.fold(value)
    assert partition.wins() == [[0, wins, 0], [wins, 0, 0], [0, 0, 0]]
    assert partition.duels() == duels
    assert partition.tallies()["accepted"] == 1


@pytest.mark.parametrize("winner", [None, "a", "b", "tie"])
@pytest.mark.parametrize("ties", ["half", "drop"])
def test_an_arm_served_alone_counts_in_duels_and_not_in_wins(winner: str | None, ties: str) -> None:
    partition = search(ties=ties)
    partition.fold(duel(1, "ltr-v1", "ltr-v1", winner))
    assert partition.wins() == [[0, 0, 0]] * 3
    assert partition.duels() == 1


@pytest.mark.parametrize(
    ("ties", "wins", "duels"),
    [("half", [BULK + 1.5, 4.5], BULK + 6), ("drop", [BULK + 1, 4], BULK + 5)],
)
def test_aggregated_duels_count_as_many(ties: str, wins: list[float], duels: int) -> None:
    partition = search(ties=ties)
    partition.fold(
        text(DUELS, id="1", wins_a=BULK, wins_b=3, ties=1),
        text(DUELS, id="2", a="ltr-v1", b="bm25", wins_a=1, wins_b=1, ties=0),
    )
    assert [partition.wins()[0][1], partition.wins()[1][0]] == wins
    assert partition.duels() == duels
    assert partition.tallies()["accepted"] == 2


def test_a_trillion_duels_take_no_longer_than_one_and_lose_none() -> None:
    partition = search()
    partition.fold(*(text(DUELS, id=str(i), wins_a=BULK, wins_b=i, ties=0) for i in range(1, 101)))
    assert partition.wins()[0][1] == 100 * BULK
    assert partition.wins()[1][0] == 5050
    assert partition.duels() == 100 * BULK + 5050


@pytest.mark.parametrize("last", [[DUEL], [DUEL, INTERLEAVING]], ids=["one", "two"])
def test_duels_beyond_exact_counting_are_accepted(
    last: list[dict[str, Any]],
) -> None:
    partition = search(decide_every=len(last))
    full = [text(DUELS, id=str(i), wins_a=2**40, wins_b=0, ties=0) for i in range(2**11)]
    partition.fold(*full, *(text(record, id=f"last-{i}") for i, record in enumerate(last)))
    assert partition.tallies()["accepted"] == 2**11 + len(last)
    assert partition.duels() == MAX_DUELS


@pytest.mark.parametrize(
    ("teams", "clicks", "wins"),
    [
        (["a", "b", "b", "a"], [0], [1, 0]),
        (["a", "b", "b", "a"], [1], [0, 1]),
        (["a", "b", "b", "a"], [0, 1], [0.5, 0.5]),
        (["a", "b", "b", "a"], [0, 1, 2], [0, 1]),
        (["a", "b", "b", "a"], [0, 0, 1], [1, 0]),
        (["a", "b", "b", "a"], [], [0.5, 0.5]),
        (["a", "b", None, "a"], [2, 2, 2, 1], [0, 1]),
        ([None, None], [0, 1], [0.5, 0.5]),
        (["b", "a"], [{"rank": 1, "ts": 3, "action": "save"}], [1, 0]),
        (["b", "a"], [{"rank": 1}, 1, 0], [1, 0]),
    ],
)
def test_the_side_with_more_clicks_wins_the_impression(
    teams: list[str | None], clicks: list[Any], wins: list[float]
) -> None:
    partition = search()
    partition.fold(text(INTERLEAVING, teams=teams, clicks=clicks))
    assert [partition.wins()[0][1], partition.wins()[1][0]] == wins


def test_all_types_and_cuts_count_alike() -> None:
    values = [
        duel(1, "bm25", "ltr-v1", "a"), duel(2, "ltr-v2", "ltr-v1", "tie"),
        text(DUELS, id="3", wins_a=4, wins_b=2, ties=1), text(INTERLEAVING, id="4"),
        duel(5, "bm25", "bm25", None),
    ]  # fmt: skip
    together, apart = search(decide_every=4), search(decide_every=4)
    together.fold(*values)
    for value in values:
        apart.fold(value)
    assert together.knows() == apart.knows()
    assert together.wins() == [[0, 6.5, 0], [2.5, 0, 0.5], [0, 0.5, 0]]
    assert together.duels() == 11


def test_the_first_assignment_precedes_all_records() -> None:
    (first, other) = assignments(search().begun)
    assert [first["experiment"], other["experiment"]] == ["search", "ads"]
    assert first == {
        "type": "assignment", "experiment": "search", "epoch": 1, "policy": "top_two",
        "champion": first["champion"], "pairs": first["pairs"], "duels": 0, "status": "running",
        "partition": 0, "offset": -1, "ts": 0, "stage": "top_two", "valid_until": None,
        "fallback": None,
    }  # fmt: skip


def test_epochs_grow_by_one_and_consecutive_plans_differ() -> None:
    partition = search()
    published = searched(partition.begun)
    for number in range(300):
        winner = "a" if number % 3 else "b"
        published += searched(partition.fold(duel(number, "bm25", "ltr-v1", winner)))
    assert [it["epoch"] for it in published] == list(range(1, len(published) + 1))
    assert len(published) > 10
    for one, following in pairwise(published):
        assert (one["champion"], one["pairs"]) != (following["champion"], following["pairs"])
        assert one["offset"] < following["offset"]
        assert one["duels"] < following["duels"]


def test_an_assignment_contains_its_offset_and_duels() -> None:
    partition = search()
    commit = partition.fold(*(duel(i, "bm25", "ltr-v1", "ab"[i % 2]) for i in range(50)))
    for assignment in searched(commit):
        assert assignment["duels"] == assignment["offset"] + 1
        assert assignment["ts"] == assignment["offset"]
        assert assignment["partition"] == 0


@pytest.mark.parametrize("slate", [1, 2, 7, 100])
def test_shares_are_frequencies_in_the_slate_and_sum_to_one(slate: int) -> None:
    partition = search(slate=slate)
    commit = partition.fold(*(duel(i, "bm25", "ltr-v1", "ab"[i % 2]) for i in range(30)))
    for assignment in searched(commit):
        shares = [pair["share"] for pair in assignment["pairs"]]
        assert sum(round(share * slate) for share in shares) == slate
        assert sum(shares) == pytest.approx(1, abs=1e-12)
        assert shares == sorted(shares, reverse=True)
        assert all(pair["remaining"] is None for pair in assignment["pairs"])
        sides = [frozenset((pair["a"], pair["b"])) for pair in assignment["pairs"]]
        assert len(set(sides)) == len(sides)


@pytest.mark.parametrize("every", [1, 5, 13])
def test_decisions_follow_every_so_many_duels(every: int) -> None:
    partition = search(decide_every=every)
    commit = partition.fold(*(duel(i, "bm25", "ltr-v1", "ab"[i % 2]) for i in range(100)))
    duels = [assignment["duels"] for assignment in searched(commit)]
    assert duels
    assert all(count % every == 0 for count in duels)


def test_aggregated_duels_cause_one_decision() -> None:
    partition = search(decide_every=10)
    state = partition.task.experiments["search"].state()
    assert state["since_decision"] == 0
    partition.fold(text(DUELS, id="1", wins_a=9, wins_b=0, ties=0))
    assert partition.task.experiments["search"].state()["since_decision"] == 9
    partition.fold(text(DUELS, id="2", wins_a=99, wins_b=0, ties=0))
    assert partition.task.experiments["search"].state()["since_decision"] == 0


def test_dropped_ties_do_not_count_towards_a_decision() -> None:
    partition = search(ties="drop", decide_every=2)
    partition.fold(*(duel(i, "bm25", "ltr-v1", "tie") for i in range(10)))
    assert partition.task.experiments["search"].state()["since_decision"] == 0
    assert partition.tallies()["accepted"] == 10


def test_the_winner_becomes_champion() -> None:
    partition = search()
    outcomes = [("ltr-v2", "bm25"), ("ltr-v2", "ltr-v1"), ("ltr-v1", "bm25")]
    values = [duel(i, *outcomes[i % 3], "a") for i in range(300)]
    last = searched(partition.fold(*values))[-1]
    assert last["champion"] == "ltr-v2"
    assert partition.task.experiments["search"].state()["arms"][2] == "ltr-v2"


def test_the_last_assignment_is_kept_as_published() -> None:
    partition = search(guardrails={"control_arm": "bm25", "min_share": 0.1}, decide_every=7)
    [*_, published] = searched(partition.fold(*(duel(i, "bm25", "ltr-v1", "a") for i in range(40))))
    for process in (partition, partition.restarted()):
        kept = process.task.experiments["search"].decisions.assignment
        assert msgspec.to_builtins(kept) == published


def test_there_is_no_assignment_before_the_first_decision() -> None:
    made_of = search().task.experiments["search"].settings
    experiment = Experiment("search", made_of, CONTEXT, seed=0, started_at=0)
    assert experiment.decisions.assignment is None
    again = Experiment("search", made_of, CONTEXT, 0, 0, experiment.state())
    assert again.decisions.assignment is None


def test_experiments_are_independent() -> None:
    partition = search()
    before = json.dumps(partition.task.experiments["ads"].state())
    partition.fold(*(duel(i, "bm25", "ltr-v1", "a") for i in range(20)))
    assert json.dumps(partition.task.experiments["ads"].state()) == before


def test_a_commit_contains_only_changed_entries() -> None:
    partition = search()
    assert set(partition.fold(text(DUEL)).entries) == {"partition", "experiment/search"}
    assert set(partition.fold(b"{").entries) == {"partition"}
    assert set(partition.fold().entries) == {"partition"}

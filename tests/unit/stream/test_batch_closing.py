"""Batches: quotas, rounds and closing, by hand."""

from __future__ import annotations

import pytest

from tests.unit.stream.batches import PAIRS, Stream, full, is_alone, rest


def test_the_first_batch_is_open_before_any_record() -> None:
    (first,) = Stream().first
    assert rest(first) == full(1)
    assert {pair["share"] for pair in first["pairs"]} == {1 / 3}
    assert (first["status"], first["epoch"], first["offset"]) == ("running", 1, -1)


def test_a_batch_closes_with_the_duel_that_fills_its_last_quota() -> None:
    stream = Stream()
    assert stream.fight(*PAIRS, times=2) == []
    assert stream.fight("02", "12") == []
    (assignment,) = stream.fight("01")
    assert rest(assignment) == full(2)
    assert (assignment["duels"], assignment["offset"], assignment["epoch"]) == (9, 8, 2)
    (assignment,) = stream.fight(*PAIRS, times=10)
    assert (rest(assignment), assignment["duels"]) == (full(3), 39)


@pytest.mark.parametrize("cut", [True, False], ids=["one by one", "at once"])
def test_surplus_duels_count_for_their_own_pair_only(cut: bool) -> None:
    stream = Stream()
    for times in [1] * 40 if cut else [40]:
        assert stream.fight("01", times=times) == []
    assert stream.partition.duels() == 40
    assert sum(stream.partition.wins()[0]) == sum(stream.partition.wins()[1]) == 20
    assert stream.fight("02", "12", times=2) == []
    (assignment,) = stream.fight("02", "12", "01")
    assert (rest(assignment), assignment["duels"]) == (full(2), 46)


def test_late_duels_count_towards_the_open_batch() -> None:
    stream = Stream(batch_republish_ms=100)
    stream.fight(*PAIRS, times=3)
    late = stream.fight("01", times=4)  # possibly of the first batch; it is unknown
    assert late == []
    assert rest(stream.wait(100)[-1]) == {**full(2), "01": 6}


def test_duels_of_an_arm_with_itself_fill_no_quota() -> None:
    stream = Stream()
    stream.fight("00", times=50)
    assert stream.fight(*PAIRS, times=2) == []
    assert rest(stream.fight(*PAIRS)[0]) == full(2)


def test_a_batch_that_is_filled_in_bulk_closes_at_once() -> None:
    stream = Stream()
    assert stream.bulk("01", 40, 40) == []
    assert stream.bulk("02", 2, 1) == []
    assert stream.bulk("12", 1, 1) == []
    (assignment,) = stream.bulk("12", 3, 4)
    assert rest(assignment) == full(2), "what was more than wanted fills no later batch"
    assert assignment["duels"] == 92


@pytest.mark.parametrize("policy", ["pcomp", "c2b"])
def test_rounds_closed_early_count_as_rounds(policy: str) -> None:
    settings = {"name": policy, "horizon": 10**9, "rounds": 5}
    stream = Stream(policy=settings, batch_deadline_ms=1_000, batch_min_fill=1e-9)
    for round_ in range(1, 6):
        assert stream.round == round_
        stream.fight(*PAIRS)
        (assignment,) = stream.wait(1_000)
        assert assignment["status"] == ("running" if round_ < 5 else "finished")
    assert is_alone(assignment, assignment["champion"])
    assert assignment["duels"] == 15
    stream.fight(*PAIRS, times=100)
    assert stream.wait(10_000) == []
    assert stream.partition.restarted().task.experiments["search"].decisions.status == "finished"


def test_after_the_last_round_the_arm_that_beats_the_most_is_served() -> None:
    policy = {"name": "pcomp", "horizon": 10**9, "rounds": 2}
    stream = Stream(policy=policy, batch_deadline_ms=1_000, batch_min_fill=1e-9)
    stream.bulk("12", 5, 9)
    stream.bulk("02", 5, 9)
    stream.bulk("01", 9, 5)
    stream.wait(1_000)
    stream.fight(*PAIRS)
    assert is_alone(stream.wait(1_000)[0], "ltr-v2")


def test_exploration_ends_at_the_horizon() -> None:
    stream = Stream(decide_every=500)
    stream.bulk("01", 480, 479)
    assert stream.fight("02", times=40) == []
    (assignment,) = stream.fight("02")
    assert (assignment["duels"], assignment["status"]) == (1000, "finished")
    assert is_alone(assignment, assignment["champion"])
    assert stream.wait(10**7) == []


def test_bulk_duels_may_exceed_the_horizon() -> None:
    stream = Stream(decide_every=10**6)
    (assignment,) = stream.bulk("02", 10, 5_000)
    assert (assignment["duels"], assignment["status"]) == (5_010, "finished")
    assert is_alone(assignment, "ltr-v2")


def test_a_paused_batch_continues_after_resume() -> None:
    stream = Stream(batch_republish_ms=1_000)
    stream.fight(*PAIRS)
    assert stream.control("pause")[0]["status"] == "paused"
    stream.fight("01", times=7)
    assert [it["status"] for it in stream.wait(5_000)] == []
    (assignment,) = stream.control("resume")
    assert (rest(assignment), assignment["status"]) == ({"02": 2, "12": 2}, "running")


def test_a_batch_filled_during_a_pause_closes_on_resume() -> None:
    stream = Stream(batch_deadline_ms=60_000)
    stream.fight(*PAIRS)
    stream.control("pause")
    stream.fight(*PAIRS, times=2)
    assert stream.round == 1
    assert rest(stream.control("resume")[0]) == full(2)
    stream.control("pause")
    stream.fight(*PAIRS, times=5)
    assert stream.wait(70_000) == []
    assert rest(stream.control("resume")[0]) == full(3), "its deadline had passed"

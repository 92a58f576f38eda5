"""Deadlines of batches, and the times at which their remaining duels are published."""

from __future__ import annotations

import pytest

from tests.unit.stream.batches import ARMS, IMPRESSION, PAIRS, QUOTAS, START, Stream, full, rest
from tests.unit.stream.folding import DUEL, Partition, assignments, config, text


def test_remaining_duels_are_published_at_intervals_not_per_duel() -> None:
    stream = Stream(batch_republish_ms=1_000)
    assert stream.fight("01", "02") == []
    assert stream.wait(999) == []
    assert stream.fight("02") == []
    (assignment,) = stream.wait(1)
    assert rest(assignment) == {"12": 3, "01": 2, "02": 1}
    assert [pair["share"] for pair in assignment["pairs"]] == [3 / 6, 2 / 6, 1 / 6]
    assert (assignment["offset"], assignment["ts"]) == (3, START + 1_000)
    assert assignment["duels"] == 3
    assert stream.fight("12") == []
    assert stream.wait(999) == []
    assert rest(stream.wait(5_000)[0]) == {"12": 2, "01": 2, "02": 1}
    assert stream.wait(1_000) == [], "nothing has changed"
    stream.fight("02")
    assert rest(stream.wait(1_000)[0]) == {"12": 2, "01": 2}


def test_a_timer_fires_before_the_record_that_advances_stream_time() -> None:
    stream = Stream(batch_republish_ms=1_000)
    stream.fight("01")
    assert stream.now is not None
    stream.now += 1_000
    (assignment,) = stream.fight("01", "01")
    assert rest(assignment) == {"01": 2, "02": 3, "12": 3}
    assert (assignment["offset"], assignment["duels"]) == (0, 1)


def test_a_change_by_stream_time_alone_is_in_the_snapshot() -> None:
    stream = Stream(batch_republish_ms=1_000)
    stream.fight("01", "02", "02")
    assert len(stream.wait(1_000)) == 1
    for _ in range(2):
        restarted = stream.partition.restarted()
        assert restarted.knows() == stream.partition.knows()
        stream.partition = restarted
        assert stream.wait(999) == [], "it was published a moment ago"
        assert stream.wait(1) == [], "nothing has changed"


def test_at_its_deadline_a_batch_closes_if_each_pair_has_its_share() -> None:
    stream = Stream(batch_deadline_ms=60_000, batch_republish_ms=10**6)
    stream.fight(*PAIRS, times=2)  # half of 3, rounded up
    assert stream.wait(59_999) == []
    assert stream.round == 1
    (assignment,) = stream.wait(1)
    assert (rest(assignment), stream.round) == (full(2), 2)
    assert assignment["ts"] == START + 60_000
    stream.fight(*PAIRS, times=5)
    assert stream.wait(59_999) == [], "each batch has a deadline of its own"
    assert rest(stream.wait(1)[0]) == full(3)


def test_after_its_deadline_a_batch_closes_as_soon_as_each_pair_has_its_share() -> None:
    stream = Stream(batch_deadline_ms=60_000, batch_republish_ms=10**6)
    stream.fight(*PAIRS, times=3)
    stream.fight("01", times=10)
    stream.fight("02", times=5)
    stream.fight("12", times=3)
    (assignment,) = stream.wait(90_000)
    assert rest(assignment) == {"12": 7, "02": 5}, "what is lacking is published at the deadline"
    assert stream.fight("12", "02", "02", "01") == []
    (assignment,) = stream.fight("12")
    assert (rest(assignment), stream.round) == (full(3), 3)
    assert assignment["duels"] == 9 + 18 + 5


def test_after_its_deadline_a_batch_closes_with_bulk_duels_too() -> None:
    stream = Stream(batch_deadline_ms=60_000)
    stream.fight("01", "02", times=2)
    stream.wait(60_000)
    assert stream.bulk("01", 3, 3) == []
    assert rest(stream.bulk("12", 1, 1)[0]) == full(2)


@pytest.mark.parametrize(
    ("fill", "least"), [(0.01, 1), (0.1, 1), (0.11, 2), (0.7, 7), (0.71, 8), (1.0, 10)]
)
def test_a_pairs_share_of_its_quota_is_rounded_up(fill: float, least: int) -> None:
    stream = Stream(batch_deadline_ms=60_000, batch_min_fill=fill)
    stream.fight(*PAIRS, times=3)
    stream.wait(60_000)
    stream.fight("01", "02", times=10)
    stream.fight("12", times=least - 1)
    assert stream.round == 2
    assert rest(stream.fight("12")[-1]) == full(3)


def test_without_a_deadline_a_batch_stays_open() -> None:
    stream = Stream(batch_min_fill=0.1)
    stream.fight(*PAIRS, times=2)
    stream.wait(10**9)
    stream.fight("01", "02", times=50)
    stream.wait(10**9)
    assert stream.round == 1
    assert rest(stream.fight("12")[0]) == full(2)


def test_the_deadline_of_the_first_batch_counts_from_the_first_record() -> None:
    stream = Stream(batch_deadline_ms=60_000)
    assert stream.fight(*PAIRS, times=2) == [], "nothing new to publish when time begins"
    state = stream.partition.task.experiments["search"].state()["batch"]
    assert state == {"opened_at": START, "published_at": START}
    assert stream.wait(59_999) == []
    assert rest(stream.wait(1)[0]) == full(2)


def test_without_timestamps_there_are_no_deadlines_and_no_republications() -> None:
    stream = Stream(now=None, batch_deadline_ms=1, batch_republish_ms=1)
    published = []
    for round_ in (1, 2, 3):
        published += stream.fight("01", times=2 * QUOTAS[round_ - 1])
        published += stream.fight("02", "12", times=QUOTAS[round_ - 1] - 1)
        assert len(published) == round_ - 1
        published += stream.fight("12", "02")
    assert [rest(assignment) for assignment in published] == [full(2), full(3), full(4)]


def test_the_deadline_counts_from_the_first_timestamp() -> None:
    stream = Stream(now=None, batch_deadline_ms=60_000)
    stream.fight(*PAIRS, times=2)
    stream.now = START
    (assignment,) = stream.wait(0)
    assert rest(assignment) == dict.fromkeys(PAIRS, 1)
    assert stream.wait(59_999) == []
    assert rest(stream.wait(1)[0]) == full(2)


def test_a_change_of_arms_restarts_the_deadline_of_the_batch() -> None:
    stream = Stream(batch_deadline_ms=60_000)
    stream.fight(*PAIRS, times=3)
    stream.fight(*PAIRS, times=2)
    stream.wait(59_000)
    (assignment,) = stream.control("add_arm", "dense")
    assert {(pair["a"], pair["b"], pair["remaining"]) for pair in assignment["pairs"]} == {
        (arm, "dense", 3) for arm in ARMS.values()
    }, "the first round again, and the others have met often enough"
    assert stream.round == 1
    assert stream.wait(59_999) == []
    assert stream.partition.task.experiments["search"].state()["batch"]["opened_at"] == (
        START + 59_000
    )
    (assignment,) = stream.control("reset")
    assert {pair["remaining"] for pair in assignment["pairs"]} == {3}
    assert len(assignment["pairs"]) == 6


def test_arms_may_change_before_the_first_timestamp() -> None:
    stream = Stream(now=None)
    stream.fight("02", times=2)
    (assignment,) = stream.control("retire_arm", "ltr-v1")
    assert rest(assignment) == {"02": 1}
    (assignment,) = stream.control("reset")
    assert rest(assignment) == {"02": 3}


def test_timers_that_expire_together_fire_in_the_order_of_names() -> None:
    policy = {"name": "c2b", "horizon": 1000}
    experiments = {
        name: {"arms": ["x", "y"], "policy": policy, "batch_republish_ms": 10} for name in "cab"
    }
    partition = Partition(config().model_validate(
        {"source": {}, "sink": {}, "snapshots": {}, "experiments": experiments}
    ))  # fmt: skip
    partition.fold_at(1, *(text(DUEL, id=it, experiment=it, a="x", b="y") for it in "bca"))
    for process in (partition, partition.restarted()):
        commit = process.fold_at(11, text(DUEL, id="2", experiment="b", a="x", b="y"))
        assert [it["experiment"] for it in assignments(commit)] == ["a", "b", "c"]


@pytest.mark.parametrize("committed_after", range(7))
def test_republication_does_not_depend_on_the_commits(committed_after: int) -> None:
    # Two duels of the first pair are surplus. Three impressions then close at the time at which the
    # batch is published again: all three count, however many duels were learned at a commit.
    partition = Partition(
        config(search={
            "policy": {"name": "c2b", "horizon": 10_000}, "join_window_ms": 10,
            "batch_republish_ms": 100,
        })
    )  # fmt: skip
    duels = [text(DUEL, id=str(number)) for number in range(4)]
    shown = [
        text(IMPRESSION, id=f"i-{number}", a="ltr-v1", b="ltr-v2") for number in range(3)
    ]  # fmt: skip
    before = [*duels, *shown]
    partition.fold_at(0, *before[:committed_after])
    partition.fold_at(0, *before[committed_after:])
    passing = text(DUEL, id="later", experiment="ads", a="x", b="y")
    commit = partition.fold_at(500, passing)
    [published] = [it for it in assignments(commit) if it["experiment"] == "search"]
    assert published["duels"] == 7

"""Batches: quotas, published remaining duels, deadlines and closing, by hand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from streamduel.connector import PartitionCommit
from tests.unit.stream.folding import CONTROL, DUEL, DUELS, Partition, assignments, config, text

IMPRESSION = {"type": "impression", "experiment": "search", "teams": ["a"]}

START = 1_790_000_000_000
ARMS = {"0": "bm25", "1": "ltr-v1", "2": "ltr-v2"}
PAIRS = ("01", "02", "12")
NAMES = {frozenset(ARMS[side] for side in pair): pair for pair in PAIRS}
QUOTAS = (3, 10, 31, 100, 316, 1000)  # T = 1000, B = 6

Assignments = list[dict[str, Any]]


class Stream:
    """An experiment with a batched policy, and control of stream time.

    The duels of a pair are won in turns, so that no arm is ever beaten.
    """

    def __init__(self, now: int | None = START, **settings: Any) -> None:
        policy = {"name": "pcomp", "horizon": 1000, "rounds": 6}
        self.partition = Partition(config(search={"policy": policy, **settings}))
        self.first = self._searched(self.partition.begun)
        self.now = now
        self._number = 0
        self._fought: Counter[str] = Counter()

    def _searched(self, commit: PartitionCommit) -> Assignments:
        return [it for it in assignments(commit) if it["experiment"] == "search"]

    def fold(self, *values: bytes) -> Assignments:
        return self._searched(self.partition.fold_at(self.now, *values))

    def fight(self, *pairs: str, times: int = 1) -> Assignments:
        """Fold a number of duels of each pair, one by one."""
        values = []
        for _ in range(times):
            for pair in pairs:
                self._number += 1
                self._fought[pair] += 1
                values.append(
                    text(DUEL, id=f"{self._number}", a=ARMS[pair[0]], b=ARMS[pair[1]],
                         winner="ab"[self._fought[pair] % 2])
                )  # fmt: skip
        return self.fold(*values)

    def bulk(self, pair: str, wins_a: int, wins_b: int) -> Assignments:
        self._number += 1
        return self.fold(
            text(DUELS, id=f"{self._number}", a=ARMS[pair[0]], b=ARMS[pair[1]],
                 wins_a=wins_a, wins_b=wins_b)
        )  # fmt: skip

    def control(self, action: str, arm: str | None = None) -> Assignments:
        self._number += 1
        return self.fold(text(CONTROL, id=f"{self._number}", action=action, arm=arm))

    def wait(self, milliseconds: int) -> Assignments:
        """Advance stream time by a record of another experiment."""
        assert self.now is not None
        self.now += milliseconds
        self._number += 1
        return self.fold(text(DUEL, id=f"{self._number}", experiment="ads", a="x", b="y"))

    @property
    def round(self) -> int:
        round_: int = self.partition.task.experiments["search"].state()["policy"]["own"]["round"]
        return round_


def rest(assignment: dict[str, Any]) -> dict[str, int | None]:
    """The published remaining duels of each pair."""
    return {NAMES[frozenset((it["a"], it["b"]))]: it["remaining"] for it in assignment["pairs"]}


def full(round_: int) -> dict[str, int]:
    return dict.fromkeys(PAIRS, QUOTAS[round_ - 1])


def is_alone(assignment: dict[str, Any], arm: str) -> bool:
    pair = {"a": arm, "b": arm, "share": 1.0, "remaining": None}
    return bool(assignment["pairs"] == [pair] and assignment["champion"] == arm)


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

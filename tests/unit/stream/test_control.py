"""Control records: the effect of each action, and its order with the data."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from streamduel.stream.tallies import ArmCounts
from tests.unit.stream.folding import (
    CONTROL,
    DUEL,
    DUELS,
    INTERLEAVING,
    Partition,
    assignments,
    bulk,
    control,
    last,
    letters,
    search,
    text,
)

POLICIES: list[dict[str, Any]] = [
    {"name": "rucb"},
    {"name": "double_thompson"},
    {"name": "rmed1"},
    {"name": "c2b", "horizon": 10_000},
    {"name": "interleaved_filter_2", "horizon": 10_000},
]


def duel(number: int, a: str, b: str, winner: str | None = "a") -> bytes:
    return text(DUEL, id=f"duel-{number}", a=a, b=b, winner=winner)


def arms_of(assignment: dict[str, Any]) -> set[str]:
    return {pair[side] for pair in assignment["pairs"] for side in "ab"}


# Met each other: ltr-v2 beats both, ltr-v1 beats bm25. Two ties and a self-duel besides.
KNOWN = (
    bulk("bm25", "ltr-v1", 10, 30),
    bulk("bm25", "ltr-v2", 20, 60),
    bulk("ltr-v1", "ltr-v2", 35, 45),
    duel(-1, "bm25", "ltr-v1", "tie"),
    duel(-2, "ltr-v1", "ltr-v2", "tie"),
    duel(-3, "ltr-v1", "ltr-v1", None),
)
WINS = np.array([[0, 10.5, 20], [30.5, 0, 35.5], [60, 45.5, 0]])
FOUGHT = 203


@pytest.fixture(params=POLICIES, ids=lambda policy: policy["name"])
def informed(request: pytest.FixtureRequest) -> Partition:
    partition = search(policy=request.param)
    partition.fold(*KNOWN)
    assert partition.wins() == WINS.tolist()
    assert partition.duels() == FOUGHT
    return partition


def test_a_new_arm_has_no_duels_and_the_others_keep_theirs(
    informed: Partition,
) -> None:
    informed.fold(control("add_arm", "dense"))
    assert informed.wins() == np.pad(WINS, (0, 1)).tolist()
    assert informed.duels() == FOUGHT
    assert informed.task.experiments["search"].duels.by_arm.alone == [0, 1, 0, 0]
    informed.fold(duel(1, "dense", "bm25"), bulk("ltr-v2", "dense", 3, 4))
    assert informed.wins()[3] == [1, 0, 4, 0]
    assert informed.duels() == FOUGHT + 8


def test_a_new_arm_is_soon_served(informed: Partition) -> None:
    published = assignments(informed.fold(control("add_arm", "dense")))
    for number in range(300):
        pair = sorted(arms_of(published[-1]))
        published += assignments(informed.fold(duel(number, pair[0], pair[-1])))
    assert any("dense" in arms_of(assignment) for assignment in published)


@pytest.mark.parametrize(("arm", "index"), [("bm25", 0), ("ltr-v1", 1), ("ltr-v2", 2)])
def test_a_retired_arm_takes_its_wins_and_losses_along(
    informed: Partition, arm: str, index: int
) -> None:
    left = [name for name in ("bm25", "ltr-v1", "ltr-v2") if name != arm]
    commit = informed.fold(control("retire_arm", arm))
    keep = [at for at in range(3) if at != index]
    assert informed.wins() == WINS[np.ix_(keep, keep)].tolist()
    assert informed.duels() == FOUGHT
    alone = [0, 1, 0]
    assert informed.task.experiments["search"].duels.by_arm.alone == [alone[at] for at in keep]
    published = assignments(commit)
    for number in range(60):
        published += assignments(informed.fold(duel(number, *left)))
    assert {arm for assignment in published for arm in arms_of(assignment)} <= set(left)
    assert {assignment["champion"] for assignment in published} <= set(left)
    assert informed.duels() == FOUGHT + 60


def test_retiring_the_champion_makes_another_arm_champion_at_once() -> None:
    partition = search(decide_every=1000)
    partition.fold(*KNOWN, control("pause"))
    assignment = last(partition.fold(control("retire_arm", "ltr-v2")))
    assert (assignment["champion"], assignment["status"]) == ("ltr-v1", "paused")
    assert arms_of(assignment) == {"ltr-v1"}


def test_while_paused_the_champion_alone_is_served_and_duels_count(informed: Partition) -> None:
    commit = informed.fold(control("pause"))
    assert last(commit)["status"] == "paused"
    assert last(commit)["pairs"] == [
        {"a": "ltr-v2", "b": "ltr-v2", "share": 1.0, "remaining": None}
    ]
    commit = informed.fold(
        duel(1, "ltr-v2", "ltr-v2", None),
        duel(2, "bm25", "ltr-v1"),
        bulk("bm25", "ltr-v1", 50, 0, 2),
        text(INTERLEAVING, id="shown", a="bm25", b="ltr-v1", clicks=[1]),
    )
    assert assignments(commit) == []
    assert informed.duels() == FOUGHT + 53
    assert informed.wins()[0][1] == 10.5 + 51
    commit = informed.fold(bulk("bm25", "ltr-v2", 50, 0, 2))  # now bm25 beats both
    assert (last(commit)["champion"], last(commit)["status"]) == ("bm25", "paused")
    assert arms_of(last(commit)) == {"bm25"}


def test_resume_explores_with_what_was_learned_during_the_pause() -> None:
    paused, undisturbed = search(), search()
    for partition in (paused, undisturbed):
        partition.fold(*KNOWN)
    paused.fold(control("pause"))
    meanwhile = [duel(number, "bm25", "ltr-v1", "ab"[number % 2]) for number in range(40)]
    paused.fold(*meanwhile)
    undisturbed.fold(*meanwhile)
    commit = paused.fold(control("resume"))
    assert last(commit)["status"] == "running"
    assert last(commit)["duels"] == FOUGHT + 40
    assert arms_of(last(commit)) != {"ltr-v2"}
    assert (paused.wins(), paused.duels()) == (undisturbed.wins(), undisturbed.duels())


@pytest.mark.parametrize("action", ["pause", "resume"])
def test_a_repeated_action_changes_the_timeline_alone(action: str) -> None:
    partition = search()
    partition.fold(*KNOWN, control(action))
    before, accepted = partition.knows(), partition.tallies()["accepted"]
    commit = partition.fold(control(action, number=2))
    assert (commit.assignments, commit.dead_letters) == ([], [])
    assert partition.tallies()["accepted"] == accepted + 1
    if action == "pause":  # running, it draws its next pair at every decision
        after = partition.knows()
        after["search"]["tallies"]["accepted"] -= 1
        assert after["search"]["timeline"]["moments"].pop()["event"] == "pause"
        assert after == before


def test_a_pause_survives_a_restart() -> None:
    partition = search(aim="earn")  # it never finishes
    partition.fold(*KNOWN, control("pause"))
    again = partition.restarted()
    commit = again.fold(bulk("bm25", "ltr-v2", 99, 0, 2), bulk("bm25", "ltr-v1", 99, 0, 2))
    assert (last(commit)["status"], last(commit)["champion"]) == ("paused", "bm25")
    assert last(again.restarted().fold(control("resume")))["status"] == "running"


def test_a_reset_forgets_all_duels_and_nothing_else(informed: Partition) -> None:
    informed.fold(control("add_arm", "dense"), control("retire_arm", "ltr-v1"))
    informed.fold(duel(1, "dense", "dense", None))
    epoch = informed.task.experiments["search"].decisions.epoch
    tallies = informed.tallies()
    commit = informed.fold(control("reset"))
    assert informed.wins() == np.zeros((3, 3)).tolist()
    assert informed.duels() == last(commit)["duels"] == 0
    assert last(commit)["epoch"] == epoch + 1
    assert informed.tallies() == {**tallies, "accepted": tallies["accepted"] + 1}
    experiment = informed.task.experiments["search"]
    assert experiment.roster.arms == ["bm25", "ltr-v2", "dense"]
    assert experiment.duels.by_arm.alone == [0, 0, 0]
    assert letters(informed.fold(duel(2, "ltr-v1", "bm25"), control("add_arm", "ltr-v1"))) != []


def test_a_reset_experiment_decides_like_a_new_one(informed: Partition) -> None:
    fresh = Partition(informed.made_of[0])
    informed.fold(control("reset"))
    for number in range(50):
        for partition in (informed, fresh):
            partition.fold(duel(number, "bm25", "ltr-v1", "ab"[number % 2]))
        one, other = (it.task.experiments["search"].policy for it in (informed, fresh))
        assert one.state_dict() == other.state_dict()


PRIOR = {"wins": {"ltr-v2": {"bm25": 300, "ltr-v1": 200}, "bm25": {"ltr-v1": 100}}}


def pseudo_wins(partition: Partition) -> list[list[float]]:
    wins: list[list[float]] = partition.task.experiments["search"].policy.parameters["prior"]
    return wins


LIKE = text(CONTROL, id="like", action="add_arm", arm="ltr-v3", like="ltr-v1")


def test_an_arm_like_another_one_starts_from_its_posterior() -> None:
    partition = search(policy={"name": "top_two"}, prior={"discount": 0.5, "cap": 30})
    partition.fold(*KNOWN, LIKE)
    experiment = partition.task.experiments["search"]
    prior = np.array(experiment.policy.parameters["prior"])
    # 30.5 wins and 10.5 losses against bm25, 35.5 and 45.5 against ltr-v2: 20.5 and 30 duels count.
    assert prior[3].tolist() == pytest.approx([15.25, 0, 30 * 35.5 / 81, 0])
    assert prior[:, 3].tolist() == pytest.approx([5.25, 0, 30 * 45.5 / 81, 0])
    assert not prior[:3, :3].any()
    assert not experiment.policy.wins[3].any(), "it is no evidence"
    assert experiment.timeline.moments[-1].text == "ltr-v3 / like ltr-v1"
    restored = partition.restarted()
    more = [duel(number, "bm25", "ltr-v3", "b") for number in range(50)]
    partition.fold(*more)
    restored.fold(*more)
    again = restored.task.experiments["search"]
    assert again.state() == partition.task.experiments["search"].state()
    partition.fold(control("retire_arm", "bm25"))
    kept = partition.task.experiments["search"].policy.parameters["prior"]
    assert np.array(kept) == pytest.approx(prior[1:, 1:])
    partition.fold(control("reset"))
    assert "prior" not in partition.task.experiments["search"].policy.parameters


def test_a_prior_belongs_to_its_arms() -> None:
    partition = search(policy={"name": "top_two"}, prior=PRIOR)
    assert pseudo_wins(partition) == [[0, 10, 0], [0, 0, 0], [30, 20, 0]]
    partition.fold(*KNOWN, control("retire_arm", "ltr-v1"), control("add_arm", "dense"))
    assert pseudo_wins(partition) == [[0, 0, 0], [30, 0, 0], [0, 0, 0]]
    partition.fold(control("reset"))
    assert pseudo_wins(partition) == [[0, 0, 0], [30, 0, 0], [0, 0, 0]]


def test_a_prior_steers_and_counts_nowhere() -> None:
    partition, without = (
        search(policy={"name": "top_two"}, prior=PRIOR),
        search(policy={"name": "top_two"}),
    )
    for it in (partition, without):
        it.fold(*KNOWN)
    assert (partition.wins(), partition.duels()) == (without.wins(), without.duels())
    before = partition.task.experiments["search"].policy.state_dict()
    assert json.loads(json.dumps(before)) == before


def test_a_reset_does_not_end_a_pause() -> None:
    partition = search()
    partition.fold(*KNOWN, control("pause"))
    assert partition.task.experiments["search"].decisions.status == "paused"
    commit = partition.fold(control("reset"))
    assert {it["status"] for it in assignments(commit)} <= {"paused"}
    assert partition.task.experiments["search"].decisions.status == "paused"


@pytest.mark.parametrize("decide_every", [1, 7, 1000])
def test_a_change_takes_effect_at_its_offset(decide_every: int) -> None:
    partition = search(decide_every=decide_every)
    commit = partition.fold(
        duel(1, "bm25", "ltr-v2"),
        duel(2, "ltr-v2", "ltr-v1"),
        control("retire_arm", "bm25"),
        duel(3, "ltr-v1", "ltr-v2"),
        duel(4, "bm25", "ltr-v2"),
        control("add_arm", "dense"),
        duel(5, "dense", "ltr-v1"),
        control("reset"),
        duel(6, "ltr-v2", "dense"),
    )
    assert partition.task.experiments["search"].roster.arms == ["ltr-v1", "ltr-v2", "dense"]
    assert partition.wins() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert partition.duels() == 1
    assert partition.tallies()["accepted"] == 8
    assert [letter["offset"] for letter in letters(commit)] == [4]
    for assignment in assignments(commit):
        duels_by_offset = [1, 2, 2, 3, 3, 3, 4, 0, 1]
        assert assignment["duels"] == duels_by_offset[assignment["offset"]]


def test_a_control_record_causes_a_decision() -> None:
    partition = search(decide_every=1000)
    partition.fold(*(duel(number, "bm25", "ltr-v1") for number in range(5)))
    (assignment,) = assignments(partition.fold(control("pause")))
    assert (assignment["offset"], assignment["duels"], assignment["epoch"]) == (5, 5, 2)
    assert partition.task.experiments["search"].state()["since_decision"] == 0


def test_a_finished_policy_explores_again_for_a_new_arm() -> None:
    partition = search(policy={"name": "c2b", "horizon": 100_000})
    partition.fold(*(bulk(*pair, 0, 500) for pair in (("bm25", "ltr-v1"), ("bm25", "ltr-v2"))))
    commit = partition.fold(bulk("ltr-v1", "ltr-v2", 0, 500))
    assert (last(commit)["status"], last(commit)["champion"]) == ("finished", "ltr-v2")
    assert arms_of(last(commit)) == {"ltr-v2"}
    commit = partition.fold(control("add_arm", "dense"))
    assert last(commit)["status"] == "running"
    assert {frozenset((pair["a"], pair["b"])) for pair in last(commit)["pairs"]} == {
        frozenset(("dense", arm)) for arm in ("bm25", "ltr-v1", "ltr-v2")
    }, "what the others have fought counts towards the first round"


def test_all_initial_arms_may_be_replaced() -> None:
    partition = search()
    for number in range(3):
        partition.fold(control("add_arm", f"new-{number}"))
    for arm in ("ltr-v1", "bm25", "ltr-v2"):
        partition.fold(control("retire_arm", arm))
    commit = partition.fold(duel(1, "new-0", "new-2"), duel(2, "new-2", "new-1", "b"))
    assert partition.wins() == [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    assert arms_of(last(commit)) <= {"new-0", "new-1", "new-2"}
    assert partition.restarted().knows() == partition.knows()


def test_an_experiments_control_records_do_not_touch_another() -> None:
    partition = search()
    before = json.dumps(partition.task.experiments["ads"].state())
    actions = [("add_arm", "x2"), ("retire_arm", "bm25"), ("pause", None), ("reset", None)]
    partition.fold(*(control(*action) for action in actions))
    assert json.dumps(partition.task.experiments["ads"].state()) == before
    partition.fold(text(CONTROL, experiment="ads", action="add_arm", arm="bm25"))
    assert partition.task.experiments["ads"].roster.arms == ["x", "y", "bm25"]


def test_duels_against_retired_arms_stay_counted() -> None:
    def by_arm(partition: Partition) -> ArmCounts:
        partition.task.experiments["search"].buffer.learn()
        return partition.task.experiments["search"].duels.by_arm

    partition = Partition()
    partition.fold(
        text(DUEL, id="1"), text(DUEL, id="2", b="ltr-v2"),
        text(DUEL, id="3", b="bm25", winner=None),
        text(DUELS, id="4"), *(text(DUEL, id=f"m{n}", b="ltr-v2") for n in range(40)),
    )  # fmt: skip
    assert by_arm(partition).fought == [45, 4, 41]
    assert by_arm(partition).alone == [1, 0, 0]
    partition.fold(text(CONTROL, id="c-1", action="retire_arm", arm="ltr-v2"))
    assert by_arm(partition).fought == [45, 4]
    assert by_arm(partition.restarted()).fought == [45, 4]
    partition.fold(text(CONTROL, id="c-2", action="add_arm", arm="ltr-v9"))
    assert by_arm(partition).fought == [45, 4, 0]
    partition.fold(text(CONTROL, id="c-3", action="reset"))
    assert by_arm(partition).fought == [0, 0, 0]


def test_ties_of_a_pair_follow_its_arms() -> None:
    def ties(partition: Partition) -> list[list[int]]:
        experiment = partition.task.experiments["search"]
        experiment.buffer.learn()
        return experiment.duels.pair_ties.state()

    partition = Partition()
    partition.fold(
        text(DUEL, id="1", winner="tie"), text(DUEL, id="2"),
        text(DUEL, id="3", b="bm25", winner="tie"), text(DUELS, id="4", ties=6),
        *(text(DUEL, id=f"m{n}", a="ltr-v2", b="bm25", winner="tie") for n in range(40)),
    )  # fmt: skip
    assert ties(partition) == [[0, 1, 7], [0, 2, 40]]
    assert ties(partition.restarted()) == [[0, 1, 7], [0, 2, 40]]
    partition.fold(text(CONTROL, id="c-1", action="add_arm", arm="ltr-v9"))
    partition.fold(text(DUEL, id="5", a="ltr-v9", b="ltr-v2", winner="tie"))
    assert ties(partition) == [[0, 1, 7], [0, 2, 40], [2, 3, 1]]
    partition.fold(text(CONTROL, id="c-2", action="retire_arm", arm="ltr-v1"))
    assert ties(partition) == [[0, 1, 40], [1, 2, 1]]
    assert ties(partition.restarted()) == [[0, 1, 40], [1, 2, 1]]
    partition.fold(text(CONTROL, id="c-3", action="reset"))
    assert ties(partition) == []


def test_dropped_ties_are_no_ties_of_a_pair() -> None:
    partition = search(ties="drop")
    partition.fold(duel(1, "bm25", "ltr-v1", "tie"), bulk("bm25", "ltr-v1", 3, 4))
    experiment = partition.task.experiments["search"]
    experiment.buffer.learn()
    assert (experiment.duels.ties, experiment.duels.pair_ties.state()) == (1, [])

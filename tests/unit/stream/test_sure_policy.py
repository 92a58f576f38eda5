"""A policy that is sure of its answer: the experiment finishes, and what begins it again."""

from __future__ import annotations

import pytest

from streamduel.connector import PartitionCommit
from tests.unit.stream.folding import DUEL, assignments, bulk, control, last, search, status, text


def pairs(commit: PartitionCommit) -> list[tuple[str, str, float]]:
    return [(pair["a"], pair["b"], pair["share"]) for pair in last(commit)["pairs"]]


SURE = (bulk("ltr-v2", "bm25", 40), bulk("ltr-v2", "ltr-v1", 40))
ALONE = [("ltr-v2", "ltr-v2", 1.0)]
AGAINST = (bulk("bm25", "ltr-v2", 25, number=2), bulk("ltr-v1", "ltr-v2", 25, number=2))
"""Duels after which the champion still leads, but the policy would no longer be sure."""


def test_a_sure_policy_finishes_the_experiment_and_serves_the_champion() -> None:
    partition = search()
    assert last(partition.begun)["policy"] == "top_two"
    commit = partition.fold(SURE[0])
    assert (last(commit)["status"], status(partition)) == ("running", "running")
    commit = partition.fold(SURE[1])
    assert (last(commit)["status"], last(commit)["champion"]) == ("finished", "ltr-v2")
    assert pairs(commit) == ALONE
    assert partition.task.experiments["search"].policy.candidates() == 1


@pytest.mark.parametrize("confidence", [0.9, 0.999])
def test_the_confidence_of_the_stop_rule_is_that_of_the_policy(confidence: float) -> None:
    partition = search(stop={"confidence": confidence})
    partition.fold(bulk("ltr-v2", "bm25", 19), bulk("ltr-v2", "ltr-v1", 19))
    assert status(partition) == ("finished" if confidence == 0.9 else "running")


def test_an_experiment_that_earns_does_not_finish() -> None:
    partition = search(aim="earn")
    commit = partition.fold(*SURE)
    assert (last(commit)["status"], pairs(commit)) == ("running", ALONE)


def test_exploration_does_not_end_before_min_duels() -> None:
    partition = search(stop={"min_duels": 200})
    commit = partition.fold(*SURE, bulk("ltr-v2", "bm25", 119, number=2))
    assert (partition.duels(), last(commit)["status"]) == (199, "running")
    assert pairs(commit) != ALONE, "the champion goes on to meet others"
    commit = partition.fold(text(DUEL, a="ltr-v2", b="ltr-v1"))
    assert (last(commit)["status"], pairs(commit)) == ("finished", ALONE)


def test_a_finished_experiment_stays_finished() -> None:
    partition = search()
    partition.fold(*SURE)
    for process in (partition, partition.restarted()):
        commit = process.fold(*AGAINST)
        assert not process.task.experiments["search"].policy.finished
        assert (assignments(commit), status(process)) == ([], "finished")


def test_a_decision_and_not_the_counts_finishes_the_experiment() -> None:
    """Duels between two decisions may make the policy sure and then take it back."""
    partition = search(decide_every=131)
    commit = partition.fold(*SURE)
    assert (assignments(commit), status(partition)) == ([], "running")
    partition.fold(*AGAINST, bulk("bm25", "ltr-v1", 1))
    assert partition.duels() == 131
    assert status(partition) == "running"


def test_exploration_ends_at_the_next_decision() -> None:
    partition = search(decide_every=90)
    assert assignments(partition.fold(*SURE)) == []
    commit = partition.fold(bulk("ltr-v2", "bm25", 10, number=2))
    assert (last(commit)["duels"], last(commit)["status"]) == (90, "finished")


def test_a_slate_before_and_after_the_end() -> None:
    partition = search(decide_every=4, slate=8)
    commit = partition.fold(SURE[0], bulk("ltr-v2", "ltr-v1", 12))
    assert last(commit)["status"] == "running"
    assert sum(share for _, _, share in pairs(commit)) == pytest.approx(1.0)
    assert ALONE[0][:2] not in [pair[:2] for pair in pairs(commit)], "the proof is incomplete"
    commit = partition.fold(bulk("ltr-v2", "ltr-v1", 28, number=2))
    assert (last(commit)["status"], pairs(commit)) == ("finished", ALONE)


def test_a_paused_experiment_finishes_when_it_is_resumed() -> None:
    partition = search()
    partition.fold(control("pause"), *SURE)
    assert status(partition) == "paused"
    assert last(partition.fold(control("resume")))["status"] == "finished"


def test_a_pause_of_a_finished_experiment_does_not_begin_it_again() -> None:
    partition = search()
    partition.fold(*SURE, control("pause"), *AGAINST)
    assert last(partition.fold(control("resume")))["status"] == "finished"


def test_a_new_arm_begins_exploration_again() -> None:
    partition = search()
    partition.fold(*SURE)
    commit = partition.fold(control("add_arm", "dense"))
    assert last(commit)["status"] == "running"
    assert any("dense" in pair for pair in pairs(commit))
    commit = partition.fold(bulk("ltr-v2", "dense", 40))
    assert (last(commit)["status"], pairs(commit)) == ("finished", ALONE)


def test_retiring_a_beaten_arm_keeps_the_experiment_finished() -> None:
    partition = search()
    partition.fold(*SURE)
    commit = partition.fold(control("retire_arm", "bm25"))
    assert (assignments(commit), status(partition)) == ([], "finished")


def test_retiring_the_champion_begins_exploration_again() -> None:
    partition = search()
    partition.fold(*SURE)
    commit = partition.fold(control("retire_arm", "ltr-v2"))
    assert last(commit)["status"] == "running"
    assert pairs(commit) == [("bm25", "ltr-v1", 1.0)]
    commit = partition.fold(bulk("ltr-v1", "bm25", 40))
    assert (last(commit)["status"], last(commit)["champion"]) == ("finished", "ltr-v1")


def test_a_reset_begins_exploration_again() -> None:
    partition = search()
    partition.fold(*SURE)
    commit = partition.fold(control("reset"))
    assert (last(commit)["status"], last(commit)["duels"]) == ("running", 0)


def test_guardrails_hold_until_the_end() -> None:
    partition = search(guardrails={"control_arm": "bm25", "min_share": 0.25})
    commit = partition.fold(SURE[0])
    assert ("bm25", "bm25", 0.25) in pairs(commit)
    assert pairs(partition.fold(SURE[1])) == ALONE


def test_a_frozen_pair_is_served_until_the_end() -> None:
    partition = search(guardrails={"freeze_pair": ["bm25", "ltr-v1"]})
    assert pairs(partition.begun) == [("bm25", "ltr-v1", 1.0)]
    commit = partition.fold(*SURE)
    assert (last(commit)["status"], pairs(commit)) == ("finished", ALONE)


@pytest.mark.parametrize("cut", [1, 3, 100])
def test_the_end_does_not_depend_on_batches_and_restarts(cut: int) -> None:
    partition = search(decide_every=5)
    values = [
        text(DUEL, id=str(number), a="ltr-v2", b=("bm25", "ltr-v1")[number % 2])
        for number in range(100)
    ]
    commits = [partition.fold(*values[at : at + cut]) for at in range(0, 100, cut)]
    ends = [it for commit in commits for it in assignments(commit) if it["status"] == "finished"]
    assert [(it["duels"], it["champion"]) for it in ends] == [(40, "ltr-v2")]
    assert partition.restarted().knows() == partition.knows()

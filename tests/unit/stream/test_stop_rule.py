"""The stop rule: when exploration ends, and when it restarts."""

from __future__ import annotations

import math
from typing import Any

import pytest

from streamduel.config.experiment import StopSettings
from streamduel.policies import create
from streamduel.stream.stop_rule import StopRule
from tests.unit.stream.folding import (
    DUEL,
    Partition,
    assignments,
    bulk,
    config,
    control,
    last,
    status,
    text,
)


def search(confidence: float | None = 0.95, min_duels: int = 0, **settings: Any) -> Partition:
    stop = {"confidence": confidence, "min_duels": min_duels}
    return Partition(config(search={"stop": stop, **settings}))


def evidence(wins: int, losses: int) -> float:
    """ln M of the arm ahead, from the formula: 2 Φ(z) exp(z² / 2) sqrt(ρ / (v + ρ)), ρ = 8."""
    v, lead = (wins + losses) / 4, (wins - losses) / 2
    z = lead / math.sqrt(v + 8)
    return math.log(math.erfc(-z / math.sqrt(2))) + z**2 / 2 - math.log((v + 8) / 8) / 2


def wins_needed(confidence: float, n_arms: int) -> int:
    """The number of duels without a loss after which the evidence suffices, of 2 or 3 arms."""
    demanded = math.log(n_arms / (1 - confidence))
    return next(wins for wins in range(10**4) if evidence(wins, 0) >= demanded)


SURE = (bulk("ltr-v2", "bm25", 100, 10), bulk("ltr-v2", "ltr-v1", 100, 10))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
def test_the_champion_is_served_alone_at_the_configured_confidence(confidence: float) -> None:
    enough = wins_needed(confidence, n_arms=3)
    partition = search(confidence, policy={"name": "rucb"})
    partition.fold(bulk("ltr-v2", "bm25", enough, 0), bulk("ltr-v2", "ltr-v1", enough - 1, 0))
    assert status(partition) == "running"
    commit = partition.fold(bulk("ltr-v2", "ltr-v1", 1, 0, 2))
    assert status(partition) == last(commit)["status"] == "finished"
    assert last(commit)["champion"] == "ltr-v2"
    assert last(commit)["pairs"] == [
        {"a": "ltr-v2", "b": "ltr-v2", "share": 1.0, "remaining": None}
    ]


def test_without_a_confidence_exploration_never_ends() -> None:
    partition = search(None, policy={"name": "rucb"})
    partition.fold(
        *SURE, bulk("ltr-v2", "bm25", 10**9, 0, 2), bulk("ltr-v2", "ltr-v1", 10**9, 0, 2)
    )
    assert status(partition) == "running"


def test_an_insignificant_lead_does_not_end_exploration() -> None:
    partition = search(0.95)
    partition.fold(bulk("ltr-v2", "bm25", 10**6, 0), bulk("ltr-v2", "ltr-v1", 505_000, 504_000))
    assert status(partition) == "running"


def test_exploration_does_not_end_before_min_duels() -> None:
    partition = search(0.95, min_duels=1_000)
    partition.fold(*SURE, bulk("ltr-v2", "bm25", 779, 0, 2))
    assert (partition.duels(), status(partition)) == (999, "running")
    commit = partition.fold(text(DUEL, a="ltr-v2", b="ltr-v2", winner=None))
    assert (last(commit)["duels"], last(commit)["status"]) == (1_000, "finished")


@pytest.mark.parametrize("policy", ["rucb", "double_thompson", "c2b"])
def test_a_finished_experiment_stays_finished(policy: str) -> None:
    horizon = {"horizon": 10**7} if policy == "c2b" else {}
    partition = search(policy={"name": policy, **horizon})
    partition.fold(*SURE)
    assert status(partition) == "finished"
    for number, process in enumerate((partition, partition.restarted())):
        commit = process.fold(bulk("bm25", "ltr-v2", 95, 0, 2), bulk("ltr-v1", "ltr-v2", 95, 0, 2))
        assert status(process) == "finished"
        assert {it["status"] for it in assignments(commit)} <= {"finished"}
        assert process.duels() == 410, number


def test_after_a_reset_exploration_may_end_again() -> None:
    partition = search(min_duels=200)
    partition.fold(*SURE)
    assert last(partition.fold(control("reset")))["status"] == "running"
    partition.fold(bulk("bm25", "ltr-v2", 100, 0, 2))
    partition.fold(bulk("bm25", "ltr-v1", 99, 0, 2))
    assert status(partition) == "running"
    commit = partition.fold(bulk("bm25", "ltr-v1", 1, 0, 3))
    assert (last(commit)["status"], last(commit)["champion"]) == ("finished", "bm25")


@pytest.mark.parametrize("policy", ["rucb", "c2b"])
def test_a_new_arm_restarts_exploration(policy: str) -> None:
    horizon = {"horizon": 10**7} if policy == "c2b" else {}
    partition = search(policy={"name": policy, **horizon})
    partition.fold(*SURE)
    commit = partition.fold(control("add_arm", "dense"))
    assert last(commit)["status"] == "running"
    commit = partition.fold(bulk("ltr-v2", "dense", 100, 10))
    assert (last(commit)["status"], last(commit)["champion"]) == ("finished", "ltr-v2")


def test_retiring_a_beaten_arm_keeps_the_experiment_finished() -> None:
    partition = search()
    partition.fold(*SURE, bulk("bm25", "ltr-v2", 90, 0, 2))
    assert status(partition) == "finished"
    commit = partition.fold(control("retire_arm", "bm25"))
    assert (assignments(commit), status(partition)) == ([], "finished")


@pytest.mark.parametrize("policy", ["rucb", "c2b"])
def test_retiring_the_champion_restarts_exploration(policy: str) -> None:
    horizon = {"horizon": 10**7} if policy == "c2b" else {}
    partition = search(policy={"name": policy, **horizon})
    partition.fold(*SURE)
    commit = partition.fold(control("retire_arm", "ltr-v2"))
    assert last(commit)["status"] == "running"
    assert {last(commit)["pairs"][0][side] for side in "ab"} <= {"bm25", "ltr-v1"}
    commit = partition.fold(bulk("ltr-v1", "bm25", 100, 10))
    assert (last(commit)["status"], last(commit)["champion"]) == ("finished", "ltr-v1")


def test_a_paused_experiment_does_not_finish() -> None:
    partition = search()
    partition.fold(control("pause"), *SURE)
    assert status(partition) == "paused"
    commit = partition.fold(control("resume"))
    assert last(commit)["status"] == "finished"


@pytest.mark.parametrize("cut", [1, 7, 1000])
def test_the_stop_rule_ends_an_open_batch(cut: int) -> None:
    enough = wins_needed(0.9, n_arms=2)
    partition = search(
        0.9, arms=["bm25", "ltr-v1"], policy={"name": "pcomp", "horizon": 10**9, "rounds": 1}
    )
    values = [text(DUEL, id=str(number)) for number in range(enough)]
    commits = [partition.fold(*values[at : at + cut]) for at in range(0, enough, cut)]
    published = [it for commit in commits for it in assignments(commit)]
    assert [it["duels"] for it in published if it["status"] == "finished"] == [enough]


def test_the_next_check_follows_a_hundredth_later() -> None:
    rule, policy = StopRule(StopSettings(confidence=0.95, min_duels=5_000)), create("rucb", 3)
    assert rule.until_check(policy) == 5_000
    policy.observe(0, 1, 1.0, 5_000)
    assert not rule.is_reached(policy)
    assert rule.state() == {"check_at": 5_051}
    assert rule.until_check(policy) == 51
    policy.observe(0, 2, 1.0, 50)
    assert not rule.is_reached(policy), "it did not look"
    policy.observe(0, 2, 1.0, 1)
    assert rule.until_check(policy) == 0
    assert rule.is_reached(policy)


def test_without_a_confidence_there_is_no_check() -> None:
    rule, policy = StopRule(StopSettings()), create("rucb", 2)
    policy.observe(0, 1, 1.0, 2**40)
    assert not rule.is_reached(policy)
    assert rule.until_check(policy) > 2**40
    assert rule.state() == {"check_at": 0}


def test_a_copeland_winner_need_not_beat_every_arm() -> None:
    cycle = [
        bulk("bm25", "ltr-v1", 900, 100), bulk("ltr-v1", "ltr-v2", 900, 100),
        bulk("ltr-v2", "bm25", 900, 100),
    ]  # fmt: skip
    for policy, ended in (("rucb", "running"), ("double_thompson", "finished")):
        partition = search(policy={"name": policy})
        partition.fold(*cycle)
        assert status(partition) == ended

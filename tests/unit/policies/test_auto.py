"""auto: exactly RMED1 while a Condorcet winner is possible, then Double Thompson Sampling."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from streamduel import policies
from streamduel.errors import PolicyError
from streamduel.policies import Policy
from streamduel.policies import auto as module
from streamduel.policies.auto import Auto
from streamduel.policies.base.change_of_arms import with_arms
from streamduel.policies.double_thompson import DoubleThompson
from streamduel.policies.rmed1 import RMED1
from streamduel.preference.arrays import Floats
from streamduel.preference.elimination import condorcet_winner_possible
from streamduel.preference.regret import regrets
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.matrices import ARXIV
from streamduel.simulation.run import SteppedRun

# A cycle of three arms that beat the other two: no Condorcet winner.
CYCLE = np.array(
    [
        [0.5, 0.7, 0.3, 0.7, 0.7],
        [0.3, 0.5, 0.7, 0.7, 0.7],
        [0.7, 0.3, 0.5, 0.7, 0.7],
        [0.3, 0.3, 0.3, 0.5, 0.6],
        [0.3, 0.3, 0.3, 0.4, 0.5],
    ]
)
LOST = [(0, 1), (1, 2), (2, 0), (0, 3), (0, 4)]
"""Winner and loser: every arm loses to another one; five pairs have no duels."""
SURE = 60
"""Duels without a defeat that suffice for confidence; 20 do not."""


def policy_after(policy: Auto, times: int) -> Auto:
    """Observe each of the wins in `LOST` this many times."""
    for first, second in LOST:
        policy.observe(first, second, 1, times)
    return policy


def switched() -> Auto:
    policy = policy_after(Auto(5, seed=1), SURE)
    policy.propose()
    assert policy.stage == "double_thompson"
    return policy


def play(policy: Policy, users: random.Random, n: int = 1, p: Floats = CYCLE) -> list[list[int]]:
    """Propose n duels and observe their outcomes."""
    pairs: list[list[int]] = policy.propose(n).tolist()
    won = [float(users.random() < p[first, second]) for first, second in pairs]
    policy.observe([first for first, _ in pairs], [second for _, second in pairs], won)
    return pairs


def as_thompson(state: dict[str, Any]) -> DoubleThompson:
    """Double Thompson Sampling with the counts, the generator and the order of arms of a state."""
    fresh = DoubleThompson(state["n_arms"]).state_dict()
    shared = {key: state[key] for key in ("counts", "generator", "priority")}
    return DoubleThompson.from_state({**fresh, **shared})


def through_json(policy: Auto) -> Auto:
    return Auto.from_state(json.loads(json.dumps(policy.state_dict())))


@pytest.mark.parametrize("slate", [1, 6])
@pytest.mark.parametrize("seed", range(3))
def test_cycle_continues_as_double_thompson_from_same_counts(seed: int, slate: int) -> None:
    policy, users = Auto(5, seed=seed), random.Random(seed)
    while policy.stage == "rmed1":
        assert policy.duels < 5_000
        before = policy.state_dict()
        pairs = play(policy, users, slate)
    assert as_thompson(before).propose(slate).tolist() == pairs
    twin = as_thompson(policy.state_dict())
    users, same = random.Random(9), random.Random(9)
    for _ in range(200):
        assert play(policy, users, slate) == play(twin, same, slate)
        assert policy.candidates() == twin.candidates()
        assert policy.champion() == twin.champion()
    assert policy.state_dict()["generator"] == twin.state_dict()["generator"]
    assert policy.stage == "double_thompson"


@pytest.mark.parametrize(("slate", "slates"), [(1, 20_000), (30, 200)])
def test_condorcet_winner_keeps_rmed1_bit_identical(slate: int, slates: int) -> None:
    arxiv = np.asarray(ARXIV)
    policy, twin = Auto(6, seed=5), RMED1(6, seed=5)
    users, same = random.Random(5), random.Random(5)
    for number in range(slates):
        assert play(policy, users, slate, arxiv) == play(twin, same, slate, arxiv)
        if number % 100 == 0:
            assert policy.candidates() == twin.candidates()
            assert policy.champion() == twin.champion()
    state, expected = policy.state_dict(), twin.state_dict()
    assert policy.stage == "rmed1"
    assert state["own"]["inner"] == expected["own"]
    for key in ("counts", "generator", "priority"):
        assert state[key] == expected[key]


def test_false_switch_rate_at_most_delta() -> None:
    # A winner by a tiny gap, and three arms in a clear cycle: the only possible error is to
    # conclude that the winner has lost. If each of 60 runs erred with probability 0.2, 23 or more
    # would have a chance below 1 in 1,000 (22 is the 0.999-quantile of the binomial distribution).
    p = np.full((4, 4), 0.5)
    p[0, 1:], p[1:, 0] = 0.501, 0.499
    for winner, loser in ((1, 2), (2, 3), (3, 1)):
        p[winner, loser], p[loser, winner] = 0.9, 0.1
    erred = 0
    for run in range(60):
        policy = Auto(4, seed=run, delta=0.2)
        SteppedRun(policy, MatrixEnvironment(p, seed=run + 5_000)).advance(1_500)
        erred += policy.stage != "rmed1"
    assert erred <= 22


def test_regret_after_switch_is_small_unlike_rmed1() -> None:
    costs, lost = regrets(CYCLE, "copeland"), {}
    for name in ("auto", "rmed1"):
        simulation = SteppedRun(policies.create(name, 5, seed=2), MatrixEnvironment(CYCLE, seed=3))
        halves = [0.0]
        for t in (8_000, 16_000):
            simulation.advance(t)
            halves.append(float((simulation.plays * costs).sum()))
        lost[name] = np.diff(halves)
    assert lost["rmed1"][1] > 0.8 * lost["rmed1"][0]
    assert lost["auto"][1] < 0.2 * lost["auto"][0]
    assert lost["auto"].sum() < 0.3 * lost["rmed1"].sum()


def test_switch_happens_on_propose() -> None:
    policy = policy_after(Auto(5, seed=1), SURE)
    assert policy.stage == "rmed1"
    policy.propose()
    assert policy.stage == "double_thompson"


@pytest.mark.parametrize(
    ("delta", "times", "stage"),
    [
        (0.01, SURE, "double_thompson"),
        (0.01, 20, "rmed1"),
        (0.5, 20, "double_thompson"),
        (1e-9, SURE, "rmed1"),
    ],
)
def test_smaller_delta_needs_more_evidence(delta: float, times: int, stage: str) -> None:
    policy = policy_after(Auto(5, seed=1, delta=delta), times)
    assert condorcet_winner_possible(policy.wins, delta) is (stage == "rmed1")
    policy.propose()
    assert policy.stage == stage


def test_switch_is_permanent() -> None:
    policy = switched()
    for arm in (1, 2, 3, 4):
        policy.observe(0, arm, 1, 10_000)
    assert condorcet_winner_possible(policy.wins, policy.delta)
    policy.propose(3)
    assert policy.stage == "double_thompson"
    assert policy.champion() == 0


def record_checks(policy: Auto, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A live list: the number of duels of different arms at each check."""
    seen: list[int] = []

    def recorded(wins: Floats, delta: float) -> bool:
        seen.append(int(wins.sum()))
        return condorcet_winner_possible(wins, delta)

    monkeypatch.setattr(module, "condorcet_winner_possible", recorded)
    return seen


def test_check_interval_is_k_duels_and_one_per_cent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = Auto(3, seed=1)
    seen = record_checks(policy, monkeypatch)
    for _ in range(1_000):
        policy.propose()
        policy.observe(0, 1, 0.5)
    assert seen[:4] == [1, 4, 7, 10]
    gaps = np.diff(seen)
    assert (gaps == np.maximum(3, np.array(seen[:-1]) // 100)).all()
    assert gaps[-1] == 9


def test_self_duels_do_not_trigger_check(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Auto(3, seed=1)
    seen = record_checks(policy, monkeypatch)
    for duel in range(12):
        policy.observe(0, 0, 0.5, 1 + 500 * duel)
        policy.propose(2)
        policy.observe(0, 1, 0.5)
        policy.propose()
        policy.propose()
    assert seen == [1, 4, 7, 10]


def test_no_checks_after_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = switched()
    seen = record_checks(policy, monkeypatch)
    for _ in range(300):
        policy.observe(0, 1, 1)
        policy.propose()
    assert seen == []


@pytest.mark.parametrize("seed", range(3))
def test_propose_ahead_equals_single_proposals_across_switch(seed: int) -> None:
    stepping, jumping, stages = Auto(5, seed=seed), Auto(5, seed=seed), set()
    rng = random.Random(seed)
    while jumping.duels < 3_000:
        pairs, times = jumping.propose_ahead(1_000)
        for (first, second), often in zip(pairs.tolist(), times.tolist(), strict=True):
            won = float(rng.random() < CYCLE[first, second])
            for _ in range(often):
                assert stepping.propose().tolist() == [[first, second]]
                stepping.observe(first, second, won)
            jumping.observe(first, second, won, often)
        stages.add(jumping.stage)
        assert jumping.state_dict() == stepping.state_dict()
    assert stages == {"rmed1", "double_thompson"}


def test_lone_champion_proposed_ahead_as_far_as_by_rmed1() -> None:
    both = (Auto(3, seed=1), RMED1(3, seed=1))
    for policy in both:
        for _ in range(3):  # all pairs
            ((first, second),) = policy.propose().tolist()
            policy.observe(first, second, float(first < second))
    runs = []
    while both[0].duels < 2_000:
        ahead = [policy.propose_ahead(1_000) for policy in both]
        (((first, second),), (times,)), same = ([part.tolist() for part in each] for each in ahead)
        assert same == [[[first, second]], [times]]
        for policy in both:
            policy.observe(first, second, float(first < second), times)
        runs.append(times)
    assert max(runs) > 100


def test_propose_ahead_stops_at_switch_during_first_duels() -> None:
    # Arm 4 is the last with a confident loss: not after 24 defeats, at the first check, but after
    # 26 (4.5 and 5.2 nats; ln(1 / 0.01) = 4.6 are required). The next check is 5 duels after the
    # first one; 3 of these are left, and RMED1 has 5 pairs without duels.
    stepping, jumping = Auto(5, seed=1), Auto(5, seed=1)
    for policy in (stepping, jumping):
        for first, second in LOST[:4]:
            policy.observe(first, second, 1, SURE)
        policy.observe(0, 4, 1, 24)
        policy.propose()
        policy.observe(0, 4, 1, 2)
    while stepping.stage == "rmed1":
        ((first, second),) = stepping.propose().tolist()
        stepping.observe(first, second, 1)
    while jumping.duels < stepping.duels:
        pairs, times = jumping.propose_ahead(1_000)
        jumping.observe(pairs[:, 0], pairs[:, 1], np.ones(len(pairs)), times)
    assert jumping.state_dict() == stepping.state_dict()
    assert stepping.duels == 4 * SURE + 26 + 3 + 1
    assert (stepping.wins + stepping.wins.T == 0).sum() > 5, "more than the diagonal"


def test_state_json_round_trip_before_and_after_switch() -> None:
    policy, users, stages = Auto(5, seed=4), random.Random(4), []
    twin, same = Auto(5, seed=4), random.Random(4)
    for _ in range(150):
        for _ in range(7):
            assert play(policy, users, 2) == play(twin, same, 2)
        policy = through_json(policy)
        assert policy.state_dict() == twin.state_dict()
        assert policy.stage == twin.stage
        stages.append(policy.stage)
    assert {stages[0], stages[-1]} == {"rmed1", "double_thompson"}


def test_change_of_arms_decides_stage_from_counts() -> None:
    policy = switched()
    for kept, stage in (
        ([4, 3, 2, 1, 0], "double_thompson"),
        ([0, 1, 2], "double_thompson"),
        ([0, 1, 2, 3, 4, None], "rmed1"),  # the new arm may beat all
        ([0, 1, 3, 4], "rmed1"),  # without 2, arm 0 may
    ):
        changed = with_arms(policy, kept)
        assert changed.stage == "rmed1"
        changed.propose()
        assert changed.stage == stage, kept
    assert policy.stage == "double_thompson"


def test_copy_shares_neither_counts_nor_generator() -> None:
    policy = switched()
    before, twin = policy.state_dict(), policy.clone()
    play(twin, random.Random(1), 50)
    assert policy.state_dict() == before


@pytest.mark.parametrize("delta", [0, 1, -0.1, 1.5])
def test_invalid_delta_rejected(delta: float) -> None:
    with pytest.raises(PolicyError, match=r"policy\.delta must be greater than 0 and less than 1"):
        Auto(3, delta=delta)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"look_at": 0}, r"look_at must be an integer from 1 to 305 \(found 0\)"),
        ({"look_at": 306}, r"look_at must be .* \(found 306\)"),
        ({"inner": []}, "damaged.*inner"),
        ({"inner": None, "switched": True}, "damaged.*inner"),
        ({"inner": {}}, "state of policy 'rmed1' is damaged"),
    ],
)
def test_damaged_states_rejected(damage: dict[str, object], message: str) -> None:
    state = policy_after(Auto(5, seed=1), SURE).state_dict()
    assert Auto.from_state(state).stage == "rmed1"
    with pytest.raises(PolicyError, match=message):
        Auto.from_state({**state, "own": {**state["own"], **damage}})


@pytest.mark.parametrize("name", sorted(set(policies.names()) - {"auto"}))
def test_other_policies_have_one_stage(name: str) -> None:
    required = [one.name for one in policies.get(name).declared.values() if one.required]
    policy = policies.create(name, 3, **dict.fromkeys(required, 100))
    assert policy.stage == name

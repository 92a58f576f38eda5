"""Policies with a window: always equal to a policy that observed only the recent duels."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

from streamduel import policies
from streamduel.errors import PolicyError
from streamduel.policies import Policy
from streamduel.policies.base.change_of_arms import with_arms, with_counts_of
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.matrices import ARXIV
from streamduel.simulation.measurement import measure, start_run
from streamduel.simulation.run import SteppedRun
from streamduel.simulation.settings import Settings

FORGETFUL: list[tuple[str, dict[str, Any]]] = [
    ("rucb", {}),
    ("rucb", {"champion_set": True}),
    ("double_thompson", {}),
    ("double_thompson_plus", {}),
]
CLEAR = [[0.5, 0.8, 0.8], [0.2, 0.5, 0.8], [0.2, 0.2, 0.5]]


def without_window(policy: Policy) -> Policy:
    """A policy without a window that observed only the recent duels."""
    state = policy.state_dict()
    del state["parameters"]["window"]
    wins = np.zeros_like(policy.wins)
    for block in state["counts"]["recent"]:
        for low, high, low_wins, high_wins in block:
            wins[low, high] += low_wins
            wins[high, low] += high_wins
    window, observed = state["counts"]["window"], state["counts"]["duels"]
    # 16 blocks, the last of which is that of the next duel, number ⌊16 observed / window⌋.
    forgotten = max(0, -(-(observed * 16 // window - 15) * window // 16))
    state["counts"] = {"duels": observed - forgotten, "wins": wins.tolist()}
    return type(policy).from_state(state)


@pytest.mark.parametrize(("name", "parameters"), FORGETFUL)
@pytest.mark.parametrize("window", [100, 333])
def test_forgotten_duels_leave_no_trace(name: str, parameters: dict[str, Any], window: int) -> None:
    policy = policies.create(name, 6, seed=4, window=window, **parameters)
    users = MatrixEnvironment(ARXIV, ties=0.1, seed=4)
    for step in range(900):
        if step % 7 == 0:
            fresh = without_window(policy)
            assert fresh.candidates() == policy.candidates()
            assert fresh.propose(3).tolist() == policy.clone().propose(3).tolist()
        first, second = policy.propose()[0].tolist()
        policy.observe(first, second, users.outcome(first, second))
    assert policy.duels == 900
    assert policy.wins.sum() > without_window(policy).wins.sum()


@pytest.mark.parametrize(("name", "parameters"), FORGETFUL)
def test_unfilled_window_changes_nothing(name: str, parameters: dict[str, Any]) -> None:
    plain = policies.create(name, 6, seed=4, **parameters)
    windowed = policies.create(name, 6, seed=4, window=700, **parameters)
    for seed, policy in ((9, plain), (9, windowed)):
        users = MatrixEnvironment(ARXIV, seed=seed)
        for _ in range(699):
            first, second = policy.propose()[0].tolist()
            policy.observe(first, second, users.outcome(first, second))
    assert windowed.wins.tolist() == plain.wins.tolist()
    assert windowed.champion() == plain.champion()
    assert windowed.propose(5).tolist() == plain.propose(5).tolist()


@pytest.mark.parametrize("name", ["rucb", "double_thompson", "double_thompson_plus"])
def test_state_and_repr_without_window(name: str) -> None:
    plain, off = policies.create(name, 3, seed=1), policies.create(name, 3, seed=1, window=None)
    assert off.state_dict() == plain.state_dict()
    assert "window" not in plain.parameters
    assert plain.window is None  # type: ignore[attr-defined]
    assert set(plain.state_dict()["counts"]) == {"duels", "wins"}


def test_champion_replaced_after_recent_losses() -> None:
    policy = policies.create("rucb", 3, seed=1, window=160)
    policy.observe([0, 0, 1], [1, 2, 2], [1.0, 1.0, 1.0], [10_000, 10_000, 10_000])
    policy.observe([0, 0, 1], [1, 2, 2], [0.0, 1.0, 1.0], [53, 53, 53])
    assert policy.champion() == 1
    assert policy.wins[0, 1] == 10_000
    assert policy.duels == 30_159


def test_pairs_without_recent_duels_use_all_their_duels() -> None:
    policy = policies.create("rucb", 4, seed=1, window=160)
    pairs = [0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]
    policy.observe(*pairs, [1.0] * 6, [100] * 6)
    for served_alone in range(500):
        assert policy.champion() == 0, served_alone
        policy.observe(3, 3, 0.5)
    assert policy.candidates() == 4, "all arms are candidates again"
    policy.observe(3, 0, 1.0)
    policy.observe(1, 0, 0.5)
    assert policy.champion() == 1, "it beats two arms, the former winner recently one"
    assert policies.from_state(policy.state_dict()).champion() == 1


def test_self_duels_expire_old_duels() -> None:
    policy = policies.create("rucb", 3, seed=1, window=160)
    policy.observe([0, 0, 1], [1, 2, 2], [1.0, 1.0, 1.0], [50, 50, 50])
    pairs, times = policy.propose_ahead(10**6)
    assert pairs.tolist() == [[0, 0]]
    # The last of 160 fills the block: then the oldest ten are forgotten.
    assert times.tolist() == [10]
    assert policy.candidates() == 1
    policy.observe(0, 0, 0.5, 150)
    assert policy.candidates() == 3
    assert policy.wins.sum() == 150


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (15, r"policy.window must be at least 16 \(found 15\); duels are forgotten in 16 parts"),
        (0, "policy.window must be at least 16"),
        (1.5, "policy.window must be an integer"),
        ("50000", "policy.window must be an integer"),
        (True, "policy.window must be an integer"),
        (10**16, "policy.window must be at most"),
    ],
)
def test_invalid_windows_rejected(window: object, sentence: str) -> None:
    with pytest.raises(PolicyError, match=sentence):
        policies.create("rucb", 3, window=window)


def test_other_policies_have_no_window() -> None:
    having = [name for name in policies.names() if "window" in policies.get(name).declared]
    assert having == ["double_thompson", "double_thompson_plus", "rucb", "top_two"]
    with pytest.raises(PolicyError, match="has no parameter 'window'"):
        policies.create("ccb", 3, window=1_000)


def windowed_state() -> dict[str, Any]:
    policy = policies.create("rucb", 3, seed=1, window=160)
    policy.observe([0, 0, 1], [1, 2, 2], [1.0, 0.5, 1.0], [150, 50, 50])
    state: dict[str, Any] = json.loads(json.dumps(policy.state_dict()))
    return state


@pytest.mark.parametrize(
    ("where", "damage"),
    [
        ("recent", None),
        ("recent", []),
        ("recent", [[[0, 3, 1.0, 0.0]]] * 16),
        ("window", None),
        ("window", 320),
        ("wins", [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]),
    ],
)
def test_damaged_recent_counts_rejected(where: str, damage: object) -> None:
    state = windowed_state()
    policies.from_state(copy.deepcopy(state))
    state["counts"][where] = damage
    with pytest.raises(
        PolicyError, match=r"counts\.(recent|window)|counts are damaged.*(recent|window)"
    ):
        policies.from_state(state)


def test_state_of_another_window_rejected() -> None:
    state = windowed_state()
    state["parameters"]["window"] = 161
    with pytest.raises(PolicyError, match=r"must be policy.window, 161 \(found 160\)"):
        policies.from_state(state)


def test_recent_counts_move_with_their_arms() -> None:
    policy = policies.create("rucb", 4, seed=1, window=160)
    policy.observe([3, 0, 1], [0, 1, 2], [1.0, 0.5, 0.0], [300, 100, 44])
    assert policy.state_dict()["counts"]["recent"][0] == [[0, 3, 0.0, 10.0]]
    changed = with_arms(policy, [3, None, 0, 1])
    state = changed.state_dict()
    assert state["counts"]["recent"][0] == [[0, 2, 10.0, 0.0]]
    assert state["counts"]["recent"][1] == [[2, 3, 5.0, 5.0]]
    assert state["counts"]["recent"][-1] == []
    assert changed.duels == policy.duels
    assert changed.wins[0, 2] == 300
    assert without_window(changed).duels == without_window(policy).duels == 154


@pytest.mark.parametrize(
    ("kept", "pairs"),
    [
        ([2, 1], [[0, 1, 0.0, 3.0]]),
        ([2, 1, 0], [[0, 1, 0.0, 3.0], [0, 2, 0.0, 3.0], [1, 2, 0.0, 3.0]]),
    ],
)
def test_recent_counts_of_other_arms_are_in_order(kept: list[int], pairs: list[Any]) -> None:
    policy = policies.create("rucb", 3, seed=1, window=160)
    policy.observe([0, 0, 1], [1, 2, 2], [1.0, 1.0, 1.0], [3, 3, 3])
    blocks = with_arms(policy, kept).state_dict()["counts"]["recent"]
    assert [block for block in blocks if block] == [pairs]


@pytest.mark.parametrize(("window", "recent"), [(160, 100.0), (320, 0.0), (None, 0.0)])
def test_recent_counts_move_to_an_equal_window_only(window: int | None, recent: float) -> None:
    policy = policies.create("rucb", 3, seed=1, window=window)
    policy.observe(0, 1, 1.0, 100)
    changed = with_counts_of(policies.create("double_thompson", 3, window=160), policy)
    assert (changed.wins[0, 1], changed.duels) == (100, 100)
    blocks = changed.state_dict()["counts"]["recent"]
    assert sum(first_wins for block in blocks for _, _, first_wins, _ in block) == recent


def test_windowed_policies_are_not_compiled() -> None:
    users = MatrixEnvironment(CLEAR, seed=1)
    for name in ("rucb", "double_thompson"):
        assert type(start_run(policies.create(name, 3), users)) is not SteppedRun
        assert type(start_run(policies.create(name, 3, window=100), users)) is SteppedRun


def test_simulation_compares_windows() -> None:
    contestants: list[tuple[str, dict[str, Any]]] = [
        ("rucb", {"window": 100}),
        ("rucb", {}),
        ("rucb", {"window": 2_000}),
    ]
    settings = Settings(CLEAR, contestants, horizon=2_000, runs=1, seed=1)
    assert settings.labels() == ["rucb (window=100)", "rucb", "rucb (window=2000)"]
    assert settings.chosen(0) == {"window": 100}
    runs = [measure(settings, contestant, 0) for contestant in settings.specs]
    assert runs[0].params == {"alpha": 0.51, "champion_set": False, "window": 100}
    small, none, large = (run.regret for run in runs)
    assert none[:-1] == large[:-1] != small[:-1]
    assert small[-1] > none[-1]

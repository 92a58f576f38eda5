"""Arms added and retired, and the end of exploration: hand-computed cases."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from streamduel import policies
from streamduel.policies import Policy
from streamduel.policies.base.change_of_arms import with_arms
from streamduel.policies.base.generator import Generator
from streamduel.policies.c2b import C2B
from streamduel.policies.ccb import CCB
from streamduel.policies.interleaved_filter import InterleavedFilter2
from streamduel.policies.pcomp import PComp
from streamduel.policies.rucb import RUCB

WINS = np.array([[0, 1, 2, 3], [4, 0, 5, 6], [7, 8, 0, 9.5], [10, 11, 12.5, 0]])


def policy_with_wins(policy: Policy) -> Policy:
    """A policy of four arms with these wins and three self-duels."""
    for first, second in combinations(range(4), 2):
        won, lost = WINS.item(first, second), WINS.item(second, first)
        policy.observe(first, second, 1, int(won))
        policy.observe(first, second, 0, int(lost))
        if won % 1:
            policy.observe(first, second, 0.5)
    policy.observe(2, 2, 0.5, 3)
    assert policy.wins.tolist() == WINS.tolist()
    return policy


@pytest.mark.parametrize(
    ("kept", "wins"),
    [
        ([0, 1, 2, 3], WINS),
        ([0, 1, 2, 3, None], np.pad(WINS, (0, 1))),
        ([0, 2, 3], [[0, 2, 3], [7, 0, 9.5], [10, 12.5, 0]]),
        ([3, None, 1], [[0, 0, 11], [0, 0, 0], [6, 0, 0]]),
        ([2, 0], [[0, 7], [2, 0]]),
        ([None, None], np.zeros((2, 2))),
        ([None, 3], np.zeros((2, 2))),
    ],
)
def test_counts_move_with_their_arms(kept: list[int | None], wins: list[list[float]]) -> None:
    policy = policy_with_wins(RUCB(4, seed=3, alpha=0.7))
    changed = with_arms(policy, kept)
    assert changed.wins.tolist() == np.array(wins).tolist()
    assert changed.duels == policy.duels == int(WINS.sum()) + 3
    assert changed.parameters == {"alpha": 0.7, "champion_set": False}
    assert (changed.n_arms, policy.n_arms) == (len(kept), 4)


def test_seed_of_changed_policy_is_next_word_of_generator() -> None:
    policy = policy_with_wins(RUCB(4, seed=3))
    word = int(Generator.from_state(policy.state_dict()["generator"]).words(1)[0])
    changed, fresh = with_arms(policy, [0, 1, 3]), RUCB(3, seed=word)
    for key in ("generator", "priority"):
        assert changed.state_dict()[key] == fresh.state_dict()[key]
    assert with_arms(policy, [0, 1, 3]).state_dict() == changed.state_dict(), "nothing was drawn"
    policy.propose(5)
    assert with_arms(policy, [0, 1, 3]).state_dict()["generator"] != fresh.state_dict()["generator"]


def test_consecutive_changes_have_different_draws() -> None:
    policy = policy_with_wins(RUCB(4, seed=3))
    once = with_arms(policy, [0, 1, 2, 3])
    twice = with_arms(once, [0, 1, 2, 3])
    generators = [it.state_dict()["generator"] for it in (policy, once, twice)]
    assert generators[0] != generators[1] != generators[2]


def test_state_derived_from_counts_continues() -> None:
    """RUCB's candidates include an arm without duels, and no arm that surely lost."""
    policy = RUCB(3, seed=3)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        policy.observe(first, second, 1, 1_000)
    assert policy.candidates() == 1
    assert with_arms(policy, [0, 1, 2, None]).candidates() == 2
    assert with_arms(policy, [1, 2]).candidates() == 1
    assert with_arms(policy, [1, 2]).champion() == 0


def test_champion_moves_with_its_arm() -> None:
    policy = CCB(3, seed=3)
    for first, second in ((2, 0), (2, 1)):
        policy.observe(first, second, 1, 50)
    assert policy.champion() == 2
    assert with_arms(policy, [2, 1, 0]).champion() == 0
    assert with_arms(policy, [1, None, 2]).champion() == 2


def test_batched_policy_restarts_first_round_with_counts() -> None:
    policy = C2B(3, seed=3, horizon=1000)  # rounds of 3, 10 and 31
    for quota in (3, 10):
        for first, second in ((0, 1), (0, 2), (1, 2)):
            policy.observe(first, second, 0.5, quota + 1)
        policy.propose()
    policy.observe(0, 1, 0.5)
    assert policy.round == 3
    changed = with_arms(policy, [0, 1, 2, None])
    assert (changed.round, changed.candidates()) == (1, 4)
    assert changed.remaining().tolist() == [[0, 0, 0, 3]] * 3 + [[3, 3, 3, 0]]
    changed = with_arms(policy, [0, 2])
    assert not changed.remaining().any(), "the round ends on propose"
    changed.propose()
    assert changed.round == 2
    assert changed.remaining().tolist() == [[0, 10], [10, 0]]


def test_restarted_round_estimates_use_all_duels() -> None:
    policy = PComp(3, seed=3, horizon=1000)
    policy.observe([0, 0, 1], [1, 2, 2], [0.5, 0.5, 0.5], [5, 5, 5])
    policy.propose()
    assert policy.state_dict()["own"]["before"] != [[0.0] * 3] * 3
    changed = with_arms(policy, [0, 1, None])
    assert changed.state_dict()["own"]["before"] == [[0.0] * 3] * 3


def test_elimination_not_permanent_after_change() -> None:
    policy = InterleavedFilter2(3, seed=3, horizon=10**6)
    for _ in range(2_000):
        first, second = policy.propose()[0].tolist()
        policy.observe(first, second, float(first < second))
    assert (policy.finished, policy.candidates()) == (True, 1)
    changed = with_arms(policy, [0, 1, 2])
    assert (changed.finished, changed.candidates()) == (False, 3)
    assert changed.duels == 2_000


@pytest.mark.parametrize("name", policies.names())
def test_exploration_ends_with_last_duel_of_horizon(name: str) -> None:
    plans = "horizon" in policies.get(name).declared
    policy = policies.create(name, 3, seed=3, **({"horizon": 100} if plans else {}))
    assert not policy.finished
    policy.observe(0, 0, 0.5, 99)
    assert not policy.finished
    policy.observe(1, 1, 0.5)
    assert policy.finished is plans
    policy.observe(1, 2, 1, 10**6)
    assert policy.finished is plans
    assert with_arms(policy, [0, 1, 2, None]).finished is plans, "all duels count permanently"


def test_exploration_ends_when_one_arm_is_left() -> None:
    policy = PComp(2, seed=3, horizon=10**6, accumulate=True)
    policy.observe(0, 1, 1, 10**5)
    assert not policy.finished, "concluded on propose"
    assert policy.propose(2).tolist() == [[0, 0], [0, 0]]
    assert policy.finished

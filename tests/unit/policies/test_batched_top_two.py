"""Top-two in batches: quotas, their sizes, and the answer."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.base.change_of_arms import with_arms
from streamduel.policies.batched_top_two import DRAWS, BatchedTopTwo
from streamduel.preference.arrays import Floats
from streamduel.preference.counts import MAX_DUELS
from streamduel.preference.evidence import confidence
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.run import SteppedRun

ORDER: Floats = np.array([[0.5, 0.6, 0.8], [0.4, 0.5, 0.6], [0.2, 0.4, 0.5]])
CYCLE: Floats = np.array([[0.5, 0.7, 0.3], [0.3, 0.5, 0.7], [0.7, 0.3, 0.5]])


def after(preferences: Floats, duels: int, seed: int = 1, **parameters: int) -> BatchedTopTwo:
    """The policy after so many of its duels."""
    policy = BatchedTopTwo(len(preferences), seed=seed, **parameters)
    run = SteppedRun(policy, MatrixEnvironment(preferences, seed=seed))
    run.advance(duels)
    found = run.policy()
    assert isinstance(found, BatchedTopTwo)
    return found


def quotas(policy: BatchedTopTwo) -> list[list[int]]:
    """What the batch lacks that is open when the next pair is asked for."""
    policy.open_batch()
    lacking = policy.remaining().tolist()
    assert isinstance(lacking, list)
    return lacking


def test_first_round_compares_all_pairs() -> None:
    policy = BatchedTopTwo(3, horizon=10_000, rounds=5)
    assert quotas(policy) == [[0, 6, 6], [6, 0, 6], [6, 6, 0]]  # 10⁴ ** (1 / 5) is 6.3


def test_rounds_grow_by_equal_factors() -> None:
    policy, sizes = BatchedTopTwo(3, horizon=10_000, rounds=5), []
    while policy.duels < 10_000 and not policy.finished:
        policy.open_batch()
        sizes.append(policy.lacking())
        pairs, count = policy.propose_ahead(10_000)
        assert len(pairs) == sizes[-1] == count.sum()
        policy.observe(pairs[:, 0], pairs[:, 1], np.full(len(pairs), 0.5))
    total = np.cumsum(sizes)
    assert len(sizes) == 5
    # 18 duels, then four equal factors to 10⁴; each step of the last plan stands for several duels.
    assert np.allclose(total / 18 ** (1 - np.arange(5) / 4) / 10_000 ** (np.arange(5) / 4), 1, 0.06)


def test_a_batch_goes_to_what_it_is_expected_to_decide() -> None:
    policy = BatchedTopTwo(3, seed=1, horizon=10_000, rounds=3)
    policy.observe([0, 0, 1], [1, 2, 2], [1.0, 1.0, 1.0], [30, 30, 60])
    policy.observe([0, 0, 1], [1, 2, 2], [0.0, 0.0, 0.0], [20, 8, 6])
    lacking = quotas(policy)
    assert lacking[0][1] > 100, "0 beats 2 and 1 beats 2 surely, or nearly so"
    assert lacking[0][1] > 10 * lacking[0][2]
    assert lacking[1][2] == 0


def test_ends_with_an_answer_that_is_sure() -> None:
    policy = after(ORDER, 10_000, horizon=10_000, rounds=12)
    assert policy.finished
    assert policy.champion() == 0
    assert policy.candidates() == 1
    assert policy.round <= 12
    assert policy.wins.sum() < 2500
    assert confidence(policy.wins, 0, "condorcet") >= 0.95


def test_ends_after_min_duels() -> None:
    assert after(ORDER, 1_000, horizon=10_000).finished
    assert not after(ORDER, 1_000, horizon=10_000, min_duels=2_000).finished
    policy = after(ORDER, 10_000, horizon=10_000, min_duels=2_000)
    assert policy.champion() == 0
    assert 2_000 <= policy.wins.sum() < 4_000, "then the champion meets itself"


def test_finds_a_copeland_winner_where_no_arm_beats_all_others() -> None:
    policy = after(CYCLE, 10_000, horizon=10_000, rounds=12)
    assert policy.finished
    assert policy.wins.sum() < 2500
    assert confidence(policy.wins, policy.champion(), "copeland") >= 0.95


def test_champion_is_left_after_the_last_round() -> None:
    policy = after(np.full((3, 3), 0.5), 10_000, horizon=1000, rounds=2)
    assert policy.finished
    assert policy.round == 2


def test_fill_is_a_share_of_each_quota() -> None:
    policy = BatchedTopTwo(3, horizon=10_000, rounds=5)  # quotas of 6
    policy.observe([0, 0], [1, 2], [1.0, 1.0], [3, 6])
    assert policy.lacking() == 9
    assert policy.lacking(0.5) == 3


def test_expected_outcomes_are_in_no_count() -> None:
    policy = BatchedTopTwo(3, seed=4, horizon=10_000, rounds=5)
    policy.observe([0, 0, 1], [1, 2, 2], [1.0, 1.0, 1.0], [6, 6, 6])
    before = policy.wins.copy()
    policy.open_batch()
    assert policy.lacking() > 0
    assert (policy.wins == before).all()
    assert policy.duels == 18


def test_a_plan_has_a_bounded_number_of_steps() -> None:
    policy = BatchedTopTwo(3, seed=4, horizon=2**40, rounds=2)
    words = policy.state_dict()["generator"]
    wins = np.full(3, 10**9)
    policy.observe([0, 0, 1], [1, 2, 2], [1.0, 0.0, 1.0], wins)
    policy.observe([0, 0, 1], [1, 2, 2], [0.0, 1.0, 0.0], wins)
    policy.open_batch()
    assert policy.lacking() >= 2**40 / DRAWS / 2
    assert policy.state_dict()["generator"] != words


def test_damaged_quotas_are_refused() -> None:
    state = BatchedTopTwo(3, horizon=10_000).state_dict()
    state["own"]["quotas"][0][1] = 9
    with pytest.raises(PolicyError, match="symmetric"):
        BatchedTopTwo.from_state(state)


@pytest.mark.parametrize("rounds", [2, 3])
@pytest.mark.parametrize("horizon", [10**12, MAX_DUELS])
def test_a_plan_for_the_longest_horizon_has_no_overflow(horizon: int, rounds: int) -> None:
    policy = BatchedTopTwo(2, seed=7, horizon=horizon, rounds=rounds)
    enough = int(horizon ** (1 / rounds)) + 1  # for round 1
    lead = int(0.9 * enough**0.5)  # so the second round is expected to end early
    policy.observe([0, 0], [1, 1], [1.0, 0.0], [enough // 2 + lead, enough // 2 + 1 - lead])
    assert 0 < quotas(policy)[0][1] <= horizon
    assert policy.round == 2
    BatchedTopTwo.from_state(policy.state_dict())


def test_a_batch_is_no_larger_than_what_is_left_of_the_horizon() -> None:
    """Also after an arm has joined, when the rounds begin from the start with many duels."""
    policy = with_arms(after(CYCLE, 5_000, horizon=10_000, rounds=4), [0, 1, 2, None])
    for _ in range(2):
        left = policy.horizon - policy.duels
        lacking = np.triu(quotas(policy))
        assert lacking.sum() <= left + DRAWS
        first, second = lacking.nonzero()
        policy.observe(first, second, np.full(len(first), 0.5), lacking[first, second])

"""C2B against the paper: hand-computed quotas, defeated arms, candidates, eliminations."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.base.batched_policy import BatchedPolicy
from streamduel.policies.c2b import C2B
from streamduel.policies.pcomp import PComp
from tests.unit.policies.bed import policy_after, with_own

ALL_OF_SIX = {(i, j) for j in range(6) for i in range(j)}


def lacking(policy: BatchedPolicy) -> set[tuple[int, int]]:
    """The pairs that the open batch still lacks."""
    first, second = np.triu(policy.remaining()).nonzero()
    return set(zip(first.tolist(), second.tolist(), strict=True))


@pytest.mark.parametrize(
    ("horizon", "rounds"),
    [(10**6, 6), (1000, 6), (1000, 1), (2**40, 40), (8, 12), (10**5, 11), (10**5, 17), (7, 50)],
)
def test_quotas_grow_by_root_of_horizon(horizon: int, rounds: int) -> None:
    policy = C2B(6, horizon=horizon, rounds=rounds)
    for number in range(1, rounds + 1):  # ⌊T^(r / B)⌋, in integers
        assert policy._repeats(number) ** rounds <= horizon**number
        assert (policy._repeats(number) + 1) ** rounds > horizon**number
    assert policy._repeats(rounds) == horizon
    assert lacking(policy) == ALL_OF_SIX
    quotas = policy.remaining()[np.triu_indices(6, k=1)]
    assert set(quotas.tolist()) == {policy._repeats(1)}


@pytest.mark.parametrize(
    ("horizon", "rounds"), [(2, 1), (7, 1), (8, 2), (10**4, 9), (10**5, 11), (10**6, 13)]
)
def test_default_rounds_is_log_of_horizon(horizon: int, rounds: int) -> None:
    assert C2B(2, horizon=horizon).rounds == rounds == max(1, math.floor(math.log(horizon)))


def test_zero_rounds_rejected() -> None:
    with pytest.raises(PolicyError, match=r"policy.rounds must be at least 1 \(found 0\)"):
        C2B(3, horizon=100, rounds=0)


@pytest.mark.parametrize("kind", [C2B, PComp])
@pytest.mark.parametrize("rounds", [1, 4, 7, 30])
def test_each_pair_of_round_compared_equally_often(kind: type[BatchedPolicy], rounds: int) -> None:
    policy: BatchedPolicy = kind(5, seed=2, horizon=3000, rounds=rounds)
    rng, seen = random.Random(rounds), np.zeros((5, 5))
    pairs, number = lacking(policy), policy.round
    for _ in range(3000):
        first, second = policy.propose()[0].tolist()
        if policy.round != number or policy.candidates() == 1:
            times = {(i, j): seen[i, j] for i, j in pairs}
            assert set(times.values()) == {policy._repeats(number)}
            assert seen.sum() == sum(times.values())
            assert policy.round == number + 1 <= rounds or policy.candidates() == 1
            pairs, number = lacking(policy), policy.round
            seen[:] = 0
        if policy.candidates() == 1:
            break
        seen[first, second] += 1
        policy.observe(first, second, float(rng.random() < 0.5 + 0.1 * (second - first)))
    assert policy.round <= rounds
    assert {len(pair) for pair in pairs} <= {2}


def test_defeated_arms_duel_only_the_candidate() -> None:
    # Line 5 in round 2: n (p - 1/2)² > 2 ln(2 K² q_1) = 2 ln(2 * 36 * 2) = 9.94; 40 / 4 = 10.
    # An arm is eliminated at n ln 2 > ln T + f(K) = 34.5 + 1.8; 40 ln 2 = 27.7.
    first = [(0, 1, 40, 0), (0, 2, 40, 0), (0, 3, 39, 0), (4, 5, 40, 0)]
    even = [(i, j, 1, 1) for i, j in ALL_OF_SIX - {(0, 1), (0, 2), (0, 3), (4, 5)}]
    policy = policy_after(C2B(6, seed=1, horizon=10**15), *first, *even)
    assert lacking(policy) == set()
    policy.propose()
    assert (policy.round, policy.candidates()) == (2, 6)
    assert lacking(policy) == ALL_OF_SIX - {(1, 2)}
    assert set(policy.remaining()[np.triu_indices(6, k=1)].tolist()) == {0, policy._repeats(2)}


def test_candidate_ties_broken_at_random() -> None:
    sure = [(0, 1, 40, 0), (0, 2, 40, 0), (3, 4, 40, 0), (3, 5, 40, 0)]
    even = [(i, j, 1, 1) for i, j in ALL_OF_SIX - {(0, 1), (0, 2), (3, 4), (3, 5)}]
    spared: Counter[tuple[int, int]] = Counter()
    for seed in range(200):
        policy = policy_after(C2B(6, seed=seed, horizon=10**15), *sure, *even)
        policy.propose()
        [pair] = ALL_OF_SIX - lacking(policy)
        spared[pair] += 1
    assert set(spared) == {(1, 2), (4, 5)}
    assert abs(spared[1, 2] - 100) < 36  # five standard deviations


@pytest.mark.parametrize(
    ("elimination", "least"),
    [
        ("kl", 11),  # n ln 2 > ln 1000 + 0.3 * 2^1.01 = 7.51
        ("kl_anytime", 3),  # n ln 2 > ln n + 0.60, and the quota of 3 must be filled
        ("hoeffding", 21),  # n / 4 > ln(2² * 6 * 1000) / 2 = 5.04
    ],
)
def test_arm_eliminated_at_evidence_threshold(elimination: str, least: int) -> None:
    for won in (least, least - 1):
        policy = policy_after(C2B(2, horizon=1000, elimination=elimination), (1, 0, won, 0))
        policy.propose()
        assert policy.candidates() == (1 if won == least else 2)
    policy = policy_after(C2B(2, horizon=1000, elimination=elimination), (1, 0, least, 0))
    assert policy.candidates() == 2, "concluded when asked"
    before = policy.state_dict()["generator"]
    assert policy.propose(3).tolist() == [[1, 1]] * 3
    assert policy.state_dict()["generator"] == before
    assert (policy.champion(), policy.candidates()) == (1, 1)
    assert not policy.remaining().any()


def test_anytime_rule_uses_all_duels_so_far() -> None:
    policy = policy_after(C2B(2, horizon=1000, elimination="kl_anytime"), (1, 0, 3, 0))
    policy.observe(0, 0, 0.5, 20)  # 3 ln 2 = 2.08 < ln 23 + 0.60
    policy.propose()
    assert policy.candidates() == 2


def test_a_batch_may_close_before_the_first_duel() -> None:
    policy = C2B(2, horizon=1000, elimination="kl_anytime")
    policy.close_batch()
    policy.open_batch()
    assert policy.candidates() == 2


def test_evidence_summed_over_all_winning_opponents() -> None:
    # 6 ln 2 + 7 ln 2 = 9.01 > ln 1000 + 0.3 * 3^1.01 = 7.82; neither is alone.
    even = (0, 1, 2, 2)
    policy = policy_after(C2B(3, horizon=1000), even, (0, 2, 6, 0), (1, 2, 7, 0))
    policy.propose()
    assert policy.candidates() == 2
    assert lacking(policy) == {(0, 1)}


def test_no_elimination_in_cycle() -> None:
    policy = C2B(3, horizon=1000, elimination="hoeffding")
    policy_after(policy, (0, 1, 60, 0), (1, 2, 60, 0), (2, 0, 60, 0)).propose()
    assert (policy.round, policy.candidates()) == (2, 3)
    assert lacking(policy) == {(0, 1), (0, 2), (1, 2)}


def test_eliminated_arm_does_not_eliminate_others() -> None:
    policy = policy_after(C2B(3, horizon=1000), (0, 1, 3, 3), (0, 2, 60, 0), (1, 2, 60, 0))
    policy.propose()
    assert (policy.round, policy.candidates()) == (2, 2)
    # Too late for arm 2, although its evidence is now the smallest by far.
    policy_after(policy, (0, 1, 5, 5), (2, 0, 200, 0), (2, 1, 200, 0)).propose()
    assert (policy.round, policy.candidates()) == (3, 2)
    assert lacking(policy) == {(0, 1)}


def test_late_duels_count_towards_open_batch() -> None:
    policy = C2B(3, seed=1, horizon=1000, elimination="hoeffding")
    first = policy.propose(9)  # the whole batch of 3 each
    assert Counter(map(tuple, first.tolist())) == {(0, 1): 3, (0, 2): 3, (1, 2): 3}
    policy_after(policy, (0, 1, 3, 0), (0, 2, 3, 0), (1, 2, 4, 0))  # one surplus duel
    second = policy.propose(30)
    assert policy.round == 2
    assert (policy.remaining() == 10 - 10 * np.eye(3)).all()
    policy.observe(first[:, 0], first[:, 1], np.ones(9))
    assert (policy.remaining() == 7 - 7 * np.eye(3)).all()
    policy.observe(second[:, 0], second[:, 1], np.ones(30))
    assert not policy.remaining().any()
    assert policy.propose(1).shape == (1, 2)
    assert policy.round == 3


def test_batch_proposed_again_when_all_in_flight() -> None:
    policy = policy_after(C2B(4, seed=1, horizon=10**4), (0, 1, 1, 0))
    lacking = {(0, 1): 1, (0, 2): 2, (0, 3): 2, (1, 2): 2, (1, 3): 2, (2, 3): 2}
    pairs = [tuple(pair) for pair in policy.propose(33).tolist()]
    for time in range(3):
        assert Counter(pairs[11 * time : 11 * (time + 1)]) == lacking
    assert policy.remaining().sum() == 22, "proposing does not change the counts"


def test_whole_batch_proposed_ahead() -> None:
    policy = C2B(4, seed=1, horizon=1000)
    pairs, times = policy.propose_ahead(10**6)
    assert (len(pairs), times.sum()) == (18, 18)
    policy.observe(pairs[:, 0], pairs[:, 1], np.ones(18))
    last = 0
    while policy.duels < 1000:
        pairs, times = policy.propose_ahead(10**6)
        last = policy.round
        policy.observe(
            pairs[:, 0], pairs[:, 1], np.where(pairs[:, 0] < pairs[:, 1], 1.0, 0.5), times
        )
    assert last <= policy.rounds


DAMAGES: dict[str, list[Any]] = {
    "active": [[]],
    "round": [0, 10],
    "batch": [[], [[0]], [[0, -1, 0], [0] * 3, [0] * 3]],
}


@pytest.mark.parametrize(("key", "value"), [(key, one) for key in DAMAGES for one in DAMAGES[key]])
def test_damaged_states_rejected(key: str, value: Any) -> None:
    with pytest.raises(PolicyError):
        with_own(C2B(3, horizon=10_000), **{key: value})

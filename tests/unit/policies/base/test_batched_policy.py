"""Batches seen from outside: what is lacking, opening what is due, closing before it is full."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import ceil

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamduel.policies.base.batched_policy import BatchedPolicy
from streamduel.policies.c2b import C2B
from streamduel.policies.pcomp import PComp
from streamduel.preference.arrays import Integers

PAIRS = [*combinations(range(3), 2)]
KINDS = pytest.mark.parametrize("kind", [C2B, PComp])


def even(policy: BatchedPolicy, times: int) -> None:
    """Tell so many ties of each pair."""
    for pair in combinations(range(policy.n_arms), 2):
        policy.observe(*pair, 0.5, times)


def opened(policy: BatchedPolicy) -> Integers:
    """What the batch lacks that is open once all that is due is done."""
    policy.open_batch()
    return policy.remaining()


def lacked(policy: BatchedPolicy) -> int:
    return int(policy.remaining().sum()) // 2


@KINDS
def test_the_first_batch_is_open_from_the_beginning(kind: type[BatchedPolicy]) -> None:
    policy = kind(3, seed=1, horizon=1000)
    before = policy.state_dict()
    assert opened(policy).tolist() == [[0, 3, 3], [3, 0, 3], [3, 3, 0]]
    assert policy.state_dict() == before
    assert (policy.round, policy.lacking()) == (1, 9)


@KINDS
def test_only_a_complete_round_is_followed_by_the_next(kind: type[BatchedPolicy]) -> None:
    policy = kind(3, seed=1, horizon=1000)
    even(policy, 3)
    assert (policy.round, policy.lacking()) == (1, 0)
    assert (opened(policy) == 10 - 10 * np.eye(3)).all()
    assert policy.round == 2
    policy.observe(0, 1, 0.5, 9)
    batch = opened(policy)
    assert (policy.round, batch[0, 1], policy.lacking()) == (2, 1, 21)
    batch[:] = 0
    assert policy.lacking() == lacked(policy) == 21, "what was handed out is the caller's"


@KINDS
def test_opening_a_batch_equals_proposing_without_the_draw(
    kind: type[BatchedPolicy],
) -> None:
    told, asked = kind(4, seed=1, horizon=1000), kind(4, seed=1, horizon=1000)
    for quota in (3, 10, 31):
        for policy in (told, asked):
            even(policy, quota)
        told.open_batch()
        asked.propose()
        mine, yours = told.state_dict(), asked.state_dict()
        assert mine["own"] == yours["own"]
        asked = kind.from_state({**yours, "generator": mine["generator"]})


@KINDS
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    fought=st.lists(st.integers(0, 110), min_size=3, max_size=3),
    percent=st.integers(1, 100),
    rounds=st.integers(1, 4),
)
@example(fought=[0, 7, 8], percent=7, rounds=4)  # in float64, 0.07 times 100 exceeds 7
@example(fought=[55, 54, 56], percent=55, rounds=4)
def test_missing_duels_until_each_pair_has_its_share(
    kind: type[BatchedPolicy], fought: list[int], percent: int, rounds: int
) -> None:
    policy = kind(3, seed=1, horizon=1000)
    *before, quota = (3, 10, 31, 100)[:rounds]
    for full in before:
        even(policy, full)
        policy.open_batch()
    for pair, times in zip(PAIRS, fought, strict=True):
        if times:
            policy.observe(*pair, 0.5, times)
    least = ceil(Fraction(percent, 100) * quota)
    assert policy.lacking(percent / 100) == sum(max(0, least - times) for times in fought)
    assert policy.lacking() == lacked(policy) == sum(max(0, quota - times) for times in fought)


@KINDS
def test_a_closed_batch_lacks_nothing_and_ends_when_the_next_is_opened(
    kind: type[BatchedPolicy],
) -> None:
    policy = kind(3, seed=1, horizon=1000)
    even(policy, 1)
    generator = policy.state_dict()["generator"]
    policy.close_batch()
    assert (policy.round, policy.lacking(), lacked(policy)) == (1, 0, 0)
    assert policy.lacking(0.5) == 0
    assert policy.state_dict()["generator"] == generator
    restored = kind.from_state(policy.state_dict())
    for it in (policy, restored):
        assert (opened(it) == 10 - 10 * np.eye(3)).all(), "late duels count from now on"
        assert it.round == 2


@KINDS
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_rounds_closed_early_end_with_the_last_round(
    kind: type[BatchedPolicy], rounds: int
) -> None:
    policy = kind(4, seed=1, horizon=10**6, rounds=rounds)
    policy.observe([3, 3, 3, 1], [0, 1, 2, 0], [1, 1, 1, 1])
    for round_ in range(1, rounds + 1):
        assert (policy.round, policy.finished, policy.candidates()) == (round_, False, 4)
        policy.close_batch()
        policy.open_batch()
    assert (policy.round, policy.finished, policy.candidates()) == (rounds, True, 1)
    assert policy.champion() == 3
    assert not policy.remaining().any()
    assert policy.propose(2).tolist() == [[3, 3]] * 2
    restored = kind.from_state(policy.state_dict())
    assert (restored.finished, restored.champion()) == (True, 3)


def test_of_the_last_round_an_eliminated_arm_is_not_the_winner() -> None:
    policy = PComp(3, seed=1, horizon=10**5, rounds=2, accumulate=True)
    policy.observe([0, 1], [2, 2], [1, 1], [60, 5])
    policy.observe(0, 1, 0.5, 2)
    policy.close_batch()
    policy.open_batch()
    assert (policy.round, policy.candidates()) == (2, 2)
    policy.observe([2, 2], [0, 1], [1, 1], [500, 500])  # late: it beats both by now
    policy.observe(1, 0, 1)
    policy.close_batch()
    policy.open_batch()
    assert (policy.finished, policy.champion()) == (True, 1)


@KINDS
def test_beyond_the_horizon_nothing_is_opened(kind: type[BatchedPolicy]) -> None:
    policy = kind(3, seed=1, horizon=1000)
    even(policy, 400)
    assert policy.finished
    assert not opened(policy).any()
    assert policy.round == 1


def test_a_round_closed_early_is_judged_by_the_duels_that_it_had() -> None:
    """n (p - 1/2)² > ln(1/δ) / 2 = 5.94 takes 24 duels that all go one way, whatever the quota."""
    for fought, left in ((23, 2), (24, 1)):
        policy = PComp(2, seed=1, horizon=1000, rounds=6)
        for quota in (3, 10, 31):
            policy.observe(0, 1, 0.5, quota)
            policy.open_batch()
        assert policy.lacking() == 100
        policy.observe(0, 1, 1.0, fought)
        policy.close_batch()
        policy.open_batch()
        assert policy.candidates() == left

"""Batches through the public interface: remaining duels, opening, closing early."""

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


def observe_ties(policy: BatchedPolicy, times: int) -> None:
    """Observe this many ties of each pair."""
    for pair in combinations(range(policy.n_arms), 2):
        policy.observe(*pair, 0.5, times)


def open_batch(policy: BatchedPolicy) -> Integers:
    """Open the batch that is due and return its remaining duels."""
    policy.open_batch()
    return policy.remaining()


def lacking(policy: BatchedPolicy) -> int:
    return int(policy.remaining().sum()) // 2


@KINDS
def test_first_batch_is_open_initially(kind: type[BatchedPolicy]) -> None:
    policy = kind(3, seed=1, horizon=1000)
    before = policy.state_dict()
    assert open_batch(policy).tolist() == [[0, 3, 3], [3, 0, 3], [3, 3, 0]]
    assert policy.state_dict() == before
    assert (policy.round, policy.lacking()) == (1, 9)


@KINDS
def test_next_round_only_after_complete_round(kind: type[BatchedPolicy]) -> None:
    policy = kind(3, seed=1, horizon=1000)
    observe_ties(policy, 3)
    assert (policy.round, policy.lacking()) == (1, 0)
    assert (open_batch(policy) == 10 - 10 * np.eye(3)).all()
    assert policy.round == 2
    policy.observe(0, 1, 0.5, 9)
    batch = open_batch(policy)
    assert (policy.round, batch[0, 1], policy.lacking()) == (2, 1, 21)
    batch[:] = 0
    assert policy.lacking() == lacking(policy) == 21, "the returned array is a copy"


@KINDS
def test_opening_equals_proposing_without_the_draw(
    kind: type[BatchedPolicy],
) -> None:
    opened, proposed = kind(4, seed=1, horizon=1000), kind(4, seed=1, horizon=1000)
    for quota in (3, 10, 31):
        for policy in (opened, proposed):
            observe_ties(policy, quota)
        opened.open_batch()
        proposed.propose()
        mine, yours = opened.state_dict(), proposed.state_dict()
        assert mine["own"] == yours["own"]
        proposed = kind.from_state({**yours, "generator": mine["generator"]})


@KINDS
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    fought=st.lists(st.integers(0, 110), min_size=3, max_size=3),
    percent=st.integers(1, 100),
    rounds=st.integers(1, 4),
)
@example(fought=[0, 7, 8], percent=7, rounds=4)  # in float64, 0.07 times 100 exceeds 7
@example(fought=[55, 54, 56], percent=55, rounds=4)
def test_remaining_duels_until_each_pair_has_its_share(
    kind: type[BatchedPolicy], fought: list[int], percent: int, rounds: int
) -> None:
    policy = kind(3, seed=1, horizon=1000)
    *before, quota = (3, 10, 31, 100)[:rounds]
    for full in before:
        observe_ties(policy, full)
        policy.open_batch()
    for pair, times in zip(PAIRS, fought, strict=True):
        if times:
            policy.observe(*pair, 0.5, times)
    least = ceil(Fraction(percent, 100) * quota)
    assert policy.lacking(percent / 100) == sum(max(0, least - times) for times in fought)
    assert policy.lacking() == lacking(policy) == sum(max(0, quota - times) for times in fought)


@KINDS
def test_closed_batch_lacks_nothing_and_ends_at_next_opening(
    kind: type[BatchedPolicy],
) -> None:
    policy = kind(3, seed=1, horizon=1000)
    observe_ties(policy, 1)
    generator = policy.state_dict()["generator"]
    policy.close_batch()
    assert (policy.round, policy.lacking(), lacking(policy)) == (1, 0, 0)
    assert policy.lacking(0.5) == 0
    assert policy.state_dict()["generator"] == generator
    restored = kind.from_state(policy.state_dict())
    for it in (policy, restored):
        assert (open_batch(it) == 10 - 10 * np.eye(3)).all(), "late duels count from now on"
        assert it.round == 2


@KINDS
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_early_closed_rounds_end_with_last_round(kind: type[BatchedPolicy], rounds: int) -> None:
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


def test_arm_eliminated_in_last_round_is_not_winner() -> None:
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
def test_no_batch_opened_beyond_horizon(kind: type[BatchedPolicy]) -> None:
    policy = kind(3, seed=1, horizon=1000)
    observe_ties(policy, 400)
    assert policy.finished
    assert not open_batch(policy).any()
    assert policy.round == 1


def test_early_closed_round_evaluated_by_its_duels() -> None:
    """n (p - 1/2)² > ln(1/δ) / 2 = 5.94 needs 24 duels with one winner, for any quota."""
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

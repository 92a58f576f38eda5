"""RMED1 against the paper: hand-computed cases and a full recomputation at every step."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.rmed1 import RMED1
from tests.unit.policies.bed import policy_after
from tests.unit.policies.rmed_textbook import (
    Textbook,
    assert_ahead_follows_textbook,
    assert_follows_textbook,
    in_cycle,
    in_order,
    in_pass,
    opponents,
    own_state,
    step,
    unordered,
)


@pytest.mark.parametrize("f_weight", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("n_arms", "steps"), [(2, 1000), (3, 1500), (6, 1500), (10, 800)])
def test_every_step_equals_textbook(n_arms: int, steps: int, f_weight: float) -> None:
    policy = RMED1(n_arms, seed=n_arms, f_weight=f_weight)
    book = Textbook(n_arms, n_arms, f_weight)
    assert_follows_textbook(policy, book, steps, in_order, random.Random(n_arms), ties=0.1)
    expected = {"all listed", "some listed", "meets i*", "meets the strongest", "self-duels"}
    expected -= {"meets the strongest"} if n_arms == 2 else set()
    expected -= {"some listed"} if f_weight == 1 else set()  # too early for that
    assert all(book.tallies[kind] for kind in expected), book.tallies


def test_exploration_without_winner_equals_textbook() -> None:
    policy, book, rng = RMED1(3, seed=4), Textbook(3, seed=4), random.Random(3)
    late: Counter[tuple[int, int]] = Counter()
    for t in range(3000):
        [[first, second]] = policy.propose().tolist()
        assert (first, second) == next(book.steps)
        first_wins = float(rng.random() < in_cycle(first, second))
        policy.observe(first, second, first_wins)
        book.observe(first, second, first_wins)
        late[min(first, second), max(first, second)] += t > 2000
    assert all(late[pair] > 200 for pair in ((0, 1), (0, 2), (1, 2)))


@pytest.mark.parametrize("n_arms", [2, 3, 7])
def test_all_pairs_duel_once_first(n_arms: int) -> None:
    policy = RMED1(n_arms, seed=5)
    before = policy.state_dict()["generator"]
    pairs = [step(policy, first_wins=1) for _ in range(math.comb(n_arms, 2))]
    assert set(unordered(np.array(pairs)).values()) == {1}
    assert policy.state_dict()["generator"] == before, "no draws"
    assert own_state(policy)["exploring"]
    policy.propose()
    assert not own_state(policy)["exploring"]


def test_order_is_drawn_from_seed() -> None:
    first = unordered(np.concatenate([RMED1(3, seed=seed).propose() for seed in range(900)]))
    assert all(
        abs(first[pair] - 300) < 57 for pair in ((0, 1), (0, 2), (1, 2))
    )  # four standard deviations
    assert RMED1(9, seed=6).propose(36).tolist() == RMED1(9, seed=6).propose(36).tolist()


def test_arm_joins_while_divergence_within_ln_t_plus_f() -> None:
    # I_1 = I_2 = 5 ln 2 = 3.466; f(3) = 0.3 * 3^1.01 = 0.910, ln 12 = 2.485, ln 13 = 2.565.
    policy = in_pass(policy_after(RMED1(3, seed=1), (0, 1, 5, 0), (0, 2, 5, 0)), 0)
    policy.observe(1, 2, 0.5)
    assert policy.duels == 11
    assert step(policy) == [0, 0]  # duel 12
    assert policy.candidates() == 3, "the next duel is number 13"
    assert step(policy) == [0, 0], "none has joined, 0 is the only arm in its pass"
    assert own_state(policy)["waiting"] == []
    policy.propose()
    assert len(own_state(policy)["waiting"]) == 2, "all have joined"


def test_waiting_arm_joins_later_and_excluded_arm_can_return() -> None:
    policy = in_pass(policy_after(RMED1(3, seed=1), (0, 1, 1, 1), (0, 2, 1, 1), (1, 2, 1, 1)), 0, 1)
    assert step(policy)[0] == 0
    assert step(policy)[0] == 1
    assert own_state(policy)["joining"] == [0, 2], "1 was waiting, 2 was not in this pass"
    order = [policy.propose()[0, 0].item(), *reversed(own_state(policy)["waiting"])]
    assert order == policy._order.tolist()
    assert own_state(policy)["joining"] == []


@pytest.mark.parametrize(("f_weight", "expected"), [(0.0, 1), (0.29, 1), (0.31, 3), (2.0, 3)])
def test_larger_f_keeps_more_arms(f_weight: float, expected: int) -> None:
    # 5 ln 2 - ln 13 = 0.901 = 0.297 * 3^1.01.
    policy = RMED1(3, seed=1, f_weight=f_weight)
    policy_after(policy, (0, 1, 5, 0), (0, 2, 5, 0), (1, 1, 2, 0))
    assert policy.candidates() == expected


def test_negative_f_rejected() -> None:
    with pytest.raises(PolicyError, match=r"f_weight .* \(found -0\.1\); the paper requires f"):
        RMED1(3, f_weight=-0.1)
    assert RMED1(3, f_weight=0).parameters == {"f_weight": 0}


def test_candidates_are_arms_not_ruled_out() -> None:
    rng, seen = random.Random(6), Counter[int]()
    for n_arms in (2, 3, 5, 9) * 6:
        book, policy = Textbook(n_arms, seed=1, f_weight=0.1), RMED1(n_arms, f_weight=0.1)
        for _ in range(40 * n_arms):
            first, second = sorted(rng.sample(range(n_arms), k=2))
            won = float(rng.random() < 0.8)
            policy.observe(first, second, won)
            book.observe(first, second, won)
        book.t += 1  # counting the next duel as seen
        assert policy.candidates() == len(book.close())
        seen[policy.candidates()] += 1
    assert len(seen) > 3


# Wins in the first and in the second case. In both, i* = 0.
UNBEATEN = [(0, 1, 6, 2), (0, 2, 3, 3), (0, 3, 8, 0), (1, 2, 2, 6), (1, 3, 5, 1), (2, 3, 1, 5)]
BEHIND_3 = [(0, 1, 7, 1), (0, 2, 7, 1), (0, 3, 3, 4), (1, 2, 4, 4), (1, 3, 5, 2), (2, 3, 6, 1)]
TIED = [*BEHIND_3[:4], (1, 3, 6, 1), (2, 3, 6, 1)]
AHEAD = [(0, 1, 6, 2), (0, 2, 4, 3), *UNBEATEN[2:]]


@pytest.mark.parametrize(
    ("results", "arm", "expected"),
    [
        (UNBEATEN, 1, {0}),
        (UNBEATEN, 3, {0}),
        (UNBEATEN, 2, {0}),  # although 3 is further ahead: after a tie, i* may be ahead
        (UNBEATEN, 0, {2}),
        (BEHIND_3, 0, {3}),
        (BEHIND_3, 3, {2}),  # i* is behind it, and 2 is further ahead than 1
        (TIED, 3, {1, 2}),
        (AHEAD, 0, {0}),
        (AHEAD, 2, {0}),
        ([(0, 1, 1, 0)], 0, {2, 3}),
        ([(0, 1, 1, 0), (0, 2, 1, 1), (1, 2, 1, 0), (1, 3, 1, 0)], 0, {2, 3}),  # unseen: a tie
        ([(0, 1, 1, 0)], 1, {0, 2, 3}),
    ],
)
def test_opponents_follow_algorithm_2(
    results: list[tuple[int, int, int, int]], arm: int, expected: set[int]
) -> None:
    assert set(opponents(policy_after(RMED1(4, seed=1), *results), arm)) == expected


def test_equal_opponents_are_equally_likely() -> None:
    # Each of 0, 2 and 3 is i* with the same probability, and not known to be behind 1.
    policy = policy_after(RMED1(4, seed=1), (0, 1, 1, 0))
    met = opponents(policy, 1, times=450)
    assert all(abs(met[arm] - 150) < 40 for arm in (0, 2, 3))  # four standard deviations
    met = opponents(policy_after(RMED1(4, seed=1), *TIED), 3, times=400)
    assert all(abs(met[arm] - 200) < 40 for arm in (1, 2))


def test_lone_winner_duels_itself_without_random_draws() -> None:
    policy = policy_after(RMED1(4, seed=1), *((0, arm, 40, 0) for arm in (1, 2, 3)))
    policy = in_pass(policy_after(policy, (1, 2, 1, 0), (1, 3, 1, 0), (2, 3, 1, 0)), 0)
    before = policy.state_dict()["generator"]
    assert [step(policy) for _ in range(50)] == [[0, 0]] * 50
    assert policy.state_dict()["generator"] == before
    assert (policy.champion(), policy.candidates()) == (0, 1)


def test_duels_in_flight_not_proposed_again() -> None:
    policy = RMED1(5, seed=2)
    for _ in range(3):  # until they have been seen
        assert set(unordered(policy.propose(10)).values()) == {1}
    assert len(unordered(policy.propose(10))) == 10
    pairs = policy.propose(14)
    assert len(unordered(pairs[:10])) == 10
    assert pairs[10:, 0].tolist() == policy._order[:4].tolist(), "then the list goes on"


def test_lost_duels_proposed_again_before_next_pass() -> None:
    policy = RMED1(5, seed=2)
    pairs = policy.propose(14)[:8].tolist()
    for first, second in pairs:
        policy.observe(first, second, 1)
    assert policy.propose()[0, 0] == policy._order[4], "the pass goes on"
    lost = unordered(policy.propose(2))
    assert len(lost) == 2
    assert not lost.keys() & unordered(np.array(pairs)).keys()


def test_unrequested_duels_count() -> None:
    policy = policy_after(RMED1(4, seed=3), (1, 0, 1, 0), (2, 3, 0, 5))
    assert unordered(policy.propose(4)).keys() == {(0, 2), (0, 3), (1, 2), (1, 3)}
    policy_after(policy, (0, 2, 1, 0), (0, 3, 1, 0), (1, 2, 0, 1), (1, 3, 0, 1))
    policy.propose()
    assert not own_state(policy)["exploring"]


def test_winner_is_alone_until_ln_t_admits_another_arm() -> None:
    # I_1 = 8 ln 2 = 5.545 = ln 103.05 + f(3): after duel 104, arm 1 joins.
    policy = in_pass(policy_after(RMED1(3, seed=1), (0, 1, 8, 0), (0, 2, 9, 0)), 0)
    policy.observe(1, 2, 0.5)
    for most, times in ((1, 1), (2, 2), (85, 85), (86, 86), (87, 86), (10**9, 86)):
        pairs, counts = policy.propose_ahead(most)
        assert (pairs.tolist(), counts.tolist()) == ([[0, 0]], [times])
        policy = in_pass(policy, 0)
    policy.observe(0, 0, 0.5, 84)
    assert step(policy) == [0, 0], "duel 103"
    assert step(policy) == [0, 0], "duel 104"
    next_pass = {policy.propose()[0, 0].item(), *own_state(policy)["waiting"]}
    assert next_pass == {0, 1}


def test_no_self_duels_ahead_while_other_arms_are_listed() -> None:
    policy = policy_after(RMED1(3, seed=1), (0, 1, 30, 0), (0, 2, 30, 0), (1, 2, 1, 0))
    assert in_pass(policy, 0, 1).propose_ahead(100)[1].tolist() == [1]
    assert in_pass(policy, 0, joining=[2]).propose_ahead(100)[1].tolist() == [1]
    assert in_pass(policy, 0).propose_ahead(100)[1].tolist() == [100]


def test_first_duels_proposed_ahead_together() -> None:
    policy = RMED1(5, seed=1)
    assert policy.propose_ahead(4)[1].tolist() == [1] * 4
    pairs, times = RMED1(5, seed=1).propose_ahead(1000)
    assert times.tolist() == [1] * 10
    assert len(unordered(pairs)) == 10
    pairs, times = policy_after(RMED1(3, seed=1), (0, 1, 5, 0)).propose_ahead(1000)
    assert unordered(pairs) == {(0, 2): 1, (1, 2): 1}


@pytest.mark.parametrize("f_weight", [0.0, 0.3])
def test_propose_ahead_equals_textbook(f_weight: float) -> None:
    policy, book = RMED1(4, seed=8, f_weight=f_weight), Textbook(4, 8, f_weight)
    assert assert_ahead_follows_textbook(policy, book, duels=5_000) > 5


def test_batch_observe_equals_single_observes() -> None:
    rng = np.random.RandomState(3)
    together, apart = RMED1(6, seed=1), RMED1(6, seed=1)
    for length in (3, 24, 25, 300):
        first, second = rng.randint(6, size=(2, length))
        wins, count = rng.randint(3, size=length) / 2, rng.randint(1, 4, size=length)
        together.observe(first, second, wins, count)
        for duel in zip(*(part.tolist() for part in (first, second, wins, count)), strict=True):
            apart.observe(*duel)
        assert together.candidates() == apart.candidates()
        assert together.propose(40).tolist() == apart.propose(40).tolist()
        assert together.state_dict() == apart.state_dict()


@pytest.mark.parametrize(
    "damage",
    [
        {"next_pair": -1},
        {"next_pair": 3},
        {"waiting": [], "concluding": False},
        {"waiting": [0, 1], "joining": [1]},
    ],
)
def test_damaged_lists_rejected(damage: dict[str, object]) -> None:
    state = RMED1(3).state_dict()
    with pytest.raises(PolicyError, match=r"damaged|must hold.*\.$"):
        RMED1.from_state({**state, "own": {**state["own"], **damage}})

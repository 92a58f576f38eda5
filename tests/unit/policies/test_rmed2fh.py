"""RMED2FH against the paper: opponents fixed after the initial duels, and every step."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from streamduel.errors import PolicyError
from streamduel.policies.rmed2fh import RMED2FH
from tests.unit.policies import test_rmed2 as rmed2
from tests.unit.policies.bed import policy_after
from tests.unit.policies.rmed_textbook import (
    assert_ahead_follows_textbook,
    assert_follows_textbook,
    in_order,
    in_pass,
    opponents,
    own_state,
    step,
    unordered,
)


class Textbook(rmed2.Textbook):
    """Algorithms 1 and 3 as printed, recomputed at every step; draws in RMED2FH's order."""

    def __init__(self, n_arms: int, seed: int, horizon: int, alpha: float = 3.0) -> None:
        super().__init__(n_arms, seed, alpha)
        self.horizon = horizon
        self.kept: list[int | None] | None = None

    def needed(self) -> float:
        return max(1, math.ceil(self.alpha * math.log(math.log(self.horizon))))

    def exploration(self) -> Iterator[tuple[int, int]]:
        yield from super().exploration()
        if self.kept is None:
            likeliest = self.likeliest()
            self.kept = [self.cheapest(arm, likeliest) for arm in self.arms]

    def cheapest(self, arm: int, likeliest: int) -> int | None:
        prices = self.prices(arm, likeliest)
        tied = [j for j in self.arms if j in prices and prices[j] == min(prices.values())]
        return self.draw(tied) if tied else None

    def opponent(self, arm: int) -> int:
        likeliest = self.likeliest()
        assert self.kept is not None
        kept = self.kept[arm]
        if kept is None or self.mean(arm, kept) > 0.5:
            self.tallies["no b"] += 1
        elif self.suffices(arm, likeliest, kept):
            self.tallies["meets b"] += kept != likeliest
            return kept
        return self.algorithm_2(arm, likeliest)


@pytest.mark.parametrize("alpha", [0.5, 3.0])
@pytest.mark.parametrize(("n_arms", "horizon"), [(2, 600), (3, 1500), (6, 1500), (9, 1500)])
def test_every_step_equals_textbook_until_horizon_then_champion(
    n_arms: int, horizon: int, alpha: float
) -> None:
    policy = RMED2FH(n_arms, seed=n_arms, alpha=alpha, horizon=horizon)
    book = Textbook(n_arms, n_arms, horizon, alpha)
    assert_follows_textbook(policy, book, horizon, in_order, random.Random(n_arms), ties=0.1)
    assert own_state(policy)["kept"] == book.kept
    expected = ["no b", "meets b", "meets i*", "meets the strongest", "some listed"]
    assert n_arms == 2 or all(book.tallies[kind] for kind in expected), book.tallies
    champion = policy.champion()
    assert policy.propose(3).tolist() == [[champion, champion]] * 3


@pytest.mark.parametrize(
    ("horizon", "alpha", "times"),
    [(3, 3, 1), (100, 0.1, 1), (16, 3, 4), (1618, 3, 6), (1619, 3, 7), (10**9, 1, 4)],
)
def test_initial_duels_per_pair(horizon: int, alpha: float, times: int) -> None:
    policy = RMED2FH(3, seed=1, alpha=alpha, horizon=horizon)
    pairs, counts = policy.propose_ahead(10**6)
    assert counts.tolist() == [1] * (3 * times)
    assert unordered(pairs) == dict.fromkeys([(0, 1), (0, 2), (1, 2)], times)
    before = policy.state_dict()["generator"]
    for pair in pairs.tolist():
        assert step(policy) == pair
    assert policy.state_dict()["generator"] == before, "no draws"
    assert own_state(policy)["kept"] is None
    if policy.duels < horizon:
        policy.propose()
        assert own_state(policy)["kept"] is not None


def test_horizon_ends_initial_duels() -> None:
    # ⌈3 ln ln 10⌉ = 3, times 45 pairs.
    policy = RMED2FH(10, seed=1, horizon=10)
    assert policy.propose_ahead(1000)[1].tolist() == [1] * 10
    for _ in range(10):
        step(policy)
    champion = policy.champion()
    assert policy.propose().tolist() == [[champion, champion]]


# For 2, arm 1 is cheapest: i* = 0 is ahead by 1/20 and 1/10 only. For 1, only 0 is ahead.
RESULTS = [(0, 1, 11, 9), (0, 2, 12, 8), (1, 2, 18, 2)]


def fixed() -> RMED2FH:
    """A policy that has fixed its opponents."""
    policy = policy_after(RMED2FH(3, seed=1, horizon=100_000), *RESULTS)
    policy.propose()
    return policy


def test_cheapest_opponents_computed_once_and_kept() -> None:
    policy = fixed()
    assert own_state(policy)["kept"] == [None, 0, 1]
    assert set(opponents(policy, 2)) == {1}
    # After these duels, 0 is cheaper for 2, and 0 is behind 1.
    policy_after(policy, (0, 2, 900, 1), (1, 2, 501, 500), (0, 1, 40, 50))
    for _ in range(200):
        step(policy)
    assert own_state(policy)["kept"] == [None, 0, 1]
    assert own_state(policy.clone())["kept"] == [None, 0, 1]


def test_kept_opponent_no_longer_ahead_not_proposed() -> None:
    policy = policy_after(fixed(), (0, 2, 10, 10), (2, 1, 15, 0))
    assert set(opponents(policy, 2)) == {1}, "17 : 18"
    policy_after(policy, (2, 1, 1, 0))
    assert set(opponents(policy, 2)) == {1}, "18 : 18"
    policy_after(policy, (2, 1, 1, 0))
    assert set(opponents(policy, 2)) == {0}


def test_kept_opponent_waits_for_enough_duels_with_winner() -> None:
    # N_2b = 41 by now, N_2* = 20, ln ln t = 1.5 or less.
    policy = policy_after(fixed(), (1, 2, 21, 0))
    assert set(opponents(policy, 2)) == {0}
    policy_after(policy, (0, 2, 10, 10))
    assert set(opponents(policy, 2)) == {1}


def test_algorithm_2_chooses_for_arm_with_no_arm_ahead() -> None:
    policy = fixed()
    assert set(opponents(policy, 0)) == {0}
    policy_after(policy, (1, 0, 2, 0))
    assert set(opponents(policy, 0)) == {1}


def test_equally_cheap_opponents_kept_equally_often() -> None:
    results = [(0, 1, 11, 9), (0, 2, 11, 9), (0, 3, 12, 8), (1, 3, 18, 2), (2, 3, 18, 2)]
    kept: Counter[int] = Counter()
    for seed in range(400):
        policy = policy_after(RMED2FH(4, seed=seed, horizon=1000), *results, (1, 2, 5, 5))
        policy.propose()
        kept[own_state(policy)["kept"][3]] += 1
    assert set(kept) == {1, 2}
    assert abs(kept[1] - 200) < 40  # four standard deviations


def test_algorithm_2_chooses_while_initial_duels_are_missing() -> None:
    # ⌈3 ln ln 1000⌉ = 6.
    policy = RMED2FH(3, seed=1, horizon=1000)
    pairs = policy.propose(18)
    assert set(unordered(pairs).values()) == {6}
    assert unordered(policy.propose(18)) == unordered(pairs), "no outcome was observed"
    policy_after(policy, (0, 1, 3, 2), (0, 2, 3, 3), (1, 2, 6, 0))
    assert unordered(policy.propose(2))[0, 1] == 1
    assert own_state(policy)["kept"] is None
    # Arm 1 would be the cheapest for 2, with as many duels as i*.
    assert set(opponents(policy, 2)) == {0}
    policy = in_pass(policy, 2)
    assert step(policy, first_wins=0) == [2, 0]
    assert set(step(policy)) == {0, 1}, "before the next pass, the missing duel is due again"
    policy.propose()
    assert own_state(policy)["kept"] is not None


def test_late_initial_duels_count() -> None:
    policy = policy_after(RMED2FH(3, seed=1, horizon=1000), (0, 1, 30, 0), (1, 2, 4, 0))
    assert unordered(policy.propose_ahead(1000)[0]) == {(0, 2): 6, (1, 2): 2}
    assert unordered(policy.propose(8)) == {(0, 2): 6, (1, 2): 2}


def test_lone_winner_without_further_exploration() -> None:
    policy = policy_after(
        RMED2FH(3, seed=1, horizon=10**7), (0, 1, 40, 0), (0, 2, 40, 0), (1, 2, 9, 9)
    )
    policy.propose()
    # ln(10^7) < 40 ln 2 - f(3): no arm joins before the horizon.
    assert in_pass(policy, 0).propose_ahead(10**6)[1].tolist() == [10**6]


def test_propose_ahead_equals_textbook() -> None:
    policy, book = RMED2FH(4, seed=8, horizon=4_000), Textbook(4, 8, horizon=4_000)
    assert assert_ahead_follows_textbook(policy, book, duels=4_000) > 5
    champion = policy.champion()
    pairs, times = policy.propose_ahead(10**9)
    assert (pairs.tolist(), times.tolist()) == ([[champion, champion]], [10**9])


@pytest.mark.parametrize(
    "kept",
    [
        [None, 0],
        [None, 0, 1, 1],
        [None, 0, 3],
        [None, 0, 2],  # itself
    ],
)
def test_damaged_opponents_rejected(kept: object) -> None:
    state = fixed().state_dict()
    with pytest.raises(PolicyError, match=r"must keep an opponent|damaged|must hold arms"):
        RMED2FH.from_state({**state, "own": {**state["own"], "kept": kept}})


def test_restored_policy_shares_nothing_with_state() -> None:
    state = fixed().state_dict()
    policy = RMED2FH.from_state(state)
    state["own"]["kept"][2] = 0
    assert own_state(policy)["kept"] == [None, 0, 1]

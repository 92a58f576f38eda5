"""RMED2 against the paper: hand-computed opponent costs and a full recomputation per step."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.rmed2 import RMED2
from tests.unit.policies import rmed_textbook
from tests.unit.policies.bed import policy_after
from tests.unit.policies.rmed_textbook import (
    assert_ahead_follows_textbook,
    assert_follows_textbook,
    in_cycle,
    in_order,
    in_pass,
    opponents,
    unordered,
)


class Textbook(rmed_textbook.Textbook):
    """Algorithms 1 and 3 as printed, recomputed at every step; draws in RMED2's order."""

    def __init__(self, n_arms: int, seed: int, alpha: float = 3.0) -> None:
        super().__init__(n_arms, seed)
        self.alpha = alpha

    def needed(self) -> float:
        return max(1, self.alpha * math.log(math.log(self.t))) if self.t > 1 else 1

    def opponent(self, arm: int) -> int:
        likeliest = self.likeliest()
        prices = self.prices(arm, likeliest)
        if prices:
            tied = [j for j in self.arms if j in prices and prices[j] == min(prices.values())]
            cheapest = self.draw(tied)  # b(l)
            if self.suffices(arm, likeliest, cheapest):
                self.tallies["meets b"] += cheapest != likeliest
                return cheapest
        return self.algorithm_2(arm, likeliest)

    def suffices(self, arm: int, likeliest: int, cheapest: int) -> bool:
        met = self.met(arm, likeliest) if arm != likeliest else 0
        return met >= self.met(arm, cheapest) / math.log(math.log(self.t))

    def prices(self, arm: int, likeliest: int) -> dict[int, float]:
        """Equation (6) for all arms that are ahead of the arm."""
        lead = [self.mean(likeliest, j) - 0.5 for j in self.arms]
        terms = {j: self.term(arm, j) for j in self.arms}
        return {
            j: (lead[arm] + lead[j]) / (terms[j] / self.met(arm, j)) for j in terms if terms[j] > 0
        }


def after(policy: RMED2, duels: int) -> RMED2:
    """The policy after this many duels, filled up with self-duels."""
    for _ in range(duels > policy.duels):
        policy.observe(0, 0, 0.5, duels - policy.duels)
    assert policy.duels == duels
    return policy


@pytest.mark.parametrize("alpha", [0.5, 3.0])
@pytest.mark.parametrize(("n_arms", "steps"), [(2, 1000), (3, 1500), (6, 1500), (9, 1500)])
def test_every_step_equals_textbook(n_arms: int, steps: int, alpha: float) -> None:
    policy, book = RMED2(n_arms, seed=n_arms, alpha=alpha), Textbook(n_arms, n_arms, alpha)
    assert_follows_textbook(policy, book, steps, in_order, random.Random(n_arms), ties=0.1)
    expected = ["meets b", "meets i*", "meets the strongest", "some listed"]
    assert n_arms == 2 or all(book.tallies[kind] for kind in expected), book.tallies
    again = book.tallies["explored"] > math.comb(n_arms, 2)
    assert again == (alpha == 3 and n_arms > 2), "0.5 ln ln t is below 1"


def test_textbook_equality_without_winner() -> None:
    policy, book = RMED2(3, seed=4), Textbook(3, seed=4)
    assert_follows_textbook(policy, book, 1500, in_cycle, random.Random(3))


@pytest.mark.parametrize(
    ("alpha", "t", "needed"),
    [
        *((3, *case) for case in ((2, 1), (4, 1), (5, 2), (7, 2), (8, 3), (15, 3), (16, 4))),
        *((3, *case) for case in ((1618, 6), (1619, 7))),  # ln ln t = 2 at 1618.2
        *((1, *case) for case in ((15, 1), (16, 2), (1618, 2), (1619, 3))),
        *((0.1, *case) for case in ((2, 1), (10**12, 1))),
    ],
)
def test_pairs_duel_alpha_ln_ln_t_times_before_pass(alpha: float, t: int, needed: int) -> None:
    enough = after(policy_after(RMED2(2, seed=1, alpha=alpha), (0, 1, needed, 0)), t - 1)
    assert in_pass(enough, 0, exploring=True).propose().tolist() == [[0, 0]]
    short = after(RMED2(2, seed=1, alpha=alpha), t - 1)
    if needed > 1:
        short = after(policy_after(RMED2(2, seed=1, alpha=alpha), (0, 1, needed - 1, 0)), t - 1)
    assert set(unordered(in_pass(short, 0, exploring=True).propose())) == {(0, 1)}


def test_exploration_only_between_passes() -> None:
    # t = 16: 3 ln ln 16 = 3.06 duels of each pair; 0 and 1 have met once.
    policy = after(policy_after(RMED2(3, seed=1), (0, 1, 1, 0), (0, 2, 5, 0), (1, 2, 5, 0)), 15)
    policy = in_pass(policy, 0, 2)
    assert [rmed_textbook.step(policy, 1)[0] for _ in range(2)] == [0, 2]
    assert [set(rmed_textbook.step(policy, 1)) for _ in range(3)] == [{0, 1}] * 3
    assert policy.wins[0, 1] + policy.wins[1, 0] == 4
    first = policy.propose()[0, 0]
    assert first == next(arm for arm in policy._order if arm in {0, 1, 2})
    assert not rmed_textbook.own_state(policy)["exploring"]


def test_duels_in_flight_count_as_exploration() -> None:
    policy = after(policy_after(RMED2(3, seed=1), (0, 1, 1, 0), (0, 2, 1, 0), (1, 2, 2, 0)), 15)
    policy = in_pass(policy, 0, exploring=True)
    for _ in range(2):
        assert unordered(policy.propose(8)) == {(0, 1): 3, (0, 2): 3, (1, 2): 2}
    assert policy.propose(9)[8].tolist() == [0, 0], "then the list goes on"
    assert in_pass(policy, 0, exploring=True).propose_ahead(100)[1].tolist() == [1] * 8


def by_the_paper(policy: RMED2, arm: int) -> tuple[set[int], bool]:
    """The possible opponents from the counts alone, and whether they are b(l) rather than i*."""
    book = Textbook(policy.n_arms, seed=1)
    book.wins, book.t = np.array(policy.wins), policy.duels + 1
    sums, allowed, by_price = book.sums(), set[int](), False
    for likeliest in (i for i in book.arms if sums[i] == min(sums)):
        prices = book.prices(arm, likeliest)
        least = min(prices.values(), default=0.0)
        for j in {j for j in prices if prices[j] < least + 1e-9} or {likeliest}:
            if prices and book.suffices(arm, likeliest, j):
                allowed.add(j)
                by_price |= j != likeliest
            else:
                ahead = [k for k in book.arms if k != arm and book.mean(arm, k) <= 0.5]
                most = min((book.mean(arm, k) for k in ahead), default=0.0)
                strongest = {k for k in ahead if book.mean(arm, k) == most}
                allowed |= strongest if ahead and likeliest not in ahead else {likeliest}
    return allowed, by_price


def test_opponents_are_cheapest_by_equation_6() -> None:
    rng, prices = np.random.RandomState(5), Counter[bool]()
    for n_arms in (3, 4, 5, 8) * 12:
        rank = rng.permutation(n_arms)
        chances = 0.5 + 0.35 * np.sign(rank - rank[:, None]) * rng.random_sample((n_arms, n_arms))
        policy = RMED2(n_arms, seed=2)
        for first in range(n_arms):
            for second in range(first):
                met = rng.randint(1, 60)
                won = int((rng.random_sample(met) < chances[first, second]).sum())
                policy_after(policy, (first, second, won, met - won))
        for arm in range(n_arms):
            allowed, by_price = by_the_paper(policy, arm)
            assert opponents(policy, arm, times=2).keys() <= allowed
            prices[by_price] += len(allowed) == 1
    assert min(prices.values()) > 50


# i* = 0 is ahead of 1 by 1/20, of 2 by 1/10; for 2, evidence against 1 costs a tenth.
CHEAP = [(0, 1, 11, 9), (0, 2, 12, 8), (1, 2, 36, 4)]


@pytest.mark.parametrize(("t", "expected"), [(1618, {0}), (1619, {1})])
def test_winner_duelled_once_per_ln_ln_t_duels_with_cheapest(t: int, expected: set[int]) -> None:
    # N_2b = 40 and N_2* = 20, which is enough for ln ln t ≥ 2, from t = 1618.2 on.
    policy = after(policy_after(RMED2(3, seed=1), *CHEAP), t - 1)
    assert set(opponents(policy, 2)) == expected


def test_negative_costs_stay_negative() -> None:
    # i* = 0 is behind 1 and 2 by 1/100, but the others have more against them. For arm 1, costs are
    # (-0.01 - 0.01) / 0.005 = -4 against 2, and (-0.01 + 0.1) / 0.193 = 0.47 against 3.
    results = [(0, 1, 49, 51), (0, 2, 49, 51), (0, 3, 60, 40), (1, 2, 45, 55), (1, 3, 20, 80)]
    policy = policy_after(RMED2(4, seed=1), *results, (2, 3, 30, 70))
    assert set(opponents(policy, 1)) == {2}


def test_equally_cheap_opponents_are_equally_likely() -> None:
    results = [(0, 1, 11, 9), (0, 2, 11, 9), (0, 3, 12, 8), (1, 3, 18, 2), (2, 3, 18, 2)]
    policy = policy_after(RMED2(4, seed=1), *results, (1, 2, 5, 5))
    met = opponents(policy, 3, times=400)
    assert set(met) == {1, 2}
    assert abs(met[1] - 200) < 40  # four standard deviations


def test_algorithm_2_chooses_if_no_arm_is_ahead() -> None:
    policy = policy_after(RMED2(3, seed=1), (0, 1, 2, 2), (0, 2, 4, 0), (1, 2, 4, 0))
    assert set(opponents(policy, 0)) == {1}
    policy = policy_after(RMED2(3, seed=1), (0, 1, 9, 2), (0, 2, 4, 0), (1, 2, 4, 0))
    assert set(opponents(policy, 0)) == {0}


def test_cheapest_at_second_duel_and_likeliest_at_third() -> None:
    # ln ln 2 < 0; ln ln 3 = 0.09. Arms 0 and 1 are equally likely.
    policy = policy_after(RMED2(3, seed=1), (1, 2, 1, 0))
    assert set(opponents(policy, 2)) == {1}
    assert set(opponents(after(policy, 2), 2)) == {0, 1}


def test_lone_winner_duels_itself_without_random_draws() -> None:
    policy = policy_after(RMED2(3, seed=1), (0, 1, 20, 0), (0, 2, 20, 0), (1, 2, 3, 3))
    policy = in_pass(policy, 0)
    before = policy.state_dict()["generator"]
    assert [rmed_textbook.step(policy) for _ in range(50)] == [[0, 0]] * 50
    assert policy.state_dict()["generator"] == before


def test_winner_is_alone_until_ln_ln_t_requires_exploration() -> None:
    # All pairs have met six times, which is enough before duel 1619; ln 1619 < 20 ln 2 - f(3).
    policy = policy_after(RMED2(3, seed=1), (0, 1, 20, 0), (0, 2, 20, 0), (1, 2, 3, 3))
    policy = in_pass(policy, 0)
    pairs, times = policy.propose_ahead(10**9)
    assert (pairs.tolist(), times.tolist()) == ([[0, 0]], [1618 - 46])
    policy.observe(0, 0, 0.5, 1618 - 47)
    assert rmed_textbook.step(policy) == [0, 0], "duel 1618"
    assert set(unordered(policy.propose())) == {(1, 2)}


def test_propose_ahead_equals_textbook() -> None:
    policy, book = RMED2(4, seed=8, alpha=2), Textbook(4, 8, alpha=2)
    assert assert_ahead_follows_textbook(policy, book, duels=5_000) > 5


@pytest.mark.parametrize("alpha", [0, -1])
def test_nonpositive_alpha_rejected(alpha: float) -> None:
    with pytest.raises(PolicyError, match=r"policy\.alpha .* 0 \(.*; the paper requires α > 0\."):
        RMED2(3, alpha=alpha)

"""MergeRUCB against the paper: hand-computed cases and a full recomputation at every step."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest

from streamduel.policies import from_state
from streamduel.policies.base.merging_policy import merge
from streamduel.policies.merge_rucb import MergeRUCB
from tests.unit.policies.bed import Counts, policy_after


class Textbook(Counts):
    """Algorithm 1 as printed, bounds recomputed at each step; draws in MergeRUCB's order."""

    def __init__(self, n_arms: int, seed: int, *, alpha: float, size: int, constant: float) -> None:
        self.n_arms, self.alpha, self.size, self.constant = n_arms, alpha, size, constant
        super().__init__(n_arms, seed)
        self.stage, self.turn = 1, 0
        standing = self.generator.permutation(n_arms)
        order = sorted(range(n_arms), key=lambda arm: standing[arm])
        self.groups = [order[at : at + size] for at in range(0, n_arms, size)]
        if len(self.groups) > 1 and len(self.groups[-1]) < size / 2:
            last = self.groups.pop()
            self.groups[-1] += last

    def upper(self, i: int, j: int) -> float:
        played = self.wins[i, j] + self.wins[j, i]
        if i == j or not played:
            return 0.5 if i == j else 2.0
        radius = math.sqrt(self.alpha * math.log(self.t + self.constant) / played)
        return float(self.wins[i, j] / played + radius)

    def propose(self) -> tuple[int, int]:
        if len(self.groups) > 1 and sum(map(len, self.groups)) <= self.n_arms / 2**self.stage:
            self.merge()
        while len(self.groups) > 1 or len(self.groups[0]) > 1:
            if max(map(len, self.groups)) == 1:
                self.merge()
            m = self.turn % len(self.groups)
            self.turn = m + 1
            group = self.groups[m]
            self.groups[m] = [i for i in group if all(self.upper(i, j) >= 0.5 for j in group)]
            if len(self.groups[m]) > 1:
                return self.pair(self.groups[m])
        return self.groups[0][0], self.groups[0][0]

    def merge(self) -> None:
        self.groups = merge(self.groups, self.size, self.generator)
        self.stage += 1
        self.turn = 0

    def pair(self, group: list[int]) -> tuple[int, int]:
        c = self.draw(group)
        highest = max(self.upper(j, c) for j in group if j != c)
        tied = [j for j in group if j != c and self.upper(j, c) == highest]
        return c, self.draw(tied)


@pytest.mark.parametrize(
    ("n_arms", "size", "steps"), [(2, 4, 300), (6, 4, 2_000), (21, 4, 6_000), (40, 7, 9_000)]
)
def test_every_step_equals_textbook(n_arms: int, size: int, steps: int) -> None:
    policy = MergeRUCB(n_arms, seed=n_arms, alpha=0.5, partition=size, constant=50)
    book = Textbook(n_arms, seed=n_arms, alpha=0.5, size=size, constant=50)
    rng, left = random.Random(n_arms), set()
    for _ in range(steps):
        [[first, second]] = policy.propose().tolist()
        assert (first, second) == book.propose()
        edge = 0.3 * ((second > first) - (second < first))
        first_wins = float(rng.random() < 0.5 + edge)
        first_wins = 0.5 if rng.random() < 0.1 else first_wins
        policy.observe(first, second, first_wins)
        book.observe(first, second, first_wins)
        assert policy.candidates() == sum(map(len, book.groups))
        left.add(policy.candidates())
        if rng.random() < 0.01:
            policy = MergeRUCB.from_state(policy.state_dict())
    assert policy.wins.tolist() == book.wins.tolist()
    assert left >= {1, n_arms}, "from the first group to the last arm"


def of_one_group(*results: tuple[int, int, int, int]) -> MergeRUCB:
    """Four arms after some duels; α ln(t + C) is 1."""
    return policy_after(MergeRUCB(4, seed=1, alpha=1 / math.log(1e12), constant=1e12), *results)


def test_champion_uniform_and_challenger_of_largest_bound() -> None:
    # u_10 = u_20 = 1/2 + sqrt(1/4) = 1, u_30 = 1/4 + 1/2; of the others all are 1/2 + sqrt(1/16).
    policy = of_one_group(
        (0, 1, 2, 2), (0, 2, 2, 2), (0, 3, 3, 1), (1, 2, 8, 8), (1, 3, 8, 8), (2, 3, 8, 8)
    )
    pairs = Counter(tuple(policy.propose()[0].tolist()) for _ in range(4_000))
    # c = 1: u_01 = 1; c = 2: u_02 = 1; c = 3: u_03 = 3/4 + 1/2.
    assert set(pairs) == {(0, 1), (0, 2), (1, 0), (2, 0), (3, 0)}
    for pair, expected in {(0, 1): 500, (0, 2): 500, (1, 0): 1_000, (3, 0): 1_000}.items():
        assert abs(pairs[pair] - expected) < 4 * (expected * (1 - expected / 4_000)) ** 0.5


def test_unseen_pair_has_bound_of_two() -> None:
    # u_10 = 1 + sqrt(1/2), u_30 = 1/2 + sqrt(1/2).
    policy = of_one_group((0, 1, 0, 2), (0, 3, 1, 1))
    assert {second for first, second in draws(policy) if first == 0} == {2}
    # With 4 in the place of 1, u_10 = 1 + sqrt(4/2).
    policy = policy_after(
        MergeRUCB(4, seed=1, alpha=4 / math.log(1e12), constant=1e12), (0, 1, 0, 2)
    )
    assert {second for first, second in draws(policy) if first == 0} == {1}


def draws(policy: MergeRUCB) -> list[tuple[int, int]]:
    return [(int(first), int(second)) for first, second in (policy.propose()[0] for _ in range(60))]


def test_duels_in_flight_narrow_bounds() -> None:
    policy = of_one_group(
        (0, 1, 8, 8), (0, 2, 7, 7), (0, 3, 6, 6), (1, 2, 8, 8), (1, 3, 8, 8), (2, 3, 8, 8)
    )
    before = policy.state_dict()["own"]
    pairs = np.sort(policy.propose(120), axis=1).tolist()
    times = Counter(map(tuple, pairs))
    played = {pair: times[pair] + policy.wins[pair] + policy.wins[pair[::-1]] for pair in times}
    assert len(played) == 6
    assert max(played.values()) - min(played.values()) <= 16, "all of them about 34"
    assert not policy._in_flight
    assert not policy._group_in_flight
    assert policy.state_dict()["own"]["groups"] == before["groups"], "nothing is concluded"


def test_proposals_spread_over_unseen_pairs() -> None:
    pairs = np.sort(MergeRUCB(4, seed=3).propose(60), axis=1).tolist()
    times = Counter(map(tuple, pairs))
    assert len(times) == 6
    assert max(times.values()) <= 16


def test_conclusions_independent_of_earlier_proposals() -> None:
    # At the last proposal's step the bounds would be wider, and no arm would be eliminated.
    policy = MergeRUCB(4, seed=2, alpha=0.5, constant=1)
    policy.observe(0, 1, 1, 9)  # at t = 10, 0.5 ln 11 / 9 is below 1/4, at t = 90, it is not
    policy.observe(2, 3, 1, 1)
    twin = from_state(policy.state_dict())
    policy.propose(1_000)
    twin.propose()
    assert policy.candidates() == twin.candidates() == 3

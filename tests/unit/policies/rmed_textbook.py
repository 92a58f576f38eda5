"""Shared by the RMED tests: the algorithms as printed, and policies in a given state."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from streamduel.policies.base.generator import Generator
from streamduel.policies.rmed1 import RMED1
from tests.unit.policies.bed import Counts, with_own

RMED = TypeVar("RMED", bound=RMED1)


class Textbook(Counts):
    """Algorithms 1 and 2 as printed, recomputed at every step; draws in RMED1's order."""

    def __init__(self, n_arms: int, seed: int, f_weight: float = 0.3) -> None:
        self.arms = range(n_arms)
        super().__init__(n_arms, seed)
        standing = self.generator.permutation(n_arms)
        self.order = sorted(self.arms, key=standing.__getitem__)
        self.slack = f_weight * n_arms**1.01
        self.turns = itertools.cycle(itertools.combinations(self.order, 2))
        self.tallies: Counter[str] = Counter()
        self.steps = self.algorithm_1()

    def algorithm_1(self) -> Iterator[tuple[int, int]]:
        listed = self.order  # L_C
        while True:
            yield from self.exploration()
            waiting, joining = set(listed), set[int]()  # L_R and L_N
            self.tallies["all listed" if len(listed) == len(self.arms) else "some listed"] += 1
            for arm in listed:
                yield arm, self.opponent(arm)
                waiting.remove(arm)
                joining |= {j for j in self.close() if j not in waiting}
            listed = [arm for arm in self.order if arm in joining]

    def exploration(self) -> Iterator[tuple[int, int]]:
        while (pair := self.due()) is not None:
            self.tallies["explored"] += 1
            yield pair

    def due(self) -> tuple[int, int] | None:
        for _ in range(math.comb(len(self.arms), 2)):
            pair = next(self.turns)
            if self.met(*pair) < self.needed():
                return pair
        return None

    def needed(self) -> float:
        return 1

    def close(self) -> list[int]:
        """The arms j for which J_j(t) is true; t is the step of the latest duel."""
        sums = self.sums()
        return [
            j
            for j in self.arms
            if (sums[j] - min(sums)) / 2**40 <= math.log(self.t - 1) + self.slack
        ]

    def sums(self) -> list[int]:
        """I_i(t), terms truncated to multiples of 2**-40: equal sums compare equal."""
        return [sum(int(self.term(i, j) * 2**40) for j in self.arms) for i in self.arms]

    def term(self, i: int, j: int) -> float:
        """n_ij d⁺(μ_ij, 1/2)."""
        won, lost = self.wins.item(i, j), self.wins.item(j, i)
        if won >= lost:
            return 0.0
        evidence = lost * math.log(2 * lost / (won + lost))
        return evidence + (won * math.log(2 * won / (won + lost)) if won else 0.0)

    def opponent(self, arm: int) -> int:
        return self.algorithm_2(arm, self.likeliest())

    def likeliest(self) -> int:
        """i*(t)."""
        sums = self.sums()
        return self.draw([i for i in self.arms if sums[i] == min(sums)])

    def algorithm_2(self, arm: int, likeliest: int) -> int:
        ahead = [j for j in self.arms if j != arm and self.mean(arm, j) <= 0.5]  # O
        if likeliest in ahead or not ahead:
            self.tallies["meets i*"] += 1
            return likeliest
        self.tallies["meets the strongest"] += 1
        least = min(self.mean(arm, j) for j in ahead)
        return self.draw([j for j in ahead if self.mean(arm, j) == least])

    def mean(self, i: int, j: int) -> float:
        return self.wins.item(i, j) / self.met(i, j) if self.met(i, j) else 0.5

    def met(self, i: int, j: int) -> float:
        return self.wins.item(i, j) + self.wins.item(j, i)


def own_state(policy: RMED1) -> dict[str, Any]:
    """The policy's own state: its arm lists."""
    lists: dict[str, Any] = policy.state_dict()["own"]
    return lists


def in_pass(policy: RMED, *arms: int, **others: object) -> RMED:
    """The policy within a pass, with these arms waiting."""
    lists = {"exploring": False, "waiting": [*reversed(arms)], "joining": [], "concluding": False}
    return with_own(policy, **{**lists, **others})


def step(policy: RMED1, first_wins: float = 0.5) -> list[int]:
    """Propose the next duel, observe its outcome and return the pair."""
    pair: list[int] = policy.propose()[0].tolist()
    policy.observe(pair[0], pair[1], first_wins)
    return pair


def opponents(policy: RMED1, arm: int, times: int = 30) -> Counter[int]:
    """Count the opponents proposed for the arm."""
    rng, met = random.Random(1), Counter[int]()
    state = in_pass(policy, arm).state_dict()
    for _ in range(times):
        state["generator"] = Generator(rng.getrandbits(60)).state_dict()
        [[first, second]] = type(policy).from_state(state).propose().tolist()
        assert first == arm
        met[second] += 1
    return met


def in_order(first: int, second: int) -> float:
    """Win probability: the lower arm is better by a small gap."""
    return 0.5 + 0.1 * ((second > first) - (second < first)) + 0.02 * (second - first)


def in_cycle(first: int, second: int) -> float:
    return (0.5, 0.8, 0.2)[(second - first) % 3]


def unordered(pairs: Any) -> Counter[tuple[int, int]]:
    """Count each unordered pair."""
    return Counter((min(pair), max(pair)) for pair in pairs.tolist())


def assert_follows_textbook(
    policy: RMED1,
    book: Textbook,
    duels: int,
    chance: Callable[[int, int], float],
    luck: random.Random,
    ties: float = 0.0,
) -> None:
    """Assert that each proposal is that of the textbook, random draws included."""
    for _ in range(duels):
        [[first, second]] = policy.propose().tolist()
        assert (first, second) == next(book.steps)
        first_wins = float(luck.random() < chance(first, second))
        if ties and luck.random() < ties:
            first_wins = 0.5
        policy.observe(first, second, first_wins)
        book.observe(first, second, first_wins)
        book.tallies["self-duels"] += first == second
    assert policy.state_dict()["generator"] == book.generator.state_dict()


def assert_ahead_follows_textbook(policy: RMED1, book: Textbook, duels: int) -> int:
    """Assert that `propose_ahead` follows the textbook, random draws included.

    Returns:
        How often several self-duels were proposed at once.
    """
    rng, leaps = random.Random(8), 0
    while book.t <= duels:
        pairs, times = policy.propose_ahead(duels + 1 - book.t)
        wins = [float(rng.random() < 0.5 + 0.1 * (j - i)) for i, j in pairs.tolist()]
        for pair, often, won in zip(pairs.tolist(), times.tolist(), wins, strict=True):
            for _ in range(often):
                assert tuple(pair) == next(book.steps)
                book.observe(pair[0], pair[1], won)
            leaps += often > 1
        policy.observe(pairs[:, 0], pairs[:, 1], wins, times)
    assert policy.state_dict()["generator"] == book.generator.state_dict()
    return leaps

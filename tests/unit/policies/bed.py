"""What the tests of several policies share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TypeVar

import numpy as np

from streamduel.policies import Policy
from streamduel.policies.base.generator import Generator

Kind = TypeVar("Kind", bound=Policy)

FEW = np.array(
    [
        [0, 6, 9, 4, 0],
        [5, 0, 3, 7, 2],
        [4, 6, 0, 2, 8],
        [8, 3, 5, 0, 5],
        [0, 5, 4, 6, 0],
    ],
    dtype=float,
)
"""Wins of the row over the column. Few duels per pair, one unseen: one random word per pair."""


def policy_after(policy: Kind, *results: tuple[int, int, int, int]) -> Kind:
    """The policy after `(first, second, wins of first, wins of second)`."""
    for first, second, won, lost in results:
        for first_wins, count in ((1, won), (0, lost)):
            if count:
                policy.observe(first, second, first_wins, count)
    return policy


def with_own(policy: Kind, **own: object) -> Kind:
    """The policy with other values in the part of its state that is its own."""
    state = policy.state_dict()
    return type(policy).from_state({**state, "own": {**state["own"], **own}})


class Counts:
    """What every textbook implementation keeps: counts, the number of the next duel, and luck."""

    def __init__(self, n_arms: int, seed: int) -> None:
        self.wins = np.zeros((n_arms, n_arms))
        self.t = 1
        self.generator = Generator(seed)

    def draw(self, arms: list[int]) -> int:
        return arms[self.generator.below(len(arms))]

    def observe(self, first: int, second: int, first_wins: float) -> None:
        self.t += 1
        if first != second:
            self.wins[first, second] += first_wins
            self.wins[second, first] += 1 - first_wins


class Bounds(Counts, ABC):
    """Upper bounds of a textbook implementation, recomputed at every step.

    Attributes:
        in_flight: the number of duels of each pair that were proposed and not observed.
    """

    def __init__(self, n_arms: int, seed: int, alpha: float) -> None:
        super().__init__(n_arms, seed)
        self.arms, self.alpha = range(n_arms), alpha
        self.in_flight = np.zeros((n_arms, n_arms))
        self.standing = self.generator.permutation(n_arms)

    def upper_of(self, i: int, j: int) -> float:
        if i == j:
            return 0.5
        played = self.wins[i, j] + self.wins[j, i]
        trials = played + self.in_flight[i, j]
        mean = self.wins[i, j] / played if played else 1.0
        return mean + (math.sqrt(self.alpha * math.log(self.t) / trials) if trials else 1.0)

    @abstractmethod
    def choose(self) -> tuple[int, int]:
        """The pair of the next duel."""

    def propose(self, n: int) -> list[list[int]]:
        pairs = []
        for _ in range(n):
            c, d = self.choose()
            pairs.append([c, d])
            self.in_flight[c, d] += 1
            self.in_flight[d, c] += 1
            self.t += 1
        self.in_flight[:] = 0
        self.t -= n
        return pairs

"""SAVAGE against the paper: every step, and hand-computed conclusions from many duels."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any, TypeVar

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies import Policy
from streamduel.policies.savage import CondorcetSavage, CopelandSavage
from tests.unit.policies import bed

Savage = TypeVar("Savage", bound=Policy)


def policy_after(policy: Savage, *results: tuple[int, int, int, int]) -> Savage:
    """The policy after `(first, second, wins of first, wins of second)` and a proposal."""
    bed.policy_after(policy, *results).propose()
    return policy


def next_pairs(policy: Policy, times: int = 60) -> set[tuple[int, int]]:
    """Proposed pairs, without outcomes."""
    return {(min(pair), max(pair)) for pair in policy.propose(times).tolist()}


class Textbook:
    """Algorithm 1 with its tests as printed, recomputed after every duel."""

    def __init__(self, n_arms: int, horizon: int, *, copeland: bool) -> None:
        self.n_arms, self.copeland = n_arms, copeland
        n_pairs = n_arms * (n_arms - 1) // 2
        self.width = math.log(2 * n_pairs * horizon * horizon)
        self.wins = np.zeros((n_arms, n_arms))
        self.pairs = {(i, j) for j in range(n_arms) for i in range(j)}
        self.out: set[int] = set()

    def beats(self, i: int, j: int) -> bool:
        """1/2 is below the interval of p_ij."""
        played = self.wins[i, j] + self.wins[j, i]
        if i == j or not played:
            return False
        radius = math.sqrt(self.width / (2 * played))
        return bool(self.wins[i, j] / played - radius > 0.5)

    def least_played(self) -> set[tuple[int, int]]:
        times = {(i, j): self.wins[i, j] + self.wins[j, i] for i, j in self.pairs}
        return {pair for pair in times if times[pair] == min(times.values())}

    def observe(self, first: int, second: int, first_wins: float) -> None:
        self.wins[first, second] += first_wins
        self.wins[second, first] += 1 - first_wins
        arms = range(self.n_arms)
        least = [sum(self.beats(i, j) for j in arms) for i in arms]
        most = [self.n_arms - 1 - sum(self.beats(j, i) for j in arms) for i in arms]
        if self.copeland:
            self.best = {i for i in arms if least[i] == max(least)}
            self.pairs = {
                (i, j)
                for i, j in self.pairs
                if not self.beats(i, j)
                and not self.beats(j, i)
                and max(most[i], most[j]) > max(least)
            }
        else:
            self.best = {i for i in arms if most[i] == self.n_arms - 1}
            self.pairs = {(i, j) for i, j in self.pairs if {i, j} <= self.best}


@pytest.mark.parametrize("copeland", [False, True])
@pytest.mark.parametrize(("n_arms", "edge"), [(2, 0.05), (3, 0.1), (5, 0.1), (7, 0.15), (6, -0.2)])
def test_every_step_possible_in_textbook(n_arms: int, edge: float, copeland: bool) -> None:
    horizon, rng = 20_000, random.Random(n_arms)
    book = Textbook(n_arms, horizon, copeland=copeland)
    policy = (CopelandSavage if copeland else CondorcetSavage)(n_arms, seed=n_arms, horizon=horizon)
    for t in range(1, horizon):
        first, second = policy.propose()[0].tolist()
        if not book.pairs:
            assert first == second
            assert first in book.best
            assert policy.champion() == first
            assert policy.candidates() == 1
            assert t > 50
            break
        assert (first, second) in book.least_played()
        if edge > 0:
            gap = edge * (second - first)
        else:  # a cycle: each arm beats the next few
            gap = edge if (second - first) % n_arms > n_arms // 2 else -edge
        first_wins = float(rng.random() < 0.5 + gap)
        policy.observe(first, second, first_wins)
        book.observe(first, second, first_wins)
    else:
        assert edge < 0, "exploration should have ended"


def test_radius_equals_paper() -> None:
    # All duels won: (1/2)² > ln(2 * 100 * 100) / 2n when n > 19.8.
    policy = CondorcetSavage(2, seed=1, horizon=100)
    for _ in range(20):
        assert policy.propose().tolist() == [[0, 1]]
        policy.observe(0, 1, 0)
    assert policy.candidates() == 2, "concluded on propose"
    assert policy.propose(3).tolist() == [[1, 1]] * 3
    assert policy.candidates() == 1


@pytest.mark.parametrize("horizon", [4_500_000, 10**12, 2**51])
def test_radius_does_not_overflow(horizon: int) -> None:
    policy = CondorcetSavage(64, horizon=horizon)
    assert policy._width == pytest.approx(math.log(64 * 63) + 2 * math.log(horizon), rel=1e-14)


def test_pairs_of_eliminated_arm_dropped() -> None:
    policy = policy_after(CondorcetSavage(4, seed=1, horizon=100), (0, 3, 30, 0), (1, 2, 5, 0))
    assert policy.candidates() == 3
    assert next_pairs(policy) == {(0, 1), (0, 2), (1, 2)}
    policy_after(policy, (3, 0, 1000, 0))
    assert policy.candidates() == 3, "for good"


def test_surely_losing_arms_eliminated_together() -> None:
    policy = policy_after(CondorcetSavage(4, horizon=200), (0, 1, 30, 0), (1, 2, 30, 0))
    assert policy.candidates() == 2
    assert next_pairs(policy) == {(0, 3)}


def test_arm_beating_most_kept_if_all_lost() -> None:
    cycle = [(0, 1, 30, 0), (1, 2, 30, 0), (2, 3, 30, 0), (3, 0, 30, 0), (2, 0, 3, 1)]
    policy = policy_after(CondorcetSavage(4, seed=1, horizon=200), *cycle)
    assert policy.candidates() == 1
    assert policy.propose().tolist() == [[2, 2]]
    winners = {
        policy_after(CondorcetSavage(4, seed=seed, horizon=200), *cycle[:4]).champion()
        for seed in range(40)
    }
    assert winners == {0, 1, 2, 3}


def test_unrequested_duels_count() -> None:
    policy = policy_after(CondorcetSavage(3, seed=1, horizon=1000), (0, 1, 3, 3), (0, 2, 3, 2))
    assert next_pairs(policy, 5) == {(1, 2)}
    assert next_pairs(policy, 6) == {(1, 2), (0, 2)}


def test_copeland_settled_pairs_not_compared() -> None:
    policy = policy_after(CopelandSavage(4, seed=1, horizon=300), (0, 1, 30, 0), (2, 3, 30, 0))
    assert policy.candidates() == 4
    assert next_pairs(policy) == {(0, 2), (0, 3), (1, 2), (1, 3)}
    policy_after(policy, (1, 0, 60, 0))
    assert next_pairs(policy, 8) == {(0, 2), (0, 3), (1, 2), (1, 3)}, "a settled pair stays so"


def test_copeland_arm_that_can_only_tie_not_explored() -> None:
    policy = CopelandSavage(4, seed=1, horizon=200)
    policy_after(policy, (0, 1, 30, 0), (0, 2, 30, 0), (3, 0, 30, 0))
    # 0 beats two, 1 and 2 at most two; 3 may beat three.
    assert policy.candidates() == 4
    assert next_pairs(policy) == {(1, 3), (2, 3)}
    policy_after(policy, (1, 3, 30, 0))
    assert policy.propose().tolist() == [[0, 0]]
    assert (policy.champion(), policy.candidates()) == (0, 1)


def test_copeland_condorcet_winner_needs_only_its_pairs() -> None:
    policy = policy_after(
        CopelandSavage(4, horizon=200), (2, 0, 30, 0), (2, 1, 30, 0), (2, 3, 30, 0)
    )
    assert policy.propose().tolist() == [[2, 2]]


def test_copeland_tie_drawn_once() -> None:
    cycle = [(0, 1, 40, 0), (1, 2, 40, 0), (2, 0, 40, 0)]
    served: Counter[int] = Counter()
    for seed in range(300):
        policy = policy_after(CopelandSavage(3, seed=seed, horizon=1000), *cycle)
        best = policy.champion()
        assert policy.propose(5).tolist() == [[best, best]] * 5
        policy_after(policy, (0, 1, 0, 90))
        assert policy.clone().champion() == policy.champion() == best
        served[best] += 1
    assert all(abs(served[arm] - 100) < 41 for arm in range(3))  # five standard deviations


@pytest.mark.parametrize("kind", [CondorcetSavage, CopelandSavage])
def test_long_runs_proposed_ahead(kind: type[Policy]) -> None:
    policy = kind(6, seed=1, horizon=100_000)
    # No arm can be out before 2 ln(30 T²) = 52.8 duels of a pair.
    pairs, times = policy.propose_ahead(10**6)
    assert 52 * 15 < times.sum() <= 53 * 15
    assert set(np.bincount(pairs[:, 0] * 6 + pairs[:, 1]).tolist()) <= {0, 52, 53}


DAMAGES: dict[type[Policy], list[tuple[str, Any]]] = {
    CondorcetSavage: [("turns", {"order": [], "level": -1}), ("active", [])],
    CopelandSavage: [
        ("turns", {"order": [7, 7], "level": 0}),
        ("best", 0),
        ("settled", [[1]] * 2),
        ("settled", [[1], [0], []]),
        ("settled", [[0], [], []]),
        ("settled", [[1, 2], [], []]),  # that leaves no pair, and no best
    ],
}


@pytest.mark.parametrize(
    ("kind", "key", "value"), [(kind, *damage) for kind in DAMAGES for damage in DAMAGES[kind]]
)
def test_damaged_states_rejected(kind: type[Policy], key: str, value: Any) -> None:
    state = policy_after(kind(3, horizon=1000), (0, 1, 3, 0)).state_dict()
    with pytest.raises(PolicyError):
        kind.from_state({**state, "own": {**state["own"], key: value}})

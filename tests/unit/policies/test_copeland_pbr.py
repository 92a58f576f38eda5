"""Copeland PBR against the paper: every round, and hand-computed effects of late duels."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.copeland_pbr import CopelandPBR
from tests.unit.policies.bed import policy_after, with_own

Chance = Callable[[int, int, int], float]
Pair = tuple[int, int]


def with_ties(policy: CopelandPBR, times: int, *, but: set[tuple[int, int]]) -> CopelandPBR:
    """The policy after this many ties of each pair not in `but` and a proposal."""
    for first in range(policy.n_arms):
        for second in range(first + 1, policy.n_arms):
            if (first, second) not in but:
                policy.observe(first, second, 0.5, times)
    policy.propose()
    return policy


def play(policy: CopelandPBR, wins: Mapping[tuple[int, int], float] | None = None) -> Pair:
    """Play the next pair: a tie, unless `wins` contains the win of the first arm."""
    [[first, second]] = policy.propose().tolist()
    policy.observe(first, second, (wins or {}).get((first, second), 0.5))
    return first, second


def next_round(policy: CopelandPBR) -> set[tuple[int, int]]:
    """Proposals without outcomes: the active pairs, if all have equally many duels."""
    return {(min(pair), max(pair)) for pair in policy.propose(40).tolist()}


def in_order(n_arms: int, first: int, second: int) -> float:
    return 0.5 + 0.12 * (second - first) if abs(second - first) < 4 else float(second > first)


def in_cycle(n_arms: int, first: int, second: int) -> float:
    """Each arm beats the next `n_arms // 2` arms."""
    return 0.5 if first == second else 0.8 if (second - first) % n_arms <= n_arms // 2 else 0.2


# 0 and 1 beat two others each, 2 and 3 one.
CYCLE = np.array(
    [[0.5, 0.8, 0.2, 0.8], [0.2, 0.5, 0.8, 0.8], [0.8, 0.2, 0.5, 0.2], [0.2, 0.2, 0.8, 0.5]]
)


class Textbook:
    """Algorithm 1 for the best arm by Copeland ranking, recomputed after each round."""

    def __init__(self, n_arms: int, horizon: int) -> None:
        self.arms, self.horizon = range(n_arms), horizon
        self.wins = np.zeros((n_arms, n_arms))
        self.active = {(i, j) for j in self.arms for i in range(j)}
        self.selected: set[int] = set()
        self.discarded: set[int] = set()
        self.left = set(self.active)  # of this round

    def beats(self, i: int, j: int) -> bool:
        """1/2 is below the interval of p_ij."""
        n = self.wins[i, j] + self.wins[j, i]
        delta = 1 / self.horizon
        radius = math.sqrt(math.log(2 * len(self.arms) ** 2 * self.horizon / delta) / (2 * n))
        return bool(self.wins[i, j] / n - radius > 0.5)

    def observe(self, first: int, second: int, first_wins: float) -> None:
        self.wins[first, second] += first_wins
        self.wins[second, first] += 1 - first_wins
        self.left.remove((min(first, second), max(first, second)))
        if not self.left:
            self.conclude()
            self.left = set(self.active)

    def conclude(self) -> None:
        arms = self.arms
        beats = {(i, j) for i in arms for j in arms if i != j and self.beats(i, j)}
        least = [sum((i, j) in beats for j in arms) for i in arms]
        most = [len(arms) - 1 - sum((j, i) in beats for j in arms) for i in arms]
        for i in arms:
            if sum(least[i] > most[j] for j in arms) == len(arms) - 1:
                self.selected.add(i)
            if any(least[j] > most[i] for j in arms):
                self.discarded.add(i)
        settled = self.selected | self.discarded
        self.active = {
            (i, j) for i, j in self.active if not {(i, j), (j, i)} & beats and not {i, j} <= settled
        }
        self.best = {i for i in arms if least[i] == max(least)}
        self.candidates = sum(most[i] >= max(least) for i in arms)


@pytest.mark.parametrize("chance", [in_order, in_cycle])
@pytest.mark.parametrize("n_arms", [2, 3, 5, 6])
def test_every_round_equals_textbook(n_arms: int, chance: Chance) -> None:
    horizon, rng = 20_000, random.Random(n_arms)
    book, policy = Textbook(n_arms, horizon), CopelandPBR(n_arms, seed=n_arms, horizon=horizon)
    while book.active:
        first, second = policy.propose()[0].tolist()
        assert (min(first, second), max(first, second)) in book.left
        first_wins = float(rng.random() < chance(n_arms, first, second))
        policy.observe(first, second, first_wins)
        book.observe(first, second, first_wins)
        if book.active and book.left == book.active:
            assert policy.candidates() == book.candidates
    assert 50 < policy.duels < horizon
    [[first, second]] = policy.propose().tolist()
    assert first == second == policy.champion()
    assert first in book.best
    assert policy.candidates() == 1


@pytest.mark.parametrize("seed", range(8))
def test_race_ends_with_copeland_winner(seed: int) -> None:
    policy, rng = CopelandPBR(4, seed=seed, horizon=10_000), random.Random(seed)
    while policy.candidates() > 1 or policy.propose_ahead(10**6)[1].item(0) == 1:
        pairs, _ = policy.propose_ahead(10_000)
        wins = [float(rng.random() < CYCLE[i, j]) for i, j in pairs.tolist()]
        policy.observe(pairs[:, 0], pairs[:, 1], wins)
    assert policy.champion() in {0, 1}
    assert 300 < policy.duels < 3_000


def test_description_names_copeland_winner_and_horizon() -> None:
    assert CopelandPBR.seeks == "copeland"
    assert "looks for the arm that beats the most" in CopelandPBR.traits()
    assert "needs a horizon" in CopelandPBR.traits()


def test_radius_equals_paper() -> None:
    # All duels won: n > 2 ln(2 * 2² * 100 * 100) = 22.58.
    policy = CopelandPBR(2, seed=1, horizon=100)
    for _ in range(23):
        assert policy.propose().tolist() == [[0, 1]]
        policy.observe(0, 1, 0)
    assert policy.propose(3).tolist() == [[1, 1]] * 3
    assert (policy.champion(), policy.candidates()) == (1, 1)


@pytest.mark.parametrize("horizon", [4_500_000, 10**12, 2**51])
def test_radius_does_not_overflow(horizon: int) -> None:
    policy = CopelandPBR(64, horizon=horizon)
    expected = math.log(2 * 64 * 64) + 2 * math.log(horizon)
    assert policy._width == pytest.approx(expected, rel=1e-14)


def test_each_active_pair_duels_once_per_round() -> None:
    policy = CopelandPBR(5, seed=3, horizon=10_000)
    orders = [tuple(play(policy) for _ in range(10)) for _ in range(6)]
    assert all(len(set(order)) == 10 for order in orders)
    assert len(set(orders)) == 6, "in random order"


def test_first_pair_of_round_is_uniform() -> None:
    first = Counter(
        tuple(CopelandPBR(3, seed=seed, horizon=100).propose()[0].tolist()) for seed in range(900)
    )
    assert all(abs(first[pair] - 300) < 57 for pair in ((0, 1), (0, 2), (1, 2)))  # four deviations


def test_decided_pair_becomes_inactive_at_end_of_round() -> None:
    # 2 ln(2 * 16 * 10^6) = 34.6 duels, all won, decide. Other pairs have 40 duels too.
    policy = with_ties(
        policy_after(CopelandPBR(4, seed=1, horizon=1000), (0, 1, 40, 0)), 40, but={(0, 1)}
    )
    active = {(i, j) for j in range(4) for i in range(j)} - {(0, 1)}
    assert next_round(policy) == active
    first = play(policy)
    ahead = min(active - {first})  # of its rounds, and decided
    policy_after(policy, (*ahead, 200, 0))
    assert {play(policy) for _ in range(3)} == active - {first, ahead}
    assert policy.state_dict()["own"]["active"] == sorted(4 * i + j for i, j in active)
    assert next_round(policy) == active - {ahead}


def test_rest_of_round_kept_when_pair_is_decided() -> None:
    # ln(2 * 9 * 10^6) = 16.71; 35² < 2 * 37 * 16.71, and 36² > 2 * 38 * 16.71.
    for seed in range(6):
        policy = policy_after(CopelandPBR(3, seed=seed, horizon=1000), (0, 1, 36, 1))
        with_ties(policy, 37, but={(0, 1)})
        assert len({play(policy, {(0, 1): 1.0}) for _ in range(3)}) == 3
        assert next_round(policy) == {(0, 2), (1, 2)}


def test_pair_of_two_settled_arms_not_compared() -> None:
    # 0 beats 1 and 2 for certain, so 1 and 2 beat at most two; 3 beats them: at most one.
    results = [(0, 1, 60, 0), (0, 2, 60, 0), (3, 1, 60, 0), (3, 2, 60, 0)]
    policy = policy_after(CopelandPBR(4, seed=1, horizon=1000), *results)
    with_ties(policy, 60, but={(0, 1), (0, 2), (1, 3), (2, 3)})
    assert next_round(policy) == {(0, 3)}, "1 : 2 is undecided, but irrelevant"
    assert policy.candidates() == 2


def test_pair_with_one_settled_arm_compared() -> None:
    # 0 beats two, 1 at most one: 1 is settled, and 2, which beats one and at most two, is not.
    results = [(0, 1, 60, 0), (0, 3, 60, 0), (2, 1, 60, 0)]
    policy = policy_after(CopelandPBR(4, seed=1, horizon=1000), *results)
    with_ties(policy, 60, but={(0, 1), (0, 3), (1, 2)})
    assert policy.candidates() == 3
    assert next_round(policy) == {(0, 2), (1, 3), (2, 3)}


def test_surely_best_arm_ends_race() -> None:
    results = [(2, 0, 60, 0), (2, 1, 60, 0), (2, 3, 60, 0)]
    policy = policy_after(CopelandPBR(4, seed=1, horizon=1000), *results)
    with_ties(policy, 60, but={(0, 2), (1, 2), (2, 3)})
    assert policy.propose(3).tolist() == [[2, 2]] * 3


def test_surely_best_arm_not_compared_with_all_others() -> None:
    # 0 beats three; each other one loses to two, and beats at most two. 0 : 4 and 3 : 4 are open.
    pairs = {(0, 1), (0, 2), (0, 3), (1, 2), (2, 3), (3, 1), (1, 4), (2, 4)}
    policy = policy_after(CopelandPBR(5, seed=1, horizon=1000), *((*pair, 60, 0) for pair in pairs))
    with_ties(policy, 60, but=pairs | {(1, 3)})
    assert policy.propose().tolist() == [[0, 0]]


def test_copeland_tie_drawn_once() -> None:
    cycle = [(0, 1, 60, 0), (1, 2, 60, 0), (2, 0, 60, 0)]
    served: Counter[int] = Counter()
    for seed in range(300):
        policy = policy_after(CopelandPBR(3, seed=seed, horizon=1000), *cycle)
        best = policy.propose()[0, 0].item()
        assert policy.propose(5).tolist() == [[best, best]] * 5
        policy_after(policy, (best, (best + 1) % 3, 0, 900))
        assert policy.clone().propose().tolist() == [[best, best]]
        assert policy.champion() == policy.clone().champion() == best
        served[best] += 1
    assert all(abs(served[arm] - 100) < 41 for arm in range(3))  # five standard deviations


def test_unrequested_duels_count_towards_later_rounds() -> None:
    policy = policy_after(CopelandPBR(3, seed=1, horizon=1000), (0, 1, 2, 1))
    for _ in range(3):
        assert {play(policy) for _ in range(2)} == {(0, 2), (1, 2)}
    assert next_round(policy) == {(0, 1), (0, 2), (1, 2)}


def test_rounds_concluded_on_propose() -> None:
    policy = policy_after(CopelandPBR(3, seed=1, horizon=1000), (0, 1, 60, 0), (0, 2, 60, 0))
    policy_after(policy, (1, 2, 30, 30))
    before = policy.state_dict()["own"]
    assert before["best"] is None
    assert len(before["active"]) == 3
    assert policy.propose().tolist() == [[0, 0]]
    assert policy.state_dict()["own"]["best"] == 0
    assert policy.state_dict()["own"]["active"] == []


def test_no_conclusion_within_round_or_with_duels_in_flight() -> None:
    policy = policy_after(CopelandPBR(3, seed=1, horizon=1000), (0, 1, 60, 0))
    pairs = policy.propose(20).tolist()
    assert [0, 1] not in pairs, "the pair has 60 duels"
    assert policy.state_dict()["own"]["active"] == [1, 2, 5], "the round is not complete"
    assert set(map(tuple, policy.propose(200).tolist())) == {(0, 1), (0, 2), (1, 2)}


def test_inactive_pair_stays_inactive_but_its_duels_count() -> None:
    policy = with_ties(
        policy_after(CopelandPBR(3, seed=1, horizon=1000), (0, 1, 60, 0)), 60, but={(0, 1)}
    )
    assert next_round(policy) == {(0, 2), (1, 2)}
    policy_after(policy, (1, 0, 60, 0))
    assert next_round(policy) == {(0, 2), (1, 2)}
    # Now 1 surely beats 0, and when it surely beats 2, it is the best.
    policy_after(policy, (1, 0, 90, 0), (1, 2, 90, 0), (0, 2, 45, 45))
    assert policy.propose().tolist() == [[1, 1]]


def test_proposals_in_flight_spread_over_active_pairs() -> None:
    policy = with_ties(
        policy_after(CopelandPBR(4, seed=1, horizon=1000), (0, 1, 60, 0)), 60, but={(0, 1)}
    )
    times = Counter(map(tuple, policy.propose(50).tolist()))
    assert len(times) == 5
    assert set(times.values()) == {10}
    assert next_round(policy) == times.keys(), "no outcome was observed"


def test_long_runs_proposed_ahead() -> None:
    policy = CopelandPBR(6, seed=1, horizon=100_000)
    # No pair can be decided before 2 ln(2 * 36 T²) = 54.6 duels.
    pairs, times = policy.propose_ahead(10**6)
    assert 54 * 15 < times.sum() <= 55 * 15
    assert set(np.bincount(pairs[:, 0] * 6 + pairs[:, 1]).tolist()) <= {0, 54, 55}


@pytest.mark.parametrize("unasked", [0.0, 0.3])
@pytest.mark.parametrize("n_arms", [3, 4, 5])
def test_propose_ahead_equals_single_proposals(n_arms: int, unasked: float) -> None:
    """Including late duels of an inactive pair that decide others within a round."""
    for seed in range(6):
        rng = random.Random(seed)
        chances = np.full((n_arms, n_arms), 0.5)
        for i, j in zip(*np.triu_indices(n_arms, k=1), strict=True):
            chances[i, j] = rng.choice([0.1, 0.3, 0.5, 0.7, 0.9])
            chances[j, i] = 1 - chances[i, j]
        jumping, stepping = (CopelandPBR(n_arms, seed=seed, horizon=1500) for _ in range(2))
        while jumping.duels < 2_000:
            if rng.random() < unasked:
                first, second = rng.sample(range(n_arms), k=2)
                duel = (first, second, float(rng.random() < chances[first, second]))
                for policy in (jumping, stepping):
                    policy.observe(*duel, 60)
            pairs, times = jumping.propose_ahead(rng.choice([1, 10, 300]))
            wins = [float(rng.random() < chances[i, j]) for i, j in pairs.tolist()]
            for pair, won, often in zip(pairs.tolist(), wins, times.tolist(), strict=True):
                assert stepping.propose().tolist() == [pair]
                stepping.observe(pair[0], pair[1], won)
                if often > 1:
                    assert stepping.propose_ahead(often - 1)[1].tolist() == [often - 1]
                    stepping.observe(pair[0], pair[1], won, often - 1)
            jumping.observe(pairs[:, 0], pairs[:, 1], wins, times)
        assert jumping.state_dict() == stepping.state_dict()


def test_late_duels_of_inactive_pair_end_run_with_round() -> None:
    results = [(0, 1, 60, 0), (0, 2, 60, 0), (3, 0, 60, 0)]
    policy = policy_after(CopelandPBR(4, seed=1, horizon=5000), *results)
    with_ties(policy, 60, but={(0, 1), (0, 2), (0, 3)})
    rest = {(1, 2), (1, 3), (2, 3)}
    assert next_round(policy) == rest
    rest -= {play(policy)}
    assert len(policy.clone().propose_ahead(1000)[0]) > 3
    policy_after(policy, (0, 3, 500, 0))  # so 0 beats all others: the race ends with this round
    assert set(map(tuple, policy.propose_ahead(1000)[0].tolist())) == rest
    assert {play(policy), play(policy)} == rest
    assert policy.propose().tolist() == [[0, 0]]


def test_batch_observe_equals_single_observes() -> None:
    rng = np.random.RandomState(3)
    together, apart = (CopelandPBR(5, seed=1, horizon=10_000) for _ in range(2))
    for length in (3, 24, 25, 300, 1000):
        first, second = rng.randint(5, size=(2, length))
        wins = (rng.random_sample(length) < 0.5 + 0.1 * (second - first)).astype(np.float64)
        together.observe(first, second, wins)
        for duel in zip(*(part.tolist() for part in (first, second, wins)), strict=True):
            apart.observe(*duel)
        assert together.candidates() == apart.candidates()
        assert together.propose(40).tolist() == apart.propose(40).tolist()
        assert together.state_dict() == apart.state_dict()


def test_restore_with_many_arms() -> None:
    policy = CopelandPBR(200, horizon=1000)
    began = time.process_time()
    assert policy.clone().state_dict() == policy.state_dict()
    assert time.process_time() - began < 2, "19,900 pairs, once each"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        *(
            ({"active": active}, "active must|damaged")
            for active in ([0], [3], [2, 1], [1, 1], [9])
        ),
        ({"active": [], "best": None}, "best must be an arm if no pair is active"),
        ({"best": 0}, "best must be an arm if no pair is active, else null"),
        ({"round": 0}, "damaged.*round"),
        ({"turns": {"order": [7, 7], "level": 0}}, "the order of a pass"),
    ],
)
def test_damaged_states_rejected(damage: dict[str, Any], message: str) -> None:
    policy = policy_after(CopelandPBR(3, horizon=1000), (0, 1, 3, 0))
    with pytest.raises(PolicyError, match=message):
        with_own(policy, **damage)

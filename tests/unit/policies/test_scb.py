"""SCB against the paper: epochs, decided pairs and elimination at the computed duel."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.scb import SCB, _is_apart
from tests.unit.policies.bed import with_own

FIRST_OF_FOURTH = 277  # epochs of 4, 16 and 256 duels have passed
LAST_OF_FOURTH = 276 + 65_536


def epoch_state(policy: SCB) -> dict[str, Any]:
    """The policy's state of its epoch."""
    own: dict[str, Any] = policy.state_dict()["own"]
    return own


def in_fourth_epoch(n_arms: int, seed: int = 1) -> SCB:
    """A policy that has begun epoch 4 and seen no duel of two arms."""
    policy = SCB(n_arms, seed=seed)
    policy.observe(0, 0, 0.5, FIRST_OF_FOURTH - 1)
    policy.propose()
    return policy


def play(policy: SCB, steps: int, chance: Any, seed: int = 0) -> SCB:
    """The policy after `steps` of its proposed duels."""
    rng = random.Random(seed)
    for _ in range(steps):
        first, second = policy.propose()[0].tolist()
        policy.observe(first, second, float(rng.random() < chance(first, second)))
    return policy


def surely(first: int, second: int) -> float:
    return float(first < second)


def divergence(p: float, q: float) -> float:
    """d(p, q) for 0 ln 0 = 0."""
    terms = ((p, q), (1 - p, 1 - q))
    return sum(a * math.log(a / b) for a, b in terms if a)


def is_decided(won: int, played: int, n_arms: int) -> bool:
    """Algorithm 2, line 1, in epoch 4."""
    delta = math.log(65_536) / 65_536
    limit = math.log(math.pi**2 * played**2 * n_arms**2 / (3 * delta))
    return played * divergence(won / played, 0.5) > limit


def interval(score: int, tosses: int, n_arms: int) -> tuple[float, float]:
    """Algorithm 4, line 10, in epoch 4: the least and the largest mean."""
    delta = math.log(65_536) / 65_536
    chance = math.log(4 * tosses * n_arms / delta) + 2 * math.log(math.log(tosses))
    ends = []
    for outside in (0.0, 1.0):
        end, mean = outside, score / tosses
        if mean != outside:
            inside = mean
            for _ in range(50):
                middle = (end + inside) / 2
                far = tosses * divergence(mean, middle) > chance
                end, inside = (middle, inside) if far else (end, middle)
        ends.append(end)
    return ends[0], ends[1]


def test_epoch_lengths() -> None:
    policy = SCB(5, seed=1)
    assert epoch_state(policy)["epoch"] == 0
    for duels, epoch in (
        (0, 1),
        (3, 1),
        (4, 2),
        (19, 2),
        (20, 3),
        (275, 3),
        (276, 4),
        (65_811, 4),
        (65_812, 5),
        (65_811 + 2**32, 5),
        (65_812 + 2**32, 6),
        (2**51 - 1, 6),
    ):
        if duels > policy.duels:
            policy.observe(0, 0, 0.5, duels - policy.duels)
        policy.propose()
        assert epoch_state(policy)["epoch"] == epoch


@pytest.mark.parametrize("n_arms", [2, 5])
def test_pair_played_until_decided(n_arms: int) -> None:
    policy = in_fourth_epoch(n_arms)
    pair = policy.propose()[0].tolist()
    needed = next(n for n in range(1, 200) if is_decided(n, n, n_arms))
    assert needed > 20
    for _ in range(needed):
        assert policy.propose()[0].tolist() == pair
        assert not any(epoch_state(policy)["found"])
        policy.observe(pair[0], pair[1], 1)
    policy.propose()
    assert pair[1] in epoch_state(policy)["found"][pair[0]]
    assert pair[0] not in epoch_state(policy)["found"][pair[1]]


def test_decided_winner_of_two_is_alone_until_epoch_ends() -> None:
    policy = in_fourth_epoch(2)
    needed = next(n for n in range(1, 200) if is_decided(n, n, 2))
    for _ in range(needed):
        first, second = policy.propose()[0].tolist()
        assert first != second
        policy.observe(first, second, float(first == 1))
    assert policy.propose(3).tolist() == [[1, 1]] * 3
    assert policy.candidates() == 1
    t = FIRST_OF_FOURTH + needed
    pairs, times = policy.propose_ahead(10**9)
    assert (pairs.tolist(), times.tolist()) == ([[1, 1]], [LAST_OF_FOURTH - t + 1])
    # A decided pair stays decided for the rest of the epoch.
    policy.observe(0, 1, 1, 10_000)
    assert policy.propose().tolist() == [[1, 1]]
    # The next epoch starts with no duels and no arm.
    policy.observe(1, 1, 0.5, LAST_OF_FOURTH - policy.duels)
    assert sorted(policy.propose()[0].tolist()) == [0, 1]
    assert epoch_state(policy)["before"] == policy.wins.tolist()
    assert policy.candidates() == 2


def test_interrupted_epoch_passes_nothing_on() -> None:
    policy = play(SCB(6, seed=2), 275, lambda first, second: 0.5 + 0.45 * (second > first))
    assert any(epoch_state(policy)["found"])
    play(policy, 2, surely)
    kept = epoch_state(policy)
    assert kept["epoch"] == 4
    assert not any(kept["found"])
    assert not np.any(kept["scores"])
    assert (kept["round"], len(kept["opponents"]), kept["best"]) == (1, 6, None)


def test_search_ends_when_one_arm_is_left() -> None:
    policy = in_fourth_epoch(8)
    chances = np.full((8, 8), 0.5)
    chances[0, 1:], chances[1:, 0] = 1, 0  # the other pairs are never decided
    found = [row.nonzero()[0].tolist() for row in chances > 0.5]
    policy = with_own(policy, found=found, opponents=[], left=[3, 0], round=300)
    policy = with_own(policy, scores=[300] + [40] * 7)
    assert interval(40, 300, 8)[1] < interval(300, 300, 8)[0]
    assert policy.propose().tolist() == [[0, 0]]
    assert epoch_state(policy)["left"] == [0]


@pytest.mark.parametrize("n_arms", [3, 20])
def test_arm_eliminated_when_interval_below_anothers(n_arms: int) -> None:
    policy = in_fourth_epoch(n_arms)
    seen = set()
    for tosses in (10, 40, 120):
        for highest in (tosses, round(0.9 * tosses)):
            for lowest in range(0, highest, max(1, tosses // 20)):
                scores = [highest, lowest, highest - 1] + [highest] * (n_arms - 3)
                state = {"round": tosses, "scores": scores, "opponents": []}
                arms = list(range(n_arms))
                looking = with_own(policy, **state, left=arms)
                looking.propose()
                out = interval(lowest, tosses, n_arms)[1] < interval(highest, tosses, n_arms)[0]
                assert epoch_state(looking)["left"] == [arm for arm in arms if arm != 1 or not out]
                assert epoch_state(looking)["round"] == tosses + 1
                seen.add(out)
    assert seen == {False, True}


def test_no_elimination_in_first_round() -> None:
    policy = in_fourth_epoch(4)
    policy = with_own(policy, round=1, scores=[1, 0, 0, 0], opponents=[])
    policy.propose()
    assert sorted(epoch_state(policy)["left"]) == [0, 1, 2, 3]


def test_arm_beating_most_found_when_all_pairs_decided() -> None:
    # By their tosses 2 leads, but 1 beats two of three and 2 only one.
    found = [[2], [0, 2], [3], [0, 1]]
    scores = [0, 1, 2, 1]
    champions: Counter[int] = Counter()
    for seed in range(60):
        policy = in_fourth_epoch(4, seed)
        own_state = {"found": found, "scores": scores, "round": 2, "opponents": []}
        champions[with_own(policy, **own_state).propose()[0, 0].item()] += 1
    assert set(champions) == {1, 3}, "ties are broken at random"
    assert 12 < champions[1] < 48


def test_copeland_winner_found_in_fourth_epoch() -> None:
    right = 0
    for seed in range(12):
        policy = SCB(5, seed=seed)
        play(policy, 6000, lambda i, j: 0.5 + 0.25 * ((j > i) - (j < i)), seed)
        right += policy.propose().tolist() == [[0, 0]]
    assert right == 12


def test_unrequested_duels_decide_pairs() -> None:
    policy = in_fourth_epoch(3)
    policy.observe([0, 0, 1], [1, 2, 2], [1, 1, 1], [100, 100, 100])
    assert policy.propose().tolist() == [[0, 0]]


def test_duels_before_epoch_do_not_decide_pairs() -> None:
    policy = SCB(3, seed=1)
    policy.observe([0, 0, 1], [1, 2, 2], [1, 1, 1], [100, 100, 100])
    first, second = policy.propose()[0].tolist()
    assert first != second
    assert not any(epoch_state(policy)["found"])


def test_uniform_opponents_and_toss_order_per_epoch() -> None:
    drawn: Counter[tuple[int, int]] = Counter()
    begins: Counter[int] = Counter()
    for seed in range(600):
        kept = epoch_state(in_fourth_epoch(4, seed))
        begins[kept["left"][0]] += 1
        drawn.update(map(tuple, kept["opponents"]))
        assert [arm for arm, _ in kept["opponents"]] == kept["left"]
    assert len(drawn) == 12
    assert all(abs(count - 200) < 4 * 12 for count in drawn.values())
    assert all(abs(begins[arm] - 150) < 4 * 11 for arm in range(4))


def test_pairs_of_round_alternate_with_duels_in_flight() -> None:
    policy = in_fourth_epoch(6)
    pairs = {tuple(sorted(pair)) for pair in epoch_state(policy)["opponents"]}
    times = Counter(tuple(sorted(pair)) for pair in policy.propose(10 * len(pairs)).tolist())
    assert times == dict.fromkeys(pairs, 10)
    assert policy.propose().tolist() == policy.propose().tolist()


def test_conclusions_independent_of_duels_in_flight() -> None:
    policy = play(in_fourth_epoch(6), 300, lambda i, j: 0.5 + 0.4 * ((j > i) - (j < i)))
    at_once = policy.clone()
    policy.propose()
    at_once.propose(2)
    assert epoch_state(policy)["found"] == epoch_state(at_once)["found"]


def test_pair_proposed_ahead_until_it_can_be_decided() -> None:
    policy = in_fourth_epoch(5)
    needed = next(n for n in range(1, 200) if is_decided(n, n, 5))
    pairs, times = policy.propose_ahead(10**6)
    pair = pairs[0].tolist()
    assert (pairs.tolist(), times.tolist()) == ([pair] * needed, [1] * needed)
    assert policy.propose_ahead(7)[1].tolist() == [1] * 7
    policy.observe(pair[0], pair[1], 1, 12)
    policy.observe(pair[0], pair[1], 0, 20)
    more = next(n for n in range(1, 200) if is_decided(20 + n, 32 + n, 5))
    assert len(policy.propose_ahead(10**6)[0]) == more
    policy.observe(0, 0, 0.5, LAST_OF_FOURTH - policy.duels - 3)
    assert len(policy.propose_ahead(10**6)[0]) == 3, "the epoch ends"


def test_intervals_separate_when_no_mean_is_near_both() -> None:
    for low, high in ((0.0, 1.0), (0.2, 0.7), (0.0, 0.4), (0.5, 1.0)):
        # At the point between both with equal divergence from each.
        grid = np.linspace(low, high, 20_001)[1:-1].tolist()
        both = max(min(divergence(low, q), divergence(high, q)) for q in grid)
        assert _is_apart(low, high, 0.999 * both)
        assert not _is_apart(low, high, 1.001 * both)
    assert not _is_apart(0.5, 0.5, 0.0)


@pytest.mark.parametrize(
    "damage",
    [
        {"epoch": 7},
        {"epoch": 0},
        {"left": []},
        {"round": -1},
        {"scores": [0, 0]},
        {"scores": [0, 0, 2]},
        {"scores": [0, 0, -1]},
        {"found": [[1], [0], []]},
        {"found": [[], []]},
        {"before": [[0, 1, 0], [0, 0, 0], [0, 0, 0]]},
        {"before": [[0, -1, 0], [0, 0, 0], [0, 0, 0]]},
        {"before": [[0, 0], [0, 0]]},
        {"opponents": [[0, 0]]},
    ],
    ids=str,
)
def test_damaged_epoch_rejected(damage: dict[str, object]) -> None:
    with pytest.raises(PolicyError):
        with_own(in_fourth_epoch(3), **damage)


def test_eliminated_arm_has_no_opponent() -> None:
    with pytest.raises(PolicyError, match="among them those with opponents"):
        with_own(in_fourth_epoch(3), left=[1, 2], opponents=[[0, 1]])

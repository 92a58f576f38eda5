"""D-TS and D-TS+ against the paper: both fences, and the two samples drawn in full."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.base.beta import BetaPosterior
from streamduel.policies.double_thompson import DoubleThompson, DoubleThompsonPlus
from streamduel.preference.arrays import Booleans, Floats, Integers

BOTH = [DoubleThompson, DoubleThompsonPlus]

# Wins of the row over the column. Few duels of each pair, one never seen: a word each decides.
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
# Many, so that the θ are sampled, each in its turn.
MANY = np.array(
    [
        [0, 50, 66, 45, 40],
        [45, 0, 48, 52, 70],
        [59, 42, 0, 50, 47],
        [40, 49, 45, 0, 52],
        [44, 61, 53, 50, 0],
    ],
    dtype=float,
)
# Both, and halves. Arm 3 surely loses to arm 1, by 40 to 90, and seems to beat all others.
MIXED = np.array(
    [
        [0, 6.5, 45, 4, 45],
        [5.5, 0, 30, 90, 3],
        [40, 34, 0, 2.5, 0],
        [6, 40, 5.5, 0, 4],
        [40, 2, 0, 1, 0],
    ],
    dtype=float,
)
# A cycle of 0, 1 and 2, each of which beats 3: three Copeland winners, and 1 is nearly told.
CYCLE = np.array(
    [
        [0, 60, 20, 30],
        [20, 0, 60, 70],
        [60, 20, 0, 40],
        [10, 10, 10, 0],
    ],
    dtype=float,
)


# Outside of the fence, 0 or 4 may beat more arms in a sample than 1 and 3 within: it counts in R.
OUTSIDE = np.array(
    [
        [0, 5, 190, 2, 0],
        [195, 0, 0, 13, 140],
        [10, 2, 0, 4, 4],
        [0, 27, 36, 0, 100],
        [0, 60, 36, 100, 0],
    ],
    dtype=float,
)


def in_state(kind: type[DoubleThompson], wins: Floats, scale: float, seed: int = 1) -> Any:
    """A policy that has seen these wins, and whose alpha ln t is as wanted."""
    duels = int(wins.sum()) + 1
    state = kind(len(wins), seed=seed, alpha=max(0.51, scale / math.log(duels + 1))).state_dict()
    policy = kind.from_state({**state, "counts": {"wins": wins.tolist(), "duels": duels}})
    assert policy.alpha * math.log(policy.duels + 1) == pytest.approx(scale)
    return policy


def upper(wins: Floats, scale: float, in_flight: Floats | float = 0.0) -> Floats:
    """u_ij with the paper's x/0 := 1; 1/2 for i = j."""
    played = wins + wins.T
    trials = played + in_flight
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(played > 0, wins / played, 1.0)
        bounds: Floats = mean + np.where(trials > 0, np.sqrt(scale / trials), 1.0)
    np.fill_diagonal(bounds, 0.5)
    return bounds


def scores_of(matrices: Floats) -> Integers:
    """How many others each arm beats, by samples or by bounds: of a matrix, or of each of many."""
    others = ~np.eye(matrices.shape[-1], dtype=bool)
    scores: Integers = ((matrices > 0.5) & others).sum(axis=-1)
    return scores


def within_fence(bounds: Floats) -> Booleans:
    """C: the arms with the largest upper Copeland score."""
    scores = scores_of(bounds)
    fence: Booleans = scores == scores.max()
    return fence


def costs_of(theta: Floats) -> Floats:
    """R_i of all arms, of each of many samples."""
    scores = scores_of(theta)
    regret = 2 * scores.max(axis=1)[:, None, None] - scores[:, :, None] - scores[:, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = theta * np.log(2 * theta) + (1 - theta) * np.log(2 * (1 - theta))
        shares: Floats = np.where(np.eye(theta.shape[-1], dtype=bool), 0.0, regret / divergence)
    return np.asarray(shares.sum(axis=2))


def by_the_paper(
    kind: type[DoubleThompson], wins: Floats, scale: float, runs: int
) -> Counter[tuple[int, int]]:
    """How often each pair is chosen by drawing both samples in full."""
    rng, n_arms, each = np.random.RandomState(2), len(wins), np.arange(runs)
    bounds = upper(wins, scale)
    theta = np.triu(rng.beta(wins + 1, wins.T + 1, size=(runs, n_arms, n_arms)), k=1)
    theta += np.tril(1 - theta.transpose(0, 2, 1), k=-1) + np.eye(n_arms) / 2
    scores = np.where(within_fence(bounds), scores_of(theta), -1)
    best = scores == scores.max(axis=1, keepdims=True)
    if kind is DoubleThompsonPlus:
        costs = np.where(best, costs_of(theta), np.inf)
        best = costs == costs.min(axis=1, keepdims=True)
    c = (best * rng.random_sample(best.shape)).argmax(axis=1)
    chances = rng.beta(wins[:, c] + 1, wins[c].T + 1).T
    chances[bounds[c] < 0.5] = -1
    chances[each, c] = 0.5
    return Counter(zip(c.tolist(), chances.argmax(axis=1).tolist(), strict=True))


def play(kind: type[DoubleThompson], n: int, calls: int) -> Counter[str]:
    """Look at every proposal of a policy for five arms, of which three win in a cycle."""
    policy, rng = kind(5, seed=n, alpha=0.6), random.Random(n)
    tallies: Counter[str] = Counter()
    for _ in range(calls):
        pairs = policy.propose(n).tolist()
        in_flight = np.zeros((5, 5))
        for step, (c, d) in enumerate(pairs):
            scale = policy.alpha * math.log(policy.duels + 1 + step)
            bounds = upper(policy.wins, scale, in_flight)
            fence, sure = within_fence(bounds), bounds[c] < 0.5
            assert fence[c]
            assert not sure[d]
            in_flight[[c, d], [d, c]] += 1
            seen = {
                "out of the fence": not fence.all(),
                "alone in the fence": np.count_nonzero(fence) == 1,
                "someone surely beats c": sure.any(),
                "with itself": c == d,
            }
            if step:
                without = upper(policy.wins, scale)
                seen["out by duels in flight"] = (within_fence(without) & ~fence).any()
                seen["sure by duels in flight"] = ((without[c] >= 0.5) & sure).any()
            tallies.update(kind for kind, true in seen.items() if true)
        assert policy.candidates() == sum(within_fence(upper(policy.wins, final(policy))))
        for c, d in rng.sample(pairs, k=(n + 1) // 2):
            chance = 0.5 + 0.3 * ((d - c) % 3 == 1) - 0.3 * ((d - c) % 3 == 2)
            if max(c, d) > 2:
                chance = 0.5 + 0.2 * ((d > c) - (d < c))
            policy.observe(c, d, 0.5 if rng.random() < 0.1 else float(rng.random() < chance))
    return tallies


def final(policy: DoubleThompson) -> float:
    """alpha ln t as of the next duel."""
    return policy.alpha * math.log(policy.duels + 1)


@pytest.mark.parametrize("kind", BOTH)
def test_both_arms_are_within_their_fences(kind: type[DoubleThompson]) -> None:
    tallies = play(kind, 1, calls=1_500)
    kinds = ["out of the fence", "alone in the fence", "someone surely beats c", "with itself"]
    assert all(tallies[kind] > 20 for kind in kinds), tallies


@pytest.mark.parametrize("kind", BOTH)
def test_duels_in_flight_count_in_the_bounds(kind: type[DoubleThompson]) -> None:
    tallies = play(kind, 50, calls=20)
    kinds = ["out by duels in flight", "sure by duels in flight"]
    assert all(tallies[kind] > 5 for kind in kinds), tallies


@pytest.mark.parametrize(
    ("kind", "wins", "scale", "fence"),
    [
        (DoubleThompson, np.zeros((3, 3)), 0.4, [0, 1, 2]),
        (DoubleThompson, FEW, 3.0, [0, 1, 2, 3, 4]),
        (DoubleThompson, MANY, 4.0, [0, 1, 2, 3, 4]),
        (DoubleThompson, MIXED, 3.5, [0, 1, 2, 4]),
        (DoubleThompson, CYCLE, 3.2, [0, 1, 2]),
        (DoubleThompsonPlus, FEW, 3.0, [0, 1, 2, 3, 4]),
        (DoubleThompsonPlus, MIXED, 3.5, [0, 1, 2, 4]),
        (DoubleThompsonPlus, CYCLE, 3.2, [0, 1, 2]),
        (DoubleThompsonPlus, OUTSIDE, 4.0, [1, 3]),
    ],
)
def test_a_pair_is_chosen_as_often_as_by_two_whole_samples(
    kind: type[DoubleThompson], wins: Floats, scale: float, fence: list[int]
) -> None:
    assert within_fence(upper(wins, scale)).nonzero()[0].tolist() == fence
    policy, runs = in_state(kind, wins, scale), 1_500
    pairs = Counter(tuple(policy.propose()[0].tolist()) for _ in range(runs))
    expected = by_the_paper(kind, wins, scale, 5 * runs)
    for pair in pairs | expected:
        share = (pairs[pair] + expected[pair]) / (6 * runs)
        # Of the difference of the two shares, four standard errors.
        allowed = 4 * (1.2 * share * (1 - share) / runs) ** 0.5
        assert abs(pairs[pair] / runs - expected[pair] / (5 * runs)) < allowed, pair


@pytest.mark.parametrize("kind", BOTH)
def test_a_champion_that_no_arm_seems_to_beat_meets_itself(kind: type[DoubleThompson]) -> None:
    wins = np.array([[0, 0, 200, 0], [0, 0, 5, 0], [0, 5, 0, 0], [0, 0, 0, 0]], dtype=float)
    wins[3, :3] = 300
    policy = in_state(kind, wins, 4.0)
    # θ_j3 > 1/2 has a chance of 2**-301.
    assert policy.candidates() == 1
    assert set(map(tuple, policy.propose(200).tolist())) == {(3, 3)}
    policy.observe([3] * 3, [0, 1, 2], [1] * 3, [10**9] * 3)
    policy.observe(3, 3, 0.5, 10**12)
    assert policy.propose().tolist() == [[3, 3]], "whatever t"


@pytest.mark.parametrize("kind", BOTH)
def test_without_a_condorcet_winner_the_copeland_winners_meet_themselves(
    kind: type[DoubleThompson],
) -> None:
    """Each of a cycle is surely beaten by another, of which nothing is left to learn."""
    wins = np.array(
        [[0, 90, 10, 90], [10, 0, 90, 90], [90, 10, 0, 90], [10, 10, 10, 0]], dtype=float
    )
    policy = in_state(kind, wins, 4.0)
    assert policy.candidates() == 3
    pairs = Counter(tuple(policy.propose()[0].tolist()) for _ in range(900))
    assert set(pairs) == {(0, 0), (1, 1), (2, 2)}
    # Equals are drawn alike: four standard errors.
    assert all(abs(count - 300) < 4 * 14.2 for count in pairs.values())


def test_ties_go_to_the_champion_that_costs_the_least() -> None:
    # R_i = 2 / d(θ_i3, 1/2) for the arms of the cycle, and 1 beats arm 3 the most clearly.
    wins = np.array(
        [[0, 90, 10, 60], [10, 0, 90, 95], [90, 10, 0, 70], [40, 5, 30, 0]], dtype=float
    )
    champions = Counter(
        (kind.name, int(in_state(kind, 10 * wins, 6.0, seed).propose()[0, 0]))
        for kind, seeds in ((DoubleThompson, 300), (DoubleThompsonPlus, 50))
        for seed in range(seeds)
    )
    assert champions["double_thompson_plus", 1] == 50
    # Four standard errors.
    assert all(abs(champions["double_thompson", arm] - 100) < 33 for arm in (0, 1, 2))


def test_a_champion_alone_in_the_fence_takes_no_first_sample() -> None:
    wins = np.array([[0, 90, 90], [10, 0, 50], [10, 50, 0]], dtype=float)
    policy = in_state(DoubleThompson, wins, 4.0)
    assert policy.candidates() == 1
    generator = policy.clone()._generator
    assert policy.propose().tolist() == [[0, 0]]
    BetaPosterior(policy._counts).sample(np.array([1, 2]), np.array([0, 0]), generator)
    assert generator.state_dict() == policy._generator.state_dict()


def test_the_first_sample_is_drawn_as_far_as_it_decides() -> None:
    """A leader who beats all others in it leaves no other arm a turn."""
    wins = np.full((6, 6), 40.0)
    wins[3] = 50
    wins[:, 3] = 30
    np.fill_diagonal(wins, 0)
    policy = in_state(DoubleThompson, wins, 5.0)
    assert policy.candidates() == 6
    turns = 0
    for _ in range(200):
        generator = policy.clone()._generator
        posterior, rivals = BetaPosterior(policy._counts), np.array([0, 1, 2, 4, 5])
        leads = (posterior.sample(np.full(5, 3), rivals, generator) > 0.5).all()
        champion = int(policy.propose()[0, 0])
        if leads:
            posterior.sample(rivals, np.full(5, 3), generator)
            assert champion == 3
            assert generator.state_dict() == policy._generator.state_dict()
            turns += 1
    assert turns > 50


def test_of_few_duels_a_word_each_makes_the_first_sample() -> None:
    policy = in_state(DoubleThompson, FEW, 3.0)
    first, second = np.triu_indices(5, k=1)
    alone = 0
    for _ in range(200):
        generator = policy.clone()._generator
        better = BetaPosterior(policy._counts).better(first, second, generator)
        scores = np.bincount(np.where(better, first, second), minlength=5)
        champion = policy.propose()[0, 0]
        assert scores[champion] == scores.max()
        alone += np.count_nonzero(scores == scores.max()) == 1
    assert alone > 50


@pytest.mark.parametrize("kind", BOTH)
def test_a_tie_is_half_a_win_for_both(kind: type[DoubleThompson]) -> None:
    tied, won = kind(3, seed=5), kind(3, seed=5)
    for first, second in ((0, 1), (1, 2), (2, 0)):
        tied.observe(first, second, 0.5, 30)
        won.observe(first, second, 1, 15)
        won.observe(first, second, 0, 15)
    assert tied.wins.tolist() == won.wins.tolist()
    assert tied.propose(20).tolist() == won.propose(20).tolist()
    assert tied.state_dict() == won.state_dict()


@pytest.mark.parametrize("kind", BOTH)
def test_after_proposing_nothing_is_in_flight(kind: type[DoubleThompson]) -> None:
    policy, fresh = in_state(kind, MIXED, 3.5), in_state(kind, MIXED, 3.5)
    expected = fresh.propose(40).tolist()
    start = policy.clone()._generator
    policy.propose(60)
    policy._generator = start
    assert policy.propose(40).tolist() == expected


@pytest.mark.parametrize("kind", BOTH)
def test_it_needs_no_horizon_and_looks_for_a_copeland_winner(kind: type[DoubleThompson]) -> None:
    assert list(kind.declared) == ["alpha", "window"]
    assert kind.traits() == [
        "looks for the arm that beats the most",
        "needs no horizon",
        "decides after every duel",
    ]


@pytest.mark.parametrize("kind", BOTH)
def test_alpha_must_exceed_one_half(kind: type[DoubleThompson]) -> None:
    with pytest.raises(PolicyError) as refused:
        kind(3, alpha=0.5)
    assert str(refused.value) == (
        "policy.alpha must be greater than 0.5 (found 0.5);"
        " the regret bounds of D-TS hold only above it."
    )

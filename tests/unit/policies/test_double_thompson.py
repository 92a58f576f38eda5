"""D-TS and D-TS+ against the paper: both confidence filters, and both samples drawn in full."""

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
from tests.unit.policies.bed import FEW

BOTH = [DoubleThompson, DoubleThompsonPlus]

# Many duels: each θ is sampled separately.
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
# Few and many, with half wins. Arm 3 surely loses to arm 1, 40 to 90, and leads all others.
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
# A cycle of 0, 1 and 2, each of which beats 3: three Copeland winners; 1 is almost decided.
CYCLE = np.array(
    [
        [0, 60, 20, 30],
        [20, 0, 60, 70],
        [60, 20, 0, 40],
        [10, 10, 10, 0],
    ],
    dtype=float,
)


# 0 or 4, ruled out, may beat more arms in a sample than 1 and 3, which are not: it counts in R.
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
    """A policy with these wins and this alpha ln t."""
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
    """Number of arms that each arm beats, for one matrix or many (of samples or bounds)."""
    others = ~np.eye(matrices.shape[-1], dtype=bool)
    scores: Integers = ((matrices > 0.5) & others).sum(axis=-1)
    return scores


def upper_copeland_winners(bounds: Floats) -> Booleans:
    """C: the arms with the largest upper Copeland score."""
    scores = scores_of(bounds)
    unbeaten: Booleans = scores == scores.max()
    return unbeaten


def costs_of(theta: Floats) -> Floats:
    """R_i of all arms, for each of many samples."""
    scores = scores_of(theta)
    regret = 2 * scores.max(axis=1)[:, None, None] - scores[:, :, None] - scores[:, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = theta * np.log(2 * theta) + (1 - theta) * np.log(2 * (1 - theta))
        shares: Floats = np.where(np.eye(theta.shape[-1], dtype=bool), 0.0, regret / divergence)
    return np.asarray(shares.sum(axis=2))


def by_the_paper(
    kind: type[DoubleThompson], wins: Floats, scale: float, runs: int
) -> Counter[tuple[int, int]]:
    """Share of each pair when both samples are drawn in full."""
    rng, n_arms, each = np.random.RandomState(2), len(wins), np.arange(runs)
    bounds = upper(wins, scale)
    theta = np.triu(rng.beta(wins + 1, wins.T + 1, size=(runs, n_arms, n_arms)), k=1)
    theta += np.tril(1 - theta.transpose(0, 2, 1), k=-1) + np.eye(n_arms) / 2
    scores = np.where(upper_copeland_winners(bounds), scores_of(theta), -1)
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
    """Check every proposal of a policy for five arms, three of which win in a cycle."""
    policy, rng = kind(5, seed=n, alpha=0.6), random.Random(n)
    tallies: Counter[str] = Counter()
    for _ in range(calls):
        pairs = policy.propose(n).tolist()
        in_flight = np.zeros((5, 5))
        for step, (c, d) in enumerate(pairs):
            scale = policy.alpha * math.log(policy.duels + 1 + step)
            bounds = upper(policy.wins, scale, in_flight)
            unbeaten, sure = upper_copeland_winners(bounds), bounds[c] < 0.5
            assert unbeaten[c]
            assert not sure[d]
            in_flight[[c, d], [d, c]] += 1
            seen = {
                "some ruled out": not unbeaten.all(),
                "one not ruled out": np.count_nonzero(unbeaten) == 1,
                "an arm surely beats c": sure.any(),
                "with itself": c == d,
            }
            if step:
                without = upper(policy.wins, scale)
                seen["ruled out by duels in flight"] = (
                    upper_copeland_winners(without) & ~unbeaten
                ).any()
                seen["sure by duels in flight"] = ((without[c] >= 0.5) & sure).any()
            tallies.update(kind for kind, true in seen.items() if true)
        assert policy.candidates() == sum(upper_copeland_winners(upper(policy.wins, final(policy))))
        for c, d in rng.sample(pairs, k=(n + 1) // 2):
            chance = 0.5 + 0.3 * ((d - c) % 3 == 1) - 0.3 * ((d - c) % 3 == 2)
            if max(c, d) > 2:
                chance = 0.5 + 0.2 * ((d > c) - (d < c))
            policy.observe(c, d, 0.5 if rng.random() < 0.1 else float(rng.random() < chance))
    return tallies


def final(policy: DoubleThompson) -> float:
    """alpha ln t at the next duel."""
    return policy.alpha * math.log(policy.duels + 1)


@pytest.mark.parametrize("kind", BOTH)
def test_both_arms_pass_confidence_filters(kind: type[DoubleThompson]) -> None:
    tallies = play(kind, 1, calls=1_500)
    kinds = ["some ruled out", "one not ruled out", "an arm surely beats c", "with itself"]
    assert all(tallies[kind] > 20 for kind in kinds), tallies


@pytest.mark.parametrize("kind", BOTH)
def test_duels_in_flight_count_in_bounds(kind: type[DoubleThompson]) -> None:
    tallies = play(kind, 50, calls=20)
    kinds = ["ruled out by duels in flight", "sure by duels in flight"]
    assert all(tallies[kind] > 5 for kind in kinds), tallies


@pytest.mark.parametrize(
    ("kind", "wins", "scale", "unbeaten"),
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
def test_pair_shares_equal_two_full_samples(
    kind: type[DoubleThompson], wins: Floats, scale: float, unbeaten: list[int]
) -> None:
    assert upper_copeland_winners(upper(wins, scale)).nonzero()[0].tolist() == unbeaten
    policy, runs = in_state(kind, wins, scale), 1_500
    pairs = Counter(tuple(policy.propose()[0].tolist()) for _ in range(runs))
    expected = by_the_paper(kind, wins, scale, 5 * runs)
    for pair in pairs | expected:
        share = (pairs[pair] + expected[pair]) / (6 * runs)
        # Four standard errors of the difference of the two shares.
        allowed = 4 * (1.2 * share * (1 - share) / runs) ** 0.5
        assert abs(pairs[pair] / runs - expected[pair] / (5 * runs)) < allowed, pair


@pytest.mark.parametrize("kind", BOTH)
def test_unbeaten_champion_duels_itself(kind: type[DoubleThompson]) -> None:
    wins = np.array([[0, 0, 200, 0], [0, 0, 5, 0], [0, 5, 0, 0], [0, 0, 0, 0]], dtype=float)
    wins[3, :3] = 300
    policy = in_state(kind, wins, 4.0)
    # θ_j3 > 1/2 has probability 2**-301.
    assert policy.candidates() == 1
    assert set(map(tuple, policy.propose(200).tolist())) == {(3, 3)}
    policy.observe([3] * 3, [0, 1, 2], [1] * 3, [10**9] * 3)
    policy.observe(3, 3, 0.5, 10**12)
    assert policy.propose().tolist() == [[3, 3]], "whatever t"


@pytest.mark.parametrize("kind", BOTH)
def test_copeland_winners_duel_themselves_without_condorcet_winner(
    kind: type[DoubleThompson],
) -> None:
    """Each arm of the cycle surely loses to another one, so that pair needs no more duels."""
    wins = np.array(
        [[0, 90, 10, 90], [10, 0, 90, 90], [90, 10, 0, 90], [10, 10, 10, 0]], dtype=float
    )
    policy = in_state(kind, wins, 4.0)
    assert policy.candidates() == 3
    pairs = Counter(tuple(policy.propose()[0].tolist()) for _ in range(900))
    assert set(pairs) == {(0, 0), (1, 1), (2, 2)}
    # Equal arms are equally likely: four standard errors.
    assert all(abs(count - 300) < 4 * 14.2 for count in pairs.values())


def test_champion_ties_go_to_least_cost() -> None:
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


def test_no_first_sample_for_single_upper_copeland_winner() -> None:
    wins = np.array([[0, 90, 90], [10, 0, 50], [10, 50, 0]], dtype=float)
    policy = in_state(DoubleThompson, wins, 4.0)
    assert policy.candidates() == 1
    generator = policy.clone()._generator
    assert policy.propose().tolist() == [[0, 0]]
    BetaPosterior(policy._counts).sample(np.array([1, 2]), np.array([0, 0]), generator)
    assert generator.state_dict() == policy._generator.state_dict()


def test_first_sample_drawn_only_until_decided() -> None:
    """If the leader beats all others in the sample, no other arm is sampled."""
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


def test_first_sample_of_few_duels_takes_one_word_per_pair() -> None:
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
def test_tie_is_half_win_for_both(kind: type[DoubleThompson]) -> None:
    tied, won = kind(3, seed=5), kind(3, seed=5)
    for first, second in ((0, 1), (1, 2), (2, 0)):
        tied.observe(first, second, 0.5, 30)
        won.observe(first, second, 1, 15)
        won.observe(first, second, 0, 15)
    assert tied.wins.tolist() == won.wins.tolist()
    assert tied.propose(20).tolist() == won.propose(20).tolist()
    assert tied.state_dict() == won.state_dict()


@pytest.mark.parametrize("kind", BOTH)
def test_nothing_in_flight_after_propose(kind: type[DoubleThompson]) -> None:
    policy, fresh = in_state(kind, MIXED, 3.5), in_state(kind, MIXED, 3.5)
    expected = fresh.propose(40).tolist()
    start = policy.clone()._generator
    policy.propose(60)
    policy._generator = start
    assert policy.propose(40).tolist() == expected


@pytest.mark.parametrize("kind", BOTH)
def test_description_names_copeland_winner_without_horizon(kind: type[DoubleThompson]) -> None:
    assert list(kind.declared) == ["alpha", "window"]
    assert kind.traits() == [
        "looks for the arm that beats the most",
        "needs no horizon",
        "decides after every duel",
    ]


@pytest.mark.parametrize("kind", BOTH)
def test_alpha_up_to_one_half_rejected(kind: type[DoubleThompson]) -> None:
    with pytest.raises(PolicyError) as refused:
        kind(3, alpha=0.5)
    assert str(refused.value) == (
        "policy.alpha must be greater than 0.5 (found 0.5);"
        " the regret bounds of D-TS hold only above it."
    )

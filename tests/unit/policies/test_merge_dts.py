"""MergeDTS: the proposed pair of a group, against the paper's two samples drawn in full."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from streamduel.policies.merge_dts import MergeDTS

# Wins of the row over the column. Pairs with few, many and no duels.
WINS = np.array(
    [
        [0.0, 50.0, 5.0, 0.0],
        [40.0, 0.0, 3.0, 60.0],
        [3.0, 4.0, 0.0, 1.0],
        [0.0, 55.0, 0.0, 0.0],
    ]
)


def policy_after(wins: np.ndarray[tuple[int, int], np.dtype[np.float64]], **own: float) -> MergeDTS:
    """A policy with one group and no elimination."""
    policy = MergeDTS(len(wins), seed=1, alpha=9 / math.log(1e12), constant=1e12)
    for first, second in zip(*wins.nonzero(), strict=True):
        policy.observe(int(first), int(second), 1, int(wins[first, second]))
    return policy


def by_the_paper(wins: np.ndarray[tuple[int, int], np.dtype[np.float64]], runs: int) -> Counter:  # type: ignore[type-arg]
    """Share of each pair when both samples are drawn in full."""
    rng, n_arms = np.random.RandomState(2), len(wins)
    pairs: Counter[tuple[int, int]] = Counter()
    for _ in range(runs):
        theta = np.triu(rng.beta(wins + 1, wins.T + 1), k=1)
        theta += np.tril(1 - theta.T, k=-1)
        scores = ((theta > 0.5) & ~np.eye(n_arms, dtype=bool)).sum(axis=1)
        c = int(rng.choice((scores == scores.max()).nonzero()[0]))
        phi = rng.beta(wins[:, c] + 1, wins[c] + 1)
        phi[c] = 1
        pairs[c, int(phi.argmin())] += 1
    return pairs


@pytest.mark.parametrize("n_arms", [2, 3, 4])
def test_pair_shares_equal_two_full_samples(n_arms: int) -> None:
    wins, runs = WINS[:n_arms, :n_arms], 4_000
    policy = policy_after(wins)
    pairs = Counter(tuple(policy.propose()[0].tolist()) for _ in range(runs))
    expected = by_the_paper(wins, 5 * runs)
    assert set(pairs) <= set(expected)
    for pair, times in expected.items():
        share = times / 5 / runs
        # Four standard deviations of the difference of the two shares.
        assert abs(pairs[pair] / runs - share) < 4 * (1.2 * share * (1 - share) / runs) ** 0.5


def test_likely_best_duels_likely_worst() -> None:
    wins = np.array([[0, 12, 16, 24], [8, 0, 12, 16], [4, 8, 0, 12], [0, 4, 8, 0.0]])
    policy = policy_after(wins)
    pairs = Counter(tuple(policy.propose()[0].tolist()) for _ in range(300))
    assert pairs.most_common(1)[0][0] == (0, 3)
    assert all(first != second for first, second in pairs)


def test_no_draw_for_challenger_of_two_arms() -> None:
    policy = MergeDTS(2, seed=3)
    policy.observe(0, 1, 1, 3)
    generator = policy.clone()._generator
    pair = policy.propose()[0].tolist()
    assert sorted(pair) == [0, 1]
    generator.words(1)
    assert policy._generator.state_dict() == generator.state_dict()


def test_challenger_has_fewest_duels_in_flight() -> None:
    wins = np.array([[0, 12, 16, 24], [8, 0, 12, 16], [4, 8, 0, 12], [0, 4, 8, 0.0]])
    times = Counter(map(tuple, np.sort(policy_after(wins).propose(120), axis=1).tolist()))
    with_best = [times[0, arm] for arm in (1, 2, 3)]
    assert min(with_best) > 20
    assert max(with_best) - min(with_best) < 20


def test_losing_arm_eliminated_earlier_than_by_merge_rucb() -> None:
    """The parameters of the authors' experiments are allowed."""
    policy = MergeDTS(40, seed=1, alpha=0.8**6, partition=16, constant=400_000)
    assert sorted(map(len, policy.state_dict()["own"]["groups"])) == [8, 16, 16]

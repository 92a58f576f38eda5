"""I_i against the plain formula; bit-identical for equal results in any order."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from streamduel.preference.arrays import Floats
from streamduel.preference.counts import WinCounts, distinct_pairs
from streamduel.preference.divergence import EmpiricalDivergence, evidence

UNIT = 2.0**-40

Duel = tuple[int, int, float, int]
"""Arguments of `WinCounts.add_one`."""


def some_duels(n_arms: int, n: int, seed: int) -> list[Duel]:
    """Random duels: the lower arm wins more often, one in five is a tie, some are self-duels."""
    rng, duels = random.Random(seed), []
    for _ in range(n):
        first, second = rng.choices(range(n_arms), k=2)
        edge = 0.2 * ((second > first) - (second < first))
        first_wins = 0.5 if rng.random() < 0.2 else float(rng.random() < 0.5 + edge)
        duels.append((first, second, first_wins, rng.randint(1, 9)))
    return duels


def of(duels: list[Duel], n_arms: int) -> EmpiricalDivergence:
    """Counts after adding these duels one by one."""
    counts = WinCounts(n_arms)
    divergence = EmpiricalDivergence(counts)
    for first, second, first_wins, count in duels:
        counts.add_one(first, second, first_wins, count)
        divergence.refresh(first, second)
    return divergence


def wins_of(duels: list[Duel], n_arms: int) -> Floats:
    wins = np.zeros((n_arms, n_arms))
    for first, second, first_wins, count in duels:
        if first != second:
            wins[first, second] += first_wins * count
            wins[second, first] += (1 - first_wins) * count
    return wins


def plain(won: float, lost: float) -> float:
    """n d(μ, 1/2) for μ = w / n below 1/2, else 0."""
    n = won + lost
    if won >= lost:
        return 0.0
    mean = won / n
    d = (1 - mean) * math.log((1 - mean) / 0.5)
    return n * (d + (mean * math.log(mean / 0.5) if mean else 0.0))


@pytest.mark.parametrize("n_arms", [2, 3, 8])
def test_sums_and_terms_equal_formula(n_arms: int) -> None:
    for seed, n in enumerate((0, 1, 5, 40, 400)):
        duels = some_duels(n_arms, n, seed)
        divergence, wins, arms = of(duels, n_arms), wins_of(duels, n_arms), range(n_arms)
        expected = np.array([[plain(wins[i, j], wins[j, i]) for j in arms] for i in arms])
        np.testing.assert_allclose(divergence.terms, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(divergence.sums, expected.sum(axis=1), atol=n_arms * 1e-12)


def test_hand_computed_values() -> None:
    # 3 ln(6 / 4) + 1 ln(2 / 4), and 5 ln 2.
    divergence = of([(0, 1, 0.0, 3), (1, 0, 0.0, 1), (2, 0, 1.0, 5)], 3)
    by_1, by_2 = 3 * math.log(3 / 2) - math.log(2), 5 * math.log(2)
    assert divergence.terms.tolist() == [
        [0.0, pytest.approx(by_1), pytest.approx(by_2)],
        [0.0] * 3,
        [0.0] * 3,
    ]
    assert divergence.sums.tolist() == [pytest.approx(by_1 + by_2), 0.0, 0.0]


def test_tie_is_half_win_and_half_loss() -> None:
    divergence = of([(0, 1, 0.5, 3), (0, 1, 0.0, 1)], 2)
    assert divergence.sums[0] == pytest.approx(plain(1.5, 2.5), abs=UNIT)
    assert divergence.sums.tolist()[1] == 0.0
    assert of([(0, 1, 0.5, 1001)], 2).sums.tolist() == [0.0, 0.0]


def test_divergence_returns_to_zero_after_catching_up() -> None:
    counts = WinCounts(3)
    divergence = EmpiricalDivergence(counts)
    for winner, expected in ((1, "behind"), (0, "level"), (0, "ahead")):
        counts.add_one(winner, 1 - winner, 1.0)
        divergence.refresh(1, 0)
        assert (divergence.sums > 0).tolist() == [expected == "behind", expected == "ahead", False]
        assert (divergence.terms > 0).sum() == (expected != "level")


def test_self_term_is_zero() -> None:
    divergence = of([(1, 1, 1.0, 50), (1, 1, 0.0, 9)], 2)
    assert not divergence.terms.any()
    assert not divergence.sums.any()


def test_initial_counts_included() -> None:
    duels = some_duels(5, 60, seed=3)
    counts = WinCounts(5)
    for duel in duels:
        counts.add_one(*duel)
    taken_up, kept_up = EmpiricalDivergence(counts), of(duels, 5)
    assert taken_up.sums.tobytes() == kept_up.sums.tobytes()
    assert taken_up.terms.tobytes() == kept_up.terms.tobytes()


@pytest.mark.parametrize("n_arms", [2, 5, 12])
def test_bits_independent_of_duel_order(n_arms: int) -> None:
    duels = some_duels(n_arms, 300, seed=n_arms)
    expected = of(duels, n_arms)
    for seed in range(5):
        shuffled = of(random.Random(seed).sample(duels, k=len(duels)), n_arms)
        assert shuffled.sums.tobytes() == expected.sums.tobytes()
        assert shuffled.terms.tobytes() == expected.terms.tobytes()


def test_bits_independent_of_arm_indices() -> None:
    n_arms = 12
    duels = some_duels(n_arms, 600, seed=1)
    expected = of(duels, n_arms).sums
    for seed in range(5):
        number = random.Random(seed).sample(range(n_arms), k=n_arms)
        renamed = of([(number[i], number[j], won, n) for i, j, won, n in duels], n_arms).sums
        assert renamed[number].tobytes() == expected.tobytes()


def test_bit_identical_for_equal_results() -> None:
    # Arms 0 and 1 have the same results against 2 to 9, in opposite orders.
    rng, n_arms = random.Random(4), 10
    results = [(rival, rng.randint(0, 30), rng.randint(20, 60)) for rival in range(2, n_arms)]
    duels = [(0, rival, 1.0, won) for rival, won, _ in results if won]
    duels += [(0, rival, 0.0, lost) for rival, _, lost in results]
    duels += [(1, first, wins, count) for _, first, wins, count in reversed(duels)]
    sums = of(duels, n_arms).sums
    assert sums[0] == sums[1] > 10


def test_sums_are_multiples_of_unit() -> None:
    divergence = of(some_duels(6, 200, seed=9), 6)
    for arm, terms in enumerate(divergence.terms.tolist()):
        units = sum(int(term / UNIT) for term in terms)
        assert divergence.sums[arm] == units * UNIT


def test_batch_refresh_equals_single_refreshes() -> None:
    duels = some_duels(7, 150, seed=5)
    duels += duels[:20]
    counts = WinCounts(7)
    together = EmpiricalDivergence(counts)
    first, second, first_wins, count = (np.array(part) for part in zip(*duels, strict=True))
    counts.add(first, second, first_wins, count)
    assert not together.sums.any(), "the caller of add must call refresh"
    together.refresh_many(*distinct_pairs(first, second, 7))
    apart = of(duels, 7)
    assert together.sums.tobytes() == apart.sums.tobytes()
    assert together.terms.tobytes() == apart.terms.tobytes()
    together.refresh_many(first[:0], second[:0])
    assert together.sums.tobytes() == apart.sums.tobytes()


def test_only_named_pairs_refreshed() -> None:
    counts = WinCounts(3)
    divergence = EmpiricalDivergence(counts)
    counts.add_one(0, 1, 0.0, 3)
    counts.add_one(0, 2, 0.0, 3)
    divergence.refresh_many(np.array([0, 1]), np.array([2, 1]))
    assert divergence.terms[0].tolist() == [0.0, 0.0, pytest.approx(3 * math.log(2))]


@pytest.mark.parametrize("lead", [0.5, 1, 2, 1000])
@pytest.mark.parametrize("n", [10**4, 10**9, 10**15])
def test_evidence_nonnegative_for_tiny_gaps(n: int, lead: float) -> None:
    # The series of n d(1/2 - g / 2n, 1/2) begins with g² / 2n.
    found = evidence(n / 2 - lead / 2, n / 2 + lead / 2)
    assert found >= 0
    assert found == pytest.approx(lead**2 / (2 * n), rel=3e-3, abs=1e-15 * n)


def test_evidence_grows_with_losses() -> None:
    for won in (0, 0.5, 3, 20):
        found = [evidence(won, lost) for lost in range(math.ceil(won), math.ceil(won) + 200)]
        assert found == sorted(set(found))

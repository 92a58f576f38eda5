"""Anytime-valid evidence: formulas, supported winners and bounds."""

from __future__ import annotations

import itertools
import math
import tracemalloc

import numpy as np
import pytest

from streamduel.preference.arrays import Floats
from streamduel.preference.elimination import condorcet_winner_possible
from streamduel.preference.evidence import (
    RHO,
    Winner,
    confidence,
    intervals,
    log_evidence,
    log_evidence_of,
    nats,
    sure_at,
)

ORDER: Floats = np.array([[0, 90, 80, 95], [10, 0, 70, 60], [20, 30, 0, 75], [5, 40, 25, 0.0]])
CYCLE: Floats = np.array([[0, 90, 10], [10, 0, 90], [90, 10, 0.0]])


def mixture(wins: float, losses: float, p: float = 0.5) -> float:
    """M_n(p), one-sided: 2 Φ(z) times the two-sided mixture."""
    spread, away = (wins + losses) / 4, wins - (wins + losses) * p
    z = away / math.sqrt(spread + RHO)
    return math.sqrt(RHO / (spread + RHO)) * math.exp(z**2 / 2) * math.erfc(-z / math.sqrt(2))


@pytest.mark.parametrize(("wins", "losses"), [(9, 1), (60.5, 39.5), (5_000, 4_800), (3, 3), (1, 4)])
def test_evidence_equals_mixture_of_paper(wins: float, losses: float) -> None:
    found = log_evidence(np.array([[0, wins], [losses, 0]]))
    assert found[0, 1] == pytest.approx(math.log(max(mixture(wins, losses), 1.0)), abs=1e-6)
    assert found[0, 0] == 0


@pytest.mark.parametrize("n_arms", [2, 40, 200])
def test_evidence_of_a_matrix_is_that_of_its_pairs(n_arms: int) -> None:
    wins = np.random.RandomState(7).randint(0, 40, (n_arms, n_arms)) / 2
    assert np.array_equal(log_evidence(wins), log_evidence_of(wins, wins.T))


def test_evidence_of_many_arms_is_computed_in_parts() -> None:
    wins = np.random.RandomState(7).randint(0, 40, (500, 500)).astype(np.float64)
    tracemalloc.start()
    try:
        log_evidence(wins)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The result, a transposed copy, and of half of the pairs their places, wins and losses; each
    # of the steps of the formula would take as much as the result.
    assert peak < 5 * wins.nbytes


def test_mixture_mean_at_most_one() -> None:
    # Over all 2**12 sequences of a fair coin, the unbounded mixture is 1 or less on average.
    total = sum(
        mixture(sum(outcomes), 12 - sum(outcomes))
        for outcomes in itertools.product((0, 1), repeat=12)
    )
    assert 0.9 < total / 2**12 <= 1


def test_condorcet_confidence_is_weakest_comparison() -> None:
    assert sure_at(ORDER, 0, "condorcet") == log_evidence(ORDER)[0, 1:].min()
    assert sure_at(ORDER, 1, "condorcet") == 0


@pytest.mark.parametrize("seed", range(20))
def test_copeland_confidence_is_largest_implied_level(seed: int) -> None:
    users = np.random.RandomState(seed)
    wins = np.triu(users.randint(0, 200, (5, 5)).astype(np.float64), k=1)
    wins += np.tril(users.randint(0, 200, (5, 5)), k=-1)
    evidence = log_evidence(wins)
    for champion in range(5):
        follows = [0.0]
        for level in evidence[evidence > 0]:
            beats = evidence >= level
            most = [4 - beats[:, arm].sum() for arm in range(5) if arm != champion]
            if beats[champion].sum() >= max(most):
                follows.append(float(level))
        assert sure_at(wins, champion, "copeland") == max(follows)


def test_cycle_has_copeland_but_no_condorcet_winner() -> None:
    assert [confidence(CYCLE, arm, "condorcet") for arm in range(3)] == [0, 0, 0]
    assert min(confidence(CYCLE, arm, "copeland") for arm in range(3)) > 0.99
    assert not condorcet_winner_possible(CYCLE, delta=0.05)
    assert condorcet_winner_possible(ORDER, delta=0.05)
    assert condorcet_winner_possible(np.zeros((3, 3)), delta=0.05)


@pytest.mark.parametrize("seeks", ["condorcet", "copeland"])
def test_confidence_threshold(seeks: Winner) -> None:
    reached = confidence(ORDER, 0, seeks)
    assert (
        nats(reached - 1e-9, 4, seeks) < sure_at(ORDER, 0, seeks) < nats(reached + 1e-9, 4, seeks)
    )


def test_bounds_contain_unexcluded_preferences() -> None:
    delta = 0.1
    lower, upper = intervals(ORDER, delta)
    plays = ORDER + ORDER.T
    for i, j in itertools.permutations(range(4), 2):
        demanded = math.log(6 / delta)
        spread = plays[i, j] / 4
        for end in (lower[i, j], upper[i, j]):
            if 0 < end < 1:
                away = ORDER[i, j] - plays[i, j] * end
                mixture = math.log(RHO / (spread + RHO)) / 2 + away**2 / (2 * (spread + RHO))
                assert mixture == pytest.approx(demanded, rel=1e-9)
    assert np.allclose((lower + upper.T)[~np.eye(4, dtype=bool)], 1)


def test_unseen_pair_has_vacuous_bounds() -> None:
    lower, upper = intervals(np.zeros((2, 2)), 0.05)
    assert lower.tolist() == [[0, 0], [0, 0]]
    assert upper.tolist() == [[1, 1], [1, 1]]
    assert confidence(np.zeros((2, 2)), 0, "condorcet") == 0

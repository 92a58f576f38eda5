"""Theorems of the papers, checked in many runs with fixed seeds.

Each theorem bounds a probability of failure. The number of runs that may fail is computed from it:
at the proved bound, more failures have a probability below 1 in 1,000. (The bounds are loose;
hardly any run fails.)
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log

import numpy as np
import pytest
from scipy import stats

from streamduel import policies
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.winners import condorcet_winner, copeland_winners
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.measurement import start_run
from streamduel.simulation.run import Run
from tests.statistics.textbook.matrices import MATRICES

HORIZONLESS = [
    name
    for name in policies.names()
    if policies.get(name).adaptive and "horizon" not in policies.get(name).declared
]
# Four arms in order, each beating the next by 0.3: every policy converges soon.
CLEAR: Floats = np.array(
    [[0.5, 0.8, 0.8, 0.8], [0.2, 0.5, 0.8, 0.8], [0.2, 0.2, 0.5, 0.8], [0.2, 0.2, 0.2, 0.5]]
)


def runs(
    name: str, preferences: Floats, count: int, **parameters: object
) -> Iterator[tuple[Run, Integers]]:
    """Runs on the matrix with shuffled arms, and the original index of each arm."""
    for run in range(count):
        arms = np.random.RandomState(run).permutation(len(preferences))
        policy = policies.create(name, len(arms), seed=run, **parameters)
        users = MatrixEnvironment(preferences[np.ix_(arms, arms)], seed=run + 5_000)
        yield start_run(policy, users), arms


def failure_limit(probability: float, count: int) -> int:
    """The number of failures in `count` runs that has a probability below 1 in 1,000."""
    return int(stats.binom.ppf(0.999, count, probability)) + 1


def bound_start(alpha: float, n_arms: int, delta: float) -> float:
    """C(δ) of RUCB's Lemma 1: from then on all bounds hold, with probability 1 - δ."""
    start: float = ((4 * alpha - 1) * n_arms**2 / ((2 * alpha - 1) * delta)) ** (
        1 / (2 * alpha - 1)
    )
    return start


def test_rucb_bounds_hold_with_probability_of_lemma_1() -> None:
    # From C(δ) = 9.4 on, no bound is ever on the wrong side, with probability 0.9. A pair's bounds
    # narrow only when it is played, so checking then is enough.
    alpha, delta, count, arxiv = 2.0, 0.1, 60, MATRICES["arxiv"]
    early = bound_start(alpha, len(arxiv), delta)
    failed = 0
    for run in range(count):
        policy = policies.create("rucb", len(arxiv), seed=run, alpha=alpha)
        users = MatrixEnvironment(arxiv, seed=run + 5_000)
        wrong = False
        for t in range(1, 1_001):
            first, second = policy.propose()[0].tolist()
            policy.observe(first, second, users.outcome(first, second))
            if t > early and first != second:
                won, lost = policy.wins[first, second], policy.wins[second, first]
                bonus = (alpha * log(t + 1) / (won + lost)) ** 0.5
                wrong |= abs(won / (won + lost) - arxiv[first, second]) > bonus
        failed += wrong
    assert failed < failure_limit(delta, count)


@pytest.mark.parametrize("matrix", ["arxiv", "cyclic", "arithmetic"])
def test_rucb_bad_pairs_within_bound_of_theorem_2(matrix: str) -> None:
    alpha, delta, count = 1.0, 0.1, 60
    preferences = MATRICES[matrix]
    n_arms = len(preferences)
    gaps = preferences[0] - 0.5
    gaps[0] = np.inf  # a pair with the winner is measured by the other arm alone
    most = 4 * alpha / np.minimum.outer(gaps, gaps) ** 2
    np.fill_diagonal(most, 0.0)
    early = bound_start(alpha, n_arms, delta)
    failed = 0
    for simulation, arms in runs("rucb", preferences, count, alpha=alpha):
        kept = True
        for t in (300, 3_000, 30_000):
            simulation.advance(t)
            there = np.argsort(arms)
            played = simulation.plays[np.ix_(there, there)]
            pairs = played + played.T - np.diag(np.diag(played))
            pairs[0, 0] = 0
            kept &= bool((pairs <= np.maximum(early, most * log(t))).all())
        failed += not kept
    assert failed < failure_limit(delta, count)


@pytest.mark.parametrize("matrix", ["arithmetic", "bradley_terry16", "cycle5"])
def test_ccb_bad_pairs_within_bound_of_proposition_4(matrix: str) -> None:
    # With the smallest gaps Δ_ij = |p_ij - 1/2| instead of the paper's larger Δ*_ij.
    alpha, delta, count = 1.0, 0.1, 60
    preferences = MATRICES[matrix]
    n_arms, winners = len(preferences), copeland_winners(preferences)
    with np.errstate(divide="ignore"):
        most = 4 * alpha / (preferences - 0.5) ** 2
    np.fill_diagonal(most, 0.0)  # after C(δ), only winners duel themselves
    most[winners, winners] = np.inf
    early = bound_start(alpha, n_arms, delta)
    failed = 0
    for simulation, arms in runs("ccb", preferences, count, alpha=alpha):
        simulation.advance(30_000)
        there = np.argsort(arms)
        played = simulation.plays[np.ix_(there, there)]
        pairs = played + played.T - np.diag(np.diag(played))
        failed += not (pairs <= early + most * log(30_000)).all()
    assert failed < failure_limit(delta, count)


@pytest.mark.parametrize("name", ["interleaved_filter_1", "interleaved_filter_2"])
def test_interleaved_filter_error_rate_at_most_1_over_t(name: str) -> None:
    # Theorems 1 and 2: the returned arm is wrong with probability at most 1/T.
    horizon, count = 2_000, 300
    failed = 0
    for simulation, arms in runs(name, CLEAR, count, horizon=horizon):
        simulation.advance(horizon)
        assert simulation.policy().candidates() == 1
        failed += arms[simulation.champion()] != 0
    assert failed < failure_limit(1 / horizon, count)


def test_interleaved_filter_2_plays_at_most_the_matches_of_1() -> None:
    # A match: all the duels of a candidate with one arm. The candidate is the first of a pair.
    matches = {}
    for name in ("interleaved_filter_1", "interleaved_filter_2"):
        played = []
        for simulation, _ in runs(name, MATRICES["arithmetic"], 60, horizon=20_000):
            simulation.advance(20_000)
            apart = simulation.plays - np.diag(np.diag(simulation.plays))
            played.append(int((apart > 0).sum()))
        matches[name] = np.mean(played)
    assert matches["interleaved_filter_2"] <= matches["interleaved_filter_1"]


@pytest.mark.parametrize("name", ["c2b", "pcomp"])
@pytest.mark.parametrize("rounds", [4, 9])
def test_batch_count_within_limit_and_winner_kept(name: str, rounds: int) -> None:
    # The winner is lost with probability O(1/T).
    horizon = 20_000
    for simulation, arms in runs(name, MATRICES["arithmetic"], 40, horizon=horizon, rounds=rounds):
        opened = 0
        while simulation.t < horizon and simulation.policy().candidates() > 1:
            simulation.advance(
                simulation.t + 1
            )  # the first duel of a batch, or a duel outside batches
            remaining = simulation.policy().remaining()
            assert remaining is not None
            opened += 1
            simulation.advance(min(horizon, simulation.t + int(remaining.sum()) // 2))
        assert opened <= rounds
        assert int(np.argsort(arms)[0]) in simulation.policy().state_dict()["own"]["active"]


@pytest.mark.parametrize("name", HORIZONLESS)
def test_winner_alone_in_the_long_run_without_horizon(name: str) -> None:
    alone = 0.0
    for simulation, arms in runs(name, CLEAR, 5):
        simulation.advance(8_000)
        before = simulation.plays
        simulation.advance(10_000)
        winner = int(np.argsort(arms)[0])
        alone += (simulation.plays - before)[winner, winner] / 2_000 / 5
    assert alone > 0.9


@pytest.mark.parametrize("name", ["rucb", "ccb", "rmed1", "double_thompson"])
def test_condorcet_winner_of_arxiv_found(name: str) -> None:
    # The paper: at least 95 of 100 runs to T = 100,000; here the same share, 38 of 40.
    preferences = MATRICES["arxiv"]
    winner = condorcet_winner(preferences)
    found = 0
    for simulation, arms in runs(name, preferences, 40):
        simulation.advance(100_000)
        found += arms[simulation.champion()] == winner
    assert found >= 38


def mean_regret(name: str, horizon: int, count: int) -> float:
    """Mean regret in the clear matrix."""
    parameters = {"horizon": horizon} if "horizon" in policies.get(name).declared else {}
    gaps, total = CLEAR[0] - 0.5, 0.0
    for simulation, arms in runs(name, CLEAR, count, **parameters):
        simulation.advance(horizon)
        total += float((simulation.plays * np.add.outer(gaps, gaps)[np.ix_(arms, arms)]).sum()) / 2
    return total / count


@pytest.mark.parametrize("name", [it for it in policies.names() if policies.get(it).adaptive])
def test_regret_below_uniform(name: str) -> None:
    # Beat the Mean decides only after about 18,000 duels; the others have at most a tenth.
    share = 1.0 if name == "beat_the_mean" else 0.1
    assert mean_regret(name, horizon=20_000, count=4) < share * mean_regret(
        "uniform", horizon=20_000, count=4
    )

"""Theorems of the papers, checked in many runs with fixed seeds.

Each theorem speaks of a probability. The number of runs that may fail is computed from it: at the
proved probability itself, more failures than that would come with a chance below 1 in 1,000. (The
bounds are loose; hardly any run fails.)
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
    """Courses in the matrix with its arms shuffled, and where each of its arms is."""
    for run in range(count):
        arms = np.random.RandomState(run).permutation(len(preferences))
        policy = policies.create(name, len(arms), seed=run, **parameters)
        users = MatrixEnvironment(preferences[np.ix_(arms, arms)], seed=run + 5_000)
        yield start_run(policy, users), arms


def beyond(probability: float, count: int) -> int:
    """So many failures in `count` runs, or more, have a chance below 1 in 1,000."""
    return int(stats.binom.ppf(0.999, count, probability)) + 1


def start_of_the_bound(alpha: float, n_arms: int, delta: float) -> float:
    """C(δ) of RUCB's Lemma 1: from then on all bounds hold, with probability 1 - δ."""
    start: float = ((4 * alpha - 1) * n_arms**2 / ((2 * alpha - 1) * delta)) ** (
        1 / (2 * alpha - 1)
    )
    return start


def test_rucbs_bounds_hold_with_the_probability_of_lemma_1() -> None:
    # From C(δ) = 9.4 on, no bound is ever on the wrong side, with probability 0.9. A pair's bounds
    # narrow only when it is played, so it is enough to look then.
    alpha, delta, count, arxiv = 2.0, 0.1, 60, MATRICES["arxiv"]
    early = start_of_the_bound(alpha, len(arxiv), delta)
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
    assert failed < beyond(delta, count)


@pytest.mark.parametrize("matrix", ["arxiv", "cyclic", "arithmetic"])
def test_rucb_compares_bad_pairs_within_the_bound_of_theorem_2(matrix: str) -> None:
    alpha, delta, count = 1.0, 0.1, 60
    preferences = MATRICES[matrix]
    n_arms = len(preferences)
    gaps = preferences[0] - 0.5
    gaps[0] = np.inf  # a pair with the winner is measured by the other arm alone
    most = 4 * alpha / np.minimum.outer(gaps, gaps) ** 2
    np.fill_diagonal(most, 0.0)
    early = start_of_the_bound(alpha, n_arms, delta)
    failed = 0
    for way, arms in runs("rucb", preferences, count, alpha=alpha):
        kept = True
        for t in (300, 3_000, 30_000):
            way.advance(t)
            there = np.argsort(arms)
            played = way.plays[np.ix_(there, there)]
            pairs = played + played.T - np.diag(np.diag(played))
            pairs[0, 0] = 0
            kept &= bool((pairs <= np.maximum(early, most * log(t))).all())
        failed += not kept
    assert failed < beyond(delta, count)


@pytest.mark.parametrize("matrix", ["arithmetic", "bradley_terry16", "cycle5"])
def test_ccb_compares_bad_pairs_within_the_bound_of_proposition_4(matrix: str) -> None:
    # With the smallest gaps Δ_ij = |p_ij - 1/2| instead of the paper's larger Δ*_ij.
    alpha, delta, count = 1.0, 0.1, 60
    preferences = MATRICES[matrix]
    n_arms, winners = len(preferences), copeland_winners(preferences)
    with np.errstate(divide="ignore"):
        most = 4 * alpha / (preferences - 0.5) ** 2
    np.fill_diagonal(most, 0.0)  # an arm that is no winner never meets itself, after C(δ)
    most[winners, winners] = np.inf
    early = start_of_the_bound(alpha, n_arms, delta)
    failed = 0
    for way, arms in runs("ccb", preferences, count, alpha=alpha):
        way.advance(30_000)
        there = np.argsort(arms)
        played = way.plays[np.ix_(there, there)]
        pairs = played + played.T - np.diag(np.diag(played))
        failed += not (pairs <= early + most * log(30_000)).all()
    assert failed < beyond(delta, count)


@pytest.mark.parametrize("name", ["interleaved_filter_1", "interleaved_filter_2"])
def test_interleaved_filter_errs_in_one_run_of_t_at_most(name: str) -> None:
    # Theorem 1 and 2: it returns a wrong arm with probability 1/T at most.
    horizon, count = 2_000, 300
    failed = 0
    for way, arms in runs(name, CLEAR, count, horizon=horizon):
        way.advance(horizon)
        assert way.policy().candidates() == 1
        failed += arms[way.champion()] != 0
    assert failed < beyond(1 / horizon, count)


def test_interleaved_filter_2_plays_no_more_matches_than_1() -> None:
    # A match: all the duels of a candidate with one arm. The candidate is the first of a pair.
    matches = {}
    for name in ("interleaved_filter_1", "interleaved_filter_2"):
        played = []
        for way, _ in runs(name, MATRICES["arithmetic"], 60, horizon=20_000):
            way.advance(20_000)
            apart = way.plays - np.diag(np.diag(way.plays))
            played.append(int((apart > 0).sum()))
        matches[name] = np.mean(played)
    assert matches["interleaved_filter_2"] <= matches["interleaved_filter_1"]


@pytest.mark.parametrize("name", ["c2b", "pcomp"])
@pytest.mark.parametrize("rounds", [4, 9])
def test_batches_are_no_more_than_promised_and_the_winner_stays(name: str, rounds: int) -> None:
    # The winner is lost with probability O(1/T).
    horizon = 20_000
    for way, arms in runs(name, MATRICES["arithmetic"], 40, horizon=horizon, rounds=rounds):
        opened = 0
        while way.t < horizon and way.policy().candidates() > 1:
            way.advance(way.t + 1)  # the first duel of a batch, or what is played without one
            remaining = way.policy().remaining()
            assert remaining is not None
            opened += 1
            way.advance(min(horizon, way.t + int(remaining.sum()) // 2))
        assert opened <= rounds
        assert int(np.argsort(arms)[0]) in way.policy().state_dict()["own"]["active"]


@pytest.mark.parametrize("name", HORIZONLESS)
def test_without_a_horizon_the_winner_ends_up_alone(name: str) -> None:
    alone = 0.0
    for way, arms in runs(name, CLEAR, 5):
        way.advance(25_000)
        before = way.plays
        way.advance(30_000)
        winner = int(np.argsort(arms)[0])
        alone += (way.plays - before)[winner, winner] / 5_000 / 5
    assert alone > 0.9


@pytest.mark.parametrize("name", ["rucb", "ccb", "rmed1", "double_thompson"])
def test_the_condorcet_winner_of_arxiv_is_found(name: str) -> None:
    # In at least 95 of 100 runs to T = 100,000; here 40, of which 38 are as many.
    preferences = MATRICES["arxiv"]
    winner = condorcet_winner(preferences)
    found = 0
    for way, arms in runs(name, preferences, 40):
        way.advance(100_000)
        found += arms[way.champion()] == winner
    assert found >= 38


def lost(name: str, horizon: int, count: int) -> float:
    """Mean regret in the clear matrix."""
    parameters = {"horizon": horizon} if "horizon" in policies.get(name).declared else {}
    gaps, total = CLEAR[0] - 0.5, 0.0
    for way, arms in runs(name, CLEAR, count, **parameters):
        way.advance(horizon)
        total += float((way.plays * np.add.outer(gaps, gaps)[np.ix_(arms, arms)]).sum()) / 2
    return total / count


@pytest.mark.parametrize("name", sorted(set(policies.names()) - {"uniform"}))
def test_every_policy_has_less_regret_than_uniform(name: str) -> None:
    # Beat the Mean is sure after some 18,000 duels only; the others lose at most a tenth.
    share = 1.0 if name == "beat_the_mean" else 0.1
    assert lost(name, horizon=20_000, count=4) < share * lost("uniform", horizon=20_000, count=4)

"""Error rates of anytime-valid confidence statements that are read after every duel.

The number of runs that may fail is the largest with a probability of at least 1 in 1,000 if each
run fails with the allowed probability.
"""

from __future__ import annotations

import numpy as np
import pytest

from streamduel import policies
from streamduel.preference.arrays import Floats
from streamduel.preference.elimination import condorcet_winner_possible
from streamduel.preference.evidence import (
    confidence,
    intervals,
    log_evidence_of,
    nats,
)
from streamduel.preference.regret import regret_bound
from streamduel.simulation.environment import MatrixEnvironment
from tests.statistics.test_guarantees import failure_limit
from tests.statistics.textbook.matrices import MATRICES, condorcet_regret, copeland_regret

EQUAL: Floats = np.full((3, 3), 0.5)


@pytest.mark.parametrize("error", [0.01, 0.05, 0.2])
def test_false_lead_rate_of_equal_arms(error: float) -> None:
    experiments, duels = 10_000, 2_000
    users = np.random.RandomState(1)
    wins, found = np.zeros(experiments), np.zeros(experiments, dtype=bool)
    enough = nats(1 - error, 2, "condorcet")
    for n in range(1, duels + 1):
        wins += users.random_sample(experiments) < 0.5
        losses = n - wins
        found |= np.maximum(log_evidence_of(wins, losses), log_evidence_of(losses, wins)) >= enough
    assert 0 < found.sum() < failure_limit(error, experiments)


def test_true_lead_detected() -> None:
    # With 1,000 duels won at 0.58, the lead is 5 standard deviations: confidence 0.95 for two arms
    # needs 2.3 nats and the mixture's 1.4, which are 2.7 deviations.
    users = np.random.RandomState(2)
    wins = users.binomial(1_000, 0.58, size=200).astype(np.float64)
    sure = log_evidence_of(wins, 1_000 - wins) >= nats(0.95, 2, "condorcet")
    assert sure.mean() > 0.9


@pytest.mark.parametrize("name", ["rucb", "double_thompson"])
def test_false_champion_rate_of_equal_arms_under_adaptive_sampling(name: str) -> None:
    error, count = 0.2, 60
    failed = 0
    for run in range(count):
        policy = policies.create(name, 3, seed=run)
        users = MatrixEnvironment(EQUAL, seed=run + 5_000)
        wrong = False
        for _ in range(500):
            first, second = policy.propose()[0].tolist()
            policy.observe(first, second, users.outcome(first, second))
            wrong |= confidence(policy.wins, policy.champion(), policy.seeks) >= 1 - error
        failed += wrong
    assert failed < failure_limit(error, count)


@pytest.mark.parametrize("matrix", ["arxiv", "cycle5", "cyclic"])
@pytest.mark.parametrize("name", ["rucb", "ccb"])
def test_preference_and_regret_bounds_hold_at_all_times(name: str, matrix: str) -> None:
    delta, count, p = 0.1, 40, MATRICES[matrix]
    gaps, copeland = condorcet_regret(p), copeland_regret(p)
    failed = impossible = 0
    for run in range(count):
        policy = policies.create(name, len(p), seed=run)
        users = MatrixEnvironment(p, seed=run + 5_000)
        alone, kept = [0] * len(p), True
        true = {"condorcet": 0.0, "copeland": 0.0}
        for t in range(1, 1_501):
            first, second = policy.propose()[0].tolist()
            policy.observe(first, second, users.outcome(first, second))
            alone[first] += first == second
            true["copeland"] += copeland[first, second]
            if gaps is not None:
                true["condorcet"] += gaps[first, second]
            if t % 50 == 0:
                bound = regret_bound(policy.wins, alone, policy.champion(), delta)
                lower, upper = intervals(policy.wins, delta)
                apart = ~np.eye(len(p), dtype=bool)
                kept &= bool(((lower <= p) & (p <= upper))[apart].all())
                kept &= all(bound[kind] >= regret - 1e-9 for kind, regret in true.items())
        failed += not kept
        impossible += not condorcet_winner_possible(policy.wins, delta)
    assert failed < failure_limit(delta, count)
    if gaps is not None:
        assert impossible < failure_limit(delta, count)

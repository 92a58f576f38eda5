"""Error rates of anytime-valid confidence statements that are read after every duel.

The number of runs that may fail is the largest with a probability of at least 1 in 1,000 if each
run fails with the allowed probability.
"""

from __future__ import annotations

import numpy as np
import pytest

from streamduel import policies
from streamduel.policies import Policy
from streamduel.policies.top_two import TopTwo
from streamduel.preference.arrays import Booleans, Floats, Integers
from streamduel.preference.elimination import Elimination, condorcet_winner_possible
from streamduel.preference.evidence import confidence, intervals, log_evidence_of, nats
from streamduel.preference.regret import regret_bound
from streamduel.simulation.compiled.jit import kernel
from streamduel.simulation.compiled.state import State
from streamduel.simulation.compiled.top_two import (
    Posterior,
    Rules,
    TopTwoRun,
    Wagers,
    posterior_of,
    refresh,
    rules_of,
    wagers_of,
)
from streamduel.simulation.compiled.top_two import run as run_steps
from streamduel.simulation.environment import Environment, MatrixEnvironment
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


ERROR, EXPERIMENTS, DUELS = 0.05, 1_000, 10_000
ENOUGH = float(-np.log(ERROR))


def ordered(n_arms: int, gap: float, equal: int = 0) -> Floats:
    """Each arm beats those after it by the gap; the first `equal` arms are equal."""
    p = 0.5 + gap * np.sign(np.subtract.outer(np.arange(n_arms), np.arange(n_arms))).T
    p[:equal, :equal] = 0.5
    return p


def cycle(n_arms: int) -> Floats:
    """Each arm beats the next half of the others, with 0.6."""
    ahead = np.subtract.outer(np.arange(n_arms), np.arange(n_arms)).T % n_arms
    p = np.where(ahead <= n_arms // 2, 0.6, 0.4)
    np.fill_diagonal(p, 0.5)
    return p


@kernel
def watch(
    state: State,
    wagers: Wagers,
    posterior: Posterior,
    rules: Rules,
    out: Booleans,
    duels: int,
    until: int,
) -> int:
    """`run_steps`, one duel at a time; marks the arms that are ever out."""
    now = -1
    while duels < until and duels != now:
        now, duels = duels, run_steps(state, wagers, posterior, rules, duels, duels + 1)
        for arm in range(len(out)):
            out[arm] |= wagers.against[arm] >= rules.out_at
    return duels


class WatchedRun(TopTwoRun):
    """A run of top-two that is looked at after every duel."""

    def __init__(self, policy: Policy, environment: Environment) -> None:
        super().__init__(policy, environment)
        self.ever_out: Booleans = np.zeros(policy.n_arms, dtype=np.bool_)
        self._kernel, self._parts = watch, (*self._parts, self.ever_out)


def watched(p: Floats, seed: int, duels: int) -> WatchedRun:
    """A run of top-two with the confidence 1 - `ERROR`."""
    policy = TopTwo(len(p), seed=seed, confidence=1 - ERROR)
    simulation = WatchedRun(policy, MatrixEnvironment(p, seed=seed + 5_000))
    simulation.advance(duels)
    return simulation


def test_equal_best_arms_are_rarely_put_out_and_no_arm_is_claimed() -> None:
    # The bound holds for each of the best arms: neither loses to another one.
    ever_out, claimed = np.zeros(4, dtype=np.int64), 0
    for number in range(EXPERIMENTS):
        simulation = watched(ordered(4, 0.1, equal=2), number, DUELS)
        ever_out += simulation.ever_out
        claimed += simulation.policy().finished
    assert ever_out[:2].max() < failure_limit(ERROR, EXPERIMENTS)
    assert claimed < failure_limit(ERROR, EXPERIMENTS)


def test_winner_by_a_tiny_gap_is_rarely_put_out() -> None:
    out = wrong = 0
    for number in range(EXPERIMENTS):
        simulation = watched(ordered(4, 0.005), number, DUELS)
        out += bool(simulation.ever_out[0])
        policy = simulation.policy()
        wrong += policy.finished and policy.champion() != 0
    assert out < failure_limit(ERROR, EXPERIMENTS)
    assert wrong < failure_limit(ERROR, EXPERIMENTS)


@pytest.mark.parametrize("equal", [0, 2])
def test_an_arm_that_another_one_beats_by_more_than_the_margin_is_rarely_the_answer(
    equal: int,
) -> None:
    p, wrong = ordered(4, 0.101, equal), 0  # 0.1, where the bound is closest, would not be wrong
    for number in range(EXPERIMENTS):
        policy = TopTwo(4, seed=number, confidence=1 - ERROR, smallest_difference=0.1)
        simulation = TopTwoRun(policy, MatrixEnvironment(p, seed=number + 5_000))
        simulation.advance(DUELS)
        assert simulation.policy().finished
        wrong += simulation.champion() >= max(equal, 1)
    assert wrong < failure_limit(ERROR, EXPERIMENTS)


@kernel
def ever_put_out(
    wagers: Wagers,
    posterior: Posterior,
    rules: Rules,
    wins: Floats,
    outcomes: Floats,
    waiting: Integers,
    direction: int,
    enough: float,
) -> bool:
    """Whether arm 0 is ever out if an opponent who sees all wagers chooses its rivals.

    Args:
        wagers: before the first duel.
        posterior: unused.
        rules: unused.
        wins: (K, K), zeros.
        outcomes: of the duels, 1 if the rival wins.
        waiting: buffer, as long as outcomes are delayed.
        direction: 1 to choose the rival with the most evidence against arm 0, -1 with the least.
        enough: the evidence.
    """
    for t in range(len(outcomes)):
        place = t % len(waiting)
        if t >= len(waiting):
            rival, won = waiting[place], outcomes[t - len(waiting)]
            wins[rival, 0] += won
            wins[0, rival] += 1 - won
            refresh(wagers, posterior, rules, wins, rival, 0)
            if wagers.against[0] >= enough:
                return True
        chosen = 1
        for rival in range(2, len(wins)):
            if direction * (wagers.beats[rival, 0] - wagers.beats[chosen, 0]) > 0:
                chosen = rival
        waiting[place] = chosen
    return False


@pytest.mark.parametrize("delay", [1, 100])
@pytest.mark.parametrize("direction", [1, -1])
def test_no_choice_of_pairs_puts_an_equal_arm_out(direction: int, delay: int) -> None:
    n_arms, duels, failed = 6, 5_000, 0
    policy = TopTwo(n_arms, seed=1)
    posterior, rules = posterior_of(policy.posterior), rules_of(policy)
    users = np.random.RandomState(3)
    for _ in range(EXPERIMENTS):
        wins = np.zeros((n_arms, n_arms))
        outcomes = users.choice([0.0, 0.5, 1.0], size=duels, p=[0.45, 0.1, 0.45])
        waiting = np.zeros(delay, dtype=np.int64)
        wagers = wagers_of(Elimination(wins))
        failed += ever_put_out(wagers, posterior, rules, wins, outcomes, waiting, direction, ENOUGH)
    assert failed < failure_limit(ERROR, EXPERIMENTS)


@pytest.mark.parametrize("n_arms", [5, 7])
def test_a_cycle_has_no_winner(n_arms: int) -> None:
    impossible = 0
    for number in range(60):
        policy = watched(cycle(n_arms), number, DUELS).policy()
        assert confidence(policy.wins, policy.champion(), "condorcet") < 1 - ERROR
        impossible += not condorcet_winner_possible(policy.wins, ERROR)
    assert impossible >= 58

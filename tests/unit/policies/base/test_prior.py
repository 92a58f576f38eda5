"""Priors: what is allowed, when one is believed, and what it must not change."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from streamduel.errors import PolicyError
from streamduel.policies.base.change_of_arms import with_arms
from streamduel.policies.base.like_arm import with_arm_like
from streamduel.policies.base.normal_posterior import NormalPosterior
from streamduel.policies.base.prior import MAX_WINS, MOST, Belief
from streamduel.policies.top_two import TopTwo
from streamduel.preference.arrays import Floats
from streamduel.preference.counts import WinCounts
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.matrices import bradley_terry
from streamduel.simulation.run import SteppedRun

WINS = [[0.0, 20.0, 25.0], [10.0, 0.0, 20.0], [5.0, 10.0, 0.0]]


@pytest.mark.parametrize(
    "prior",
    [
        3,
        "x",
        [[0, 1], [1]],
        [[0, 1, 2], [1, 0, 2]],
        [["0", "1"], ["1", "0"]],
        [[False, True], [True, False]],
        [[0, -1], [1, 0]],
        [[1, 1], [1, 0]],
        [[0, np.nan], [1, 0]],
        [[0, 2 * MAX_WINS], [1, 0]],
    ],
)
def test_other_priors_are_refused(prior: object) -> None:
    with pytest.raises(PolicyError, match=r"policy.prior must be K lists of K numbers from 0"):
        TopTwo(2, prior=prior)


def test_a_prior_for_another_number_of_arms_is_refused() -> None:
    with pytest.raises(PolicyError, match=r"policy.prior must be for 2 arms, .* \(found 3\)"):
        TopTwo(2, prior=WINS)


def test_there_is_no_prior_for_a_policy_that_may_repeat_the_leader() -> None:
    with pytest.raises(PolicyError, match=r"policy.prior must be left out with aim 'earn'"):
        TopTwo(3, prior=WINS, aim="earn")


def test_the_prior_is_part_of_the_state() -> None:
    policy = TopTwo(3, seed=1, prior=WINS)
    policy.observe([0, 1], [1, 2], [0, 1], [40, 3])
    restored = TopTwo.from_state(json.loads(json.dumps(policy.state_dict())))
    assert restored.parameters["prior"] == WINS
    assert restored.propose(20).tolist() == policy.propose(20).tolist()
    assert "prior" not in TopTwo(3).state_dict()["parameters"], "as in states without the parameter"


def test_a_policy_begins_with_the_pairs_of_its_prior() -> None:
    prior = np.zeros((5, 5))
    prior[3], prior[3, 3], prior[1, [0, 2, 4]] = 30, 0, 30
    pairs = TopTwo(5, seed=1, prior=prior.tolist()).propose(100)
    assert np.mean(pairs[:, 0] == 3) > 0.5, "without a prior, a fifth"


def test_an_arm_that_leaves_takes_its_prior_along_and_a_new_one_has_none() -> None:
    changed = with_arms(TopTwo(3, prior=WINS), [2, None, 0])
    assert changed.parameters["prior"] == [[0, 0, 5], [0, 0, 0], [25, 0, 0]]


def derived(posterior: NormalPosterior) -> list[Any]:
    """All that it keeps."""
    belief = posterior.belief
    assert belief is not None
    return [
        posterior.mean.tolist(), posterior.deviation.tolist(), posterior.beaten.tolist(),
        posterior.score.tolist(), posterior.score_deviation.tolist(), posterior.sums,
        posterior.spreads, belief.wealth, belief.leads.tolist(),
    ]  # fmt: skip


def test_everything_follows_from_the_counts() -> None:
    luck = np.random.RandomState(5)
    counts, beliefs = WinCounts(3), set()
    one_by_one, in_bulk = NormalPosterior(counts, WINS), NormalPosterior(counts, WINS)
    for _ in range(300):
        first, second, wins = luck.randint(3), luck.randint(3), luck.choice([0, 0.5, 1])
        counts.add_one(first, second, wins, luck.randint(1, 5))
        one_by_one.refresh(first, second)
        in_bulk.refresh_many(*np.triu_indices(3, k=1))
        assert one_by_one.belief is not None
        beliefs.add(one_by_one.belief.holds)
        assert derived(one_by_one) == derived(in_bulk) == derived(NormalPosterior(counts, WINS))
    assert beliefs == {True, False}


def test_a_prior_that_calls_arms_equal_says_nothing() -> None:
    equal = TopTwo(3, seed=4, prior=(9 * (1 - np.eye(3))).tolist())
    assert equal.propose(50).tolist() == TopTwo(3, seed=4).propose(50).tolist()


def test_a_weak_winner_keeps_the_belief_and_a_loser_ends_it() -> None:
    duels = np.zeros((2, 2))
    belief = Belief([[0, 900], [100, 0]], duels)
    for winning, held in ((5_800, True), (4_900, False)):
        duels[0, 1], duels[1, 0] = winning, 10_000 - winning
        belief.refresh(0, 1)
        assert belief.holds is held
        assert belief.leads.tolist() == ([[0, 2], [0, 0]] if held else [[0, 0], [0, 0]])


def test_a_prior_that_is_never_tested_is_given_up() -> None:
    duels = np.zeros((3, 3))
    belief = Belief([[0, 0, 9], [0, 0, 9], [0, 0, 0]], duels)
    for met, held in ((128, True), (130, False)):  # by the two arms that it calls equal
        duels[0, 1] = duels[1, 0] = met / 2
        belief.refresh(0, 1)
        assert belief.holds is held


def test_a_prior_is_no_evidence() -> None:
    strong = (1e6 * np.triu(np.ones((3, 3)), k=1)).tolist()
    policy, without = TopTwo(3, seed=4, prior=strong), TopTwo(3, seed=4)
    for counted in (policy, without):
        counted.observe([0, 1, 2], [1, 2, 0], [0, 1, 1], [3, 9, 4])
    assert policy.elimination.against.tolist() == without.elimination.against.tolist()
    assert policy.elimination.beats.tolist() == without.elimination.beats.tolist()
    assert (policy.candidates(), policy.champion()) == (without.candidates(), without.champion())
    assert not policy.finished


def regret(prior: Floats | None) -> float:
    """Mean Condorcet regret of 10 runs of 600 duels, of which the first arm is the best of 8."""
    preferences = bradley_terry(np.linspace(2, 0, 8).tolist())
    given = {} if prior is None else {"prior": prior.tolist()}
    plays = np.zeros((8, 8))
    for seed in range(10):
        run = SteppedRun(TopTwo(8, seed=seed, **given), MatrixEnvironment(preferences, seed=seed))
        run.advance(600)
        plays += run.plays
    lost = preferences[0] - 0.5
    return float((plays * (lost + lost[:, None])).sum()) / 20


def test_a_right_prior_helps_and_a_wrong_one_hardly_harms() -> None:
    # 30 duels of each pair. Over the seeds the mean regret has a standard error of about 5 %.
    known = 30 * bradley_terry(np.linspace(2, 0, 8).tolist())
    np.fill_diagonal(known, 0)
    without, right, wrong = regret(None), regret(known), regret(known.T)
    assert right < 0.9 * without
    assert wrong < 1.3 * without


def test_duels_before_the_prior_of_a_new_arm_do_not_test_it() -> None:
    policy = TopTwo(2, seed=3)
    policy.observe(0, 1, 1, 5000)
    joined = with_arm_like(policy, 0, discount=0.1, cap=30)
    belief = joined.posterior.belief
    assert belief is not None
    assert (belief.wealth, belief.leads[2, 1]) == (0, MOST)
    joined.observe(2, 1, 0, 100)
    assert not belief.holds, "it lost all its duels"
    assert joined.clone().posterior.belief.wealth == belief.wealth  # type: ignore[union-attr]
    again = with_arm_like(joined, 0, discount=0.1, cap=30)
    assert again.parameters["prior"][2] == [0, 0, 0, 0], "a prior that is refuted is dropped"
    assert with_arms(again, [1, 3, 0]).parameters["prior_from"] == [
        [0, 0, 0], [0, 0, 0], [5000, 0, 0],
    ]  # fmt: skip

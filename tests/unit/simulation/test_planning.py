"""Plans: how long until an answer, by simulation, and the A/B test beside it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from streamduel import policies
from streamduel.errors import ConfigurationError, PolicyError
from streamduel.policies import DEFAULT
from streamduel.preference.evidence import confidence
from streamduel.simulation import measurement, planning
from streamduel.simulation.ab_test import ab_test
from streamduel.simulation.certainty import Judge
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.planning import (
    A_DAY,
    LEAST,
    Duration,
    Ending,
    Plan,
    Question,
    make_plan,
)
from streamduel.simulation.planning_report import draw_plan, report
from streamduel.simulation.run import SteppedRun
from streamduel.simulation.seeds import arrangement
from streamduel.simulation.settings import Settings
from streamduel.simulation.simulate import simulate

EASY = Question(arms=3, difference=0.15, impressions_per_day=100.0, runs=25, horizon=20_000)


def test_times_are_those_of_simulate_until_sure() -> None:
    """The same runs, looked at half as often: at most 2 % later."""
    plan = make_plan(EASY, DEFAULT)
    settings = Settings(
        EASY.preferences, [(DEFAULT, {})], horizon=20_000, runs=25, seed=0, until_sure=0.95
    )
    sure = simulate(settings).policies()[0].sure
    assert sure is not None
    for share, expected in ((0.5, sure.median), (0.9, sure.p90)):
        found = plan.durations[0].duels(share)
        assert found is not None
        assert 0.98 * expected <= found <= 1.04 * expected


def test_equal_seeds_give_equal_plans_and_other_seeds_others() -> None:
    first, second = make_plan(EASY, DEFAULT), make_plan(EASY, DEFAULT)
    assert report(first) == report(second)
    other = make_plan(dataclasses.replace(EASY, seed=1), DEFAULT)
    assert other.durations[0].endings != first.durations[0].endings


def test_an_answer_has_the_confidence_that_was_asked_for() -> None:
    """99.9 % takes longer than 60 %, and the policy explores until then."""
    short, long = (
        make_plan(dataclasses.replace(EASY, confidence=level), DEFAULT).durations[0]
        for level in (0.6, 0.999)
    )
    assert long.params["confidence"] == 0.999
    assert long.never == 0
    assert (short.duels(0.5) or 0) < 0.7 * (long.duels(0.5) or 0)


def test_smaller_differences_take_longer_in_the_square() -> None:
    near, far = (
        make_plan(dataclasses.replace(EASY, arms=2, difference=each), DEFAULT).durations[0]
        for each in (0.05, 0.1)
    )
    ratio = (near.duels(0.5) or 0) / (far.duels(0.5) or 1)
    assert 2.5 < ratio < 8  # 4, and the logarithm; the medians of 25 runs vary by some 20 %


def test_impressions_without_clicks_take_time_or_are_ties() -> None:
    drop = make_plan(dataclasses.replace(EASY, click_share=0.5), DEFAULT)
    every = make_plan(EASY, DEFAULT)
    tie = make_plan(dataclasses.replace(EASY, click_share=0.5, no_click="tie"), DEFAULT)
    assert drop.durations == every.durations
    assert drop.impressions(drop.durations[0], 0.5) == 2 * (every.durations[0].duels(0.5) or 0)
    # A tie adds to the variance that the evidence assumes: (1/S)² in place of 1/S.
    assert (tie.durations[0].duels(0.5) or 0) > 2.5 * (every.durations[0].duels(0.5) or 0)


def test_a_list_of_one_ranker_is_a_duel_without_a_click() -> None:
    """Impressions until an answer, beside RUCB shown one list after the other: medians of 30."""
    asked = dataclasses.replace(EASY, difference=0.2, click_share=0.2, runs=30)
    plan, judge, shown = make_plan(asked, "rucb"), Judge(0.95, "condorcet", 3), []
    for seed in range(30):
        policy, rng = policies.create("rucb", 3, seed=seed), np.random.default_rng(seed)
        run, lists = SteppedRun(policy, MatrixEnvironment(asked.preferences, seed=seed)), 0
        while policy.duels % 5 or judge.verdict(run) is None:
            lists += 1
            first, second = policy.propose()[0].tolist()
            if first == second:
                policy.observe(first, second, 0.5)
            elif rng.random() < 0.2:
                policy.observe(
                    first, second, float(rng.random() < asked.preferences[first, second])
                )
        shown.append(lists)
    found = plan.impressions(plan.durations[0], 0.5)
    assert found is not None
    assert 0.75 < found / np.median(shown) < 1.35  # each median has an error of some 10 %


def test_impressions_are_ordered_by_impressions() -> None:
    """With one click in five: 10 duels of two rankers are 50 impressions, 100 of one are 100."""
    endings = (
        Ending("champion", 110, wrong=False, alone=100),
        Ending("champion", 60, wrong=False),
        Ending(None, 1000, wrong=False, alone=960),
    )
    duration = Duration("rucb", {}, 1000, endings)
    plan = Plan(
        dataclasses.replace(EASY, click_share=0.2), (duration,), ab_test(3, 0.15, 0.2, 0.95)
    )
    assert [plan.impressions(duration, share) for share in (0.3, 0.6, 0.9)] == [150, 300, None]
    assert plan.least_impressions(duration, 0.9) == 1160
    assert (duration.duels(0.3), duration.duels(0.6)) == (60, 110)


def test_uniform_choice_needs_more_with_many_arms() -> None:
    plan = make_plan(dataclasses.replace(EASY, arms=6), DEFAULT)
    own, uniform = plan.durations
    assert uniform.name == "uniform"
    assert (uniform.duels(0.5) or 0) > 2 * (own.duels(0.5) or 0)
    assert own.wrong + uniform.wrong <= 5  # at most 5 % each, of 25 runs each


def test_a_plan_of_uniform_has_one_policy() -> None:
    assert [each.name for each in make_plan(EASY, "uniform").durations] == ["uniform"]


def test_runs_without_answer_are_never_and_not_the_horizon() -> None:
    endings = (Ending("champion", 70, wrong=False), *[Ending(None, 100, wrong=False)] * 2)
    duration = Duration("top_two", {}, 100, endings)
    assert (duration.never, duration.duels(0.3), duration.duels(0.5)) == (2, 70, None)
    plan = Plan(EASY, (duration,), ab_test(3, 0.15, 1.0, 0.95))
    listed = report(plan)["policies"][0]
    assert (listed["impressions"]["median"], listed["days"]["p90"]) == (None, None)


def test_time_is_bounded_when_nothing_is_ever_sure() -> None:
    hard = dataclasses.replace(EASY, difference=0.0001, runs=None, horizon=3000)
    plan = make_plan(hard, "pcomp")
    assert all(duration.never == len(duration.endings) for duration in plan.durations)


def test_bradley_terry_is_a_ladder() -> None:
    p = dataclasses.replace(EASY, arms=4, others="bradley-terry").preferences
    assert np.allclose(np.diagonal(p, 1), 0.65)
    assert p[0, 2] > 0.7
    largest = dataclasses.replace(EASY, arms=200, difference=0.499, others="bradley-terry")
    assert np.isfinite(largest.preferences).all()


def test_a_certain_winner_is_known_soon() -> None:
    plan = make_plan(dataclasses.replace(EASY, arms=2, difference=0.5), DEFAULT)
    duels = plan.durations[0].duels(0.5) or 0
    assert confidence(np.array([[0.0, duels], [0.0, 0.0]]), 0, "condorcet") >= 0.95
    assert duels < 20


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"arms": 1}, "--arms must be from 2 to 200 (found 1)"),
        ({"arms": 201}, "--arms must be from 2 to 200 (found 201)"),
        ({"difference": 0.0}, "--difference must be from 0.000001 to 0.5; 0.05 means that"),
        ({"difference": 1e-320}, "(found 1e-320)"),
        ({"difference": 0.51}, "(found 0.51)"),
        ({"difference": float("nan")}, "(found nan)"),
        ({"difference": 0.5, "others": "bradley-terry"}, "from 0.000001 to below 0.5"),
        ({"impressions_per_day": 0.0}, "-per-day must be from 0.001 to 1000000000000 (found 0.0)"),
        ({"impressions_per_day": 1e-320}, "(found 1e-320)"),
        ({"impressions_per_day": float("inf")}, "(found inf)"),
        ({"impressions_per_day": float("nan")}, "(found nan)"),
        ({"click_share": 0.0}, "--click-share must be from 0.000001 to 1; 0.3 means that 30 %"),
        ({"click_share": 1e-320}, "(found 1e-320)"),
        ({"click_share": 1.5}, "(found 1.5)"),
        ({"confidence": 1.0}, "--confidence must be from 0.5 to 0.999999 (found 1.0)"),
        ({"shared": 1.0}, "--shared-clicks must be from 0 to 0.999999 (found 1.0)"),
        ({"runs": 0}, "--runs must be from 1 to 10000 (found 0)"),
        ({"horizon": 0}, "--horizon must be from 1 to 1000000000 (found 0)"),
        ({"seed": -1}, "--seed must be an integer from 0"),
        ({"others": "equall"}, "did you mean 'equal'?"),
        ({"no_click": "half"}, "--no-click must be drop or tie (found 'half')"),
    ],
)
def test_mistakes(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        dataclasses.replace(EASY, **changed)
    assert words in str(refused.value)


def test_the_least_numbers_have_a_plan(tmp_path: Path) -> None:
    least = dataclasses.replace(
        EASY, difference=LEAST, click_share=LEAST, shared=1 - LEAST, impressions_per_day=A_DAY[0],
        runs=1, horizon=10,
    )  # fmt: skip
    plan = make_plan(least, DEFAULT)
    z = NormalDist().inv_cdf(1 - 0.05 / 4) + NormalDist().inv_cdf(0.8)
    exact = 3 * 2 * LEAST * (z / (2 * LEAST**3)) ** 2
    assert plan.ab_test.impressions == pytest.approx(exact, rel=1e-3)  # 10,000 rounding errors
    draw_plan(plan, tmp_path / "plan.svg")


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(PolicyError, match="top_two"):
        make_plan(EASY, "top_twoo")


def test_the_ab_test_has_its_power_and_its_error() -> None:
    """Simulated tests of two proportions: found in about 80 %, false in about 5 %."""
    test = ab_test(2, difference=0.04, click_share=0.5, confidence=0.95)
    n, rng = test.impressions // 2, np.random.default_rng(7)

    def found(one: float, other: float) -> float:
        a, b = rng.binomial(n, one, 4000) / n, rng.binomial(n, other, 4000) / n
        mean = (a + b) / 2
        z = np.abs(a - b) / np.sqrt(2 * mean * (1 - mean) / n)
        return float(np.mean(z > NormalDist().inv_cdf(0.975)))

    assert abs(found(test.best, test.other) - 0.8) < 0.03  # 4 standard errors of 4000 tests: 0.025
    assert abs(found(test.other, test.other) - 0.05) < 0.015


def test_the_ab_test_grows_with_arms_and_shared_clicks() -> None:
    one = ab_test(2, 0.05, 0.3, 0.95).impressions
    assert ab_test(4, 0.05, 0.3, 0.95).impressions > 2 * one
    # Nine of ten users click anyway: a tenth of the difference, some hundred times the size.
    assert 80 < ab_test(2, 0.05, 0.3, 0.95, shared=0.9).impressions / one < 250
    assert ab_test(2, 0.5, 1.0, 0.95).impressions >= 2


def test_a_difference_that_does_not_matter_ends_every_experiment() -> None:
    question = Question(arms=2, difference=0.005, impressions_per_day=1.0, runs=9, horizon=20_000)
    for duration in make_plan(question, "top_two", {"smallest_difference": 0.05}).durations:
        assert (duration.never, duration.wrong) == (0, 0)


def test_a_difference_that_does_not_matter_is_one_of_win_rates() -> None:
    """0.06 of the decided lists are 0.015 of all, with ties as half a win."""
    question = Question(
        arms=2, difference=0.06, impressions_per_day=1.0, click_share=0.25, no_click="tie", runs=30,
        horizon=20_000,
    )  # fmt: skip
    found = make_plan(question, "top_two", {"smallest_difference": 0.05}).durations[0]
    assert (found.never, found.wrong) == (0, 0)


def test_a_prior_is_about_the_arms_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arm 0 is the best one, wherever a run has it."""
    created: list[Any] = []

    def create(*args: Any, create: Any = policies.create, **params: Any) -> Any:
        created.append(create(*args, **params))
        return created[-1]

    monkeypatch.setattr(policies, "create", create)
    prior = [[0.0, 20.0, 10.0], [0.0] * 3, [0.0] * 3]
    question = dataclasses.replace(EASY, runs=6, horizon=20)
    plan = make_plan(question, "top_two", {"prior": prior})
    orders = [arrangement(question.seed, run, 3) for run in range(6)]
    found = [policy.parameters["prior"] for policy in created if policy.name == "top_two"]
    assert found == [np.array(prior)[np.ix_(arms, arms)].tolist() for arms in orders]
    assert len({arms.index(0) for arms in orders}) > 1
    assert plan.durations[0].params["prior"] == prior


def test_a_plan_of_many_duels_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[bool] = []
    start = measurement.start_run

    def start_run(*given: Any, use_compiled: bool) -> Any:
        compiled.append(use_compiled)
        return start(*given, use_compiled=False)

    monkeypatch.setattr(planning, "start_run", start_run)
    for difference in (0.15, 0.001):
        asked = Question(arms=3, difference=difference, impressions_per_day=1.0, runs=1, horizon=10)
        make_plan(asked, "rucb")
    assert compiled == [False, False, True, False]

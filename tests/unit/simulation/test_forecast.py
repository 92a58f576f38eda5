"""Forecasts: simulations that begin at the present counts."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel import policies
from streamduel.errors import PolicyError
from streamduel.preference.arrays import Floats
from streamduel.preference.evidence import confidence
from streamduel.simulation.certainty import Judge
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.forecast import BlockRun, Forecast, Situation, forecast
from streamduel.simulation.run import SteppedRun


def situation(wins: Floats, **changed: object) -> Situation:
    asked: dict[str, object] = {
        "policy": "top_two", "parameters": {}, "wins": wins, "seeks": "condorcet",
        "ties": np.zeros(wins.shape), "confidence": 0.95,
    }  # fmt: skip
    return Situation(**{**asked, **changed})  # type: ignore[arg-type]


def two_arms(won: float, lost: float, **changed: object) -> Situation:
    return situation(np.array([[0.0, won], [lost, 0.0]]), **changed)


def forecast_of(asked: Situation, seed: int = 7, runs: int = 30) -> Forecast:
    ahead = forecast(asked, seed, runs)
    while True:
        try:
            next(ahead)
        except StopIteration as ended:
            found: Forecast = ended.value
            return found


def test_equal_seeds_give_equal_forecasts() -> None:
    first, second, other = (forecast_of(two_arms(330, 270), seed, 10) for seed in (1, 1, 2))
    assert first == second != other


def test_a_clear_lead_ends_soon_and_a_small_one_late() -> None:
    clear, close = forecast_of(two_arms(330, 270)), forecast_of(two_arms(303, 297))
    assert clear.median is not None
    assert 600 < clear.median < 1200
    assert close.median is None or close.median > 4 * clear.median
    assert clear.low is not None
    assert clear.low <= clear.median
    assert clear.high is None or clear.high >= clear.median


def test_equal_rankers_have_no_end_in_sight() -> None:
    equal = np.full((4, 4), 10_000.0)
    np.fill_diagonal(equal, 0)
    found = forecast_of(situation(equal), runs=15)
    assert found.median is None
    assert found.never > 0.5
    assert found.horizon == 20 * 120_000


def test_ties_delay_the_end() -> None:
    """600 duels with the lead of 60, without ties and with 300 of them."""
    tied = np.array([[0, 300], [300, 0]])
    without, some = forecast_of(two_arms(330, 270)), forecast_of(two_arms(330, 270, ties=tied))
    # A tie of half a win each way leaves the lead and halves what tells.
    assert abs((some.median or 0) - (without.median or 0)) < 600


def test_ties_to_come_may_be_more_or_fewer_than_so_far() -> None:
    """Two thirds of ties so far."""
    tied = np.array([[0, 800], [800, 0]])
    none, same, more = (
        forecast_of(two_arms(640, 560, ties=tied, tie_share=share)).median
        for share in (0.0, None, 0.9)
    )
    assert none is not None
    assert same is not None
    assert same - 1200 > 3 * (none - 1200)
    assert more is None


def test_blocks_change_the_time_little() -> None:
    """Duels until an answer, in blocks and one by one: medians of 30 runs."""
    p = np.array([[0.5, 0.6, 0.6], [0.4, 0.5, 0.5], [0.4, 0.5, 0.5]])
    judge = Judge(0.95, "condorcet", 3)
    ends: tuple[list[int], list[int]] = ([], [])
    for seed in range(30):
        policy = policies.create("top_two", 3, seed=seed)
        block = BlockRun(policy, MatrixEnvironment(p, seed=seed), np.random.default_rng(seed))
        while judge.verdict(block) is None:
            block.advance(block.t + 1)
        ends[0].append(block.duels)
        stepped = SteppedRun(
            policies.create("top_two", 3, seed=seed), MatrixEnvironment(p, seed=1000 + seed)
        )
        while judge.verdict(stepped) is None:
            stepped.advance(stepped.t + 5)
        ends[1].append(stepped.t)
    in_blocks, one_by_one = map(np.median, ends)
    assert 0.75 < in_blocks / one_by_one < 1.35  # each median has an error of some 10 %


def test_four_of_five_experiments_end_within_the_forecast() -> None:
    """Preferences drawn from the prior; the interval has 80 %, and 15 are a small sample."""
    inside = told = 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        upper = np.triu(rng.beta(25, 25, (3, 3)), 1)
        p = upper + np.tril(1 - upper.T, -1)
        np.fill_diagonal(p, 0.5)
        run = SteppedRun(policies.create("top_two", 3, seed=seed), MatrixEnvironment(p, seed=seed))
        run.advance(500)
        judge = Judge(0.95, "condorcet", 3)
        if judge.verdict(run) is not None:
            continue
        found = forecast_of(situation(run.wins.copy()), seed, runs=20)
        while judge.verdict(run) is None and run.t < found.horizon:
            run.advance(run.t + run.t // 50)
        end = run.t if run.t < found.horizon else np.inf
        told += 1
        inside += (found.low or np.inf) <= end <= (found.high or np.inf)
    assert told >= 6
    assert inside >= 0.5 * told  # 80 %, less three standard errors of 12


@pytest.mark.parametrize("policy", ["double_thompson", "rucb", "c2b", "merge_rucb", "auto"])
def test_other_policies_go_on_from_the_counts(policy: str) -> None:
    wins = np.array([[0.0, 330.0, 350.0], [270.0, 0.0, 300.0], [250.0, 300.0, 0.0]])
    kind = policies.get(policy)
    parameters = {"horizon": 10**6} if "horizon" in kind.declared else {}
    asked = situation(wins, policy=policy, seeks=kind.seeks, parameters=parameters)
    found = forecast_of(asked, runs=3)
    assert found.began_at == 1800
    assert found.low is None or found.low >= 1800


@pytest.mark.parametrize(
    ("policy", "parameters", "alone"),
    [("top_two", {}, False), ("top_two", {"aim": "earn"}, True), ("rucb", {}, True)],
)
def test_policies_that_serve_an_arm_alone(
    policy: str, parameters: dict[str, object], alone: bool
) -> None:
    asked = two_arms(330, 270, policy=policy, parameters=parameters, confidence=1 - 1e-6)
    found = forecast_of(asked, runs=3)
    assert found.alone == alone


def test_duels_alone_advance_the_time_of_the_policy() -> None:
    """RUCB asks for the next duel of two arms when the logarithm of its time has grown enough."""
    p = np.array([[0.5, 0.65, 0.65], [0.35, 0.5, 0.5], [0.35, 0.5, 0.5]])
    judge, inside = Judge(0.95, "condorcet", 3), 0
    seeds = (4, 5, 6, 9, 19, 30, 33, 43, 50, 52)  # half of 400 duels are alone, and not sure
    for seed in seeds:
        run = SteppedRun(policies.create("rucb", 3, seed=seed), MatrixEnvironment(p, seed=seed))
        run.advance(400)
        alone = int(run.plays.trace())
        assert judge.verdict(run) is None
        found = forecast_of(situation(run.wins.copy(), policy="rucb", alone=alone), seed, runs=20)
        assert (found.began_at, found.alone) == (400, True)
        while judge.verdict(run) is None:
            run.advance(run.t + run.t // 100)
        # Both look for an answer at steps, of 1 % and of two blocks.
        inside += 0.98 * (found.low or np.inf) <= run.t <= 1.02 * (found.high or np.inf)
    assert inside >= 0.5 * len(seeds)  # 80 %, less three standard errors of 10


def test_a_sure_experiment_stays_sure() -> None:
    asked = two_arms(400, 200)
    assert confidence(asked.wins, 0, "condorcet") > 0.95
    found = forecast_of(asked, runs=5)
    assert found.high is not None
    assert found.high < 630


def test_parameters_that_the_policy_refuses() -> None:
    with pytest.raises(PolicyError):
        forecast_of(two_arms(3, 2, parameters={"beta": 1}))

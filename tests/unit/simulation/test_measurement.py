"""One run: its regret is exact, its arms are shuffled, and its settings are checked."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streamduel import policies
from streamduel.errors import ConfigurationError, PolicyError, PreferenceError
from streamduel.preference.regret import KINDS, regrets
from streamduel.simulation.delay import FixedDelay
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.matrices import ARXIV, cyclic
from streamduel.simulation.measurement import _environment, _run, measure
from streamduel.simulation.run import SteppedRun
from streamduel.simulation.seeds import arrangement, run_seeds
from streamduel.simulation.settings import Settings


def settings(**changes: Any) -> Settings:
    given = {"policies": [("rucb", {})], "horizon": 500, "runs": 3, "seed": 7, **changes}
    return Settings(given.pop("preferences", ARXIV), **given)


@pytest.mark.parametrize("kind", KINDS)
def test_regret_is_the_sum_over_all_duels_to_the_last_digit(kind: str) -> None:
    asked = settings(regret=kind)
    run = 2
    arms = arrangement(7, run, 6)
    seeds = run_seeds(7, run, "rucb")
    shuffled = ARXIV[np.ix_(arms, arms)]
    policy = policies.create("rucb", 6, seed=seeds.policy)
    way = SteppedRun(policy, MatrixEnvironment(shuffled, seed=seeds.environment))
    costs = regrets(ARXIV, kind)
    result = measure(asked, asked.specs[0], run)
    for t, found, right in zip(asked.checkpoints, result.regret, result.right, strict=True):
        way.advance(t)
        exact = sum(
            Fraction(costs[arms[i], arms[j]].item() * way.plays[i, j].item())
            for i in range(6)
            for j in range(6)
        )
        assert found == float(exact)
        assert right == (arms[way.champion()] == 0)


def test_equal_settings_make_equal_runs_and_runs_differ() -> None:
    one, same, other = (measure(settings(), settings().specs[0], run) for run in (0, 0, 1))
    assert (one.regret, one.right) == (same.regret, same.right)
    assert one.regret != other.regret


def test_nothing_else_changes_a_run() -> None:
    alone = settings()
    among = settings(policies=[("uniform", {}), ("rucb", {})], runs=50, compiled=False)
    longer = settings(horizon=10_000)
    runs = [
        measure(each, next(c for c in each.specs if c.name == "rucb"), 1)
        for each in (alone, among, longer)
    ]
    assert runs[0].regret == runs[1].regret
    powers = [alone.checkpoints.index(t) for t in (10, 100)]
    assert [runs[0].regret[k] for k in powers] == [
        runs[2].regret[longer.checkpoints.index(t)] for t in (10, 100)
    ]


def test_compiled_or_not_is_the_same() -> None:
    runs = []
    for compiled in (True, False):
        asked = settings(horizon=40_000, runs=10, compiled=compiled)  # enough to be compiled
        runs.append(measure(asked, asked.specs[0], 0))
    assert runs[0].regret == runs[1].regret
    assert runs[0].right == runs[1].right


@pytest.mark.parametrize(
    ("changes", "stepped"),
    [
        ({}, False),
        ({"compiled": False}, True),
        ({"runs": 4}, True),
        ({"changes": {5: ARXIV}}, True),
    ],
)
def test_many_duels_are_compiled(changes: dict[str, Any], stepped: bool) -> None:
    asked, seeds = settings(**{"horizon": 40_000, "runs": 5, **changes}), run_seeds(7, 0, "rucb")
    environment = _environment(asked, arrangement(7, 0, 6), seeds)
    run = _run(asked, policies.create("rucb", 6, seed=seeds.policy), environment, seeds)
    assert isinstance(run, SteppedRun) is stepped


def test_without_a_condorcet_winner_any_copeland_winner_is_right() -> None:
    asked = settings(preferences=cyclic(5, 0.3), regret="copeland", horizon=50)
    run = measure(asked, asked.specs[0], 0)
    assert all(run.right)
    assert not any(run.regret)


def test_a_delay_changes_the_run() -> None:
    prompt, late = settings(), settings(delay=FixedDelay(100))
    results = [measure(each, each.specs[0], 0).regret for each in (prompt, late)]
    assert results[0] != results[1]


def test_a_slate_without_delay_changes_the_run() -> None:
    one, ten = settings(), settings(slate=10)
    results = [measure(each, each.specs[0], 0).regret for each in (one, ten)]
    assert len(results[1]) == len(ten.checkpoints)
    assert results[0] != results[1]


def test_a_policy_that_needs_a_horizon_gets_that_of_the_simulation() -> None:
    asked = settings(policies=[("c2b", {}), ("c2b", {"horizon": 90}), ("rucb", {})])
    params = [contestant.params for contestant in asked.specs]
    assert [each.get("horizon") for each in params] == [500, 90, None]
    assert params[0].keys() == policies.get("c2b").declared.keys()


@pytest.mark.parametrize("parameter", ["prior", "prior_from"])
def test_wins_of_arms_are_about_the_rows_of_the_matrix(
    parameter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arm 4 is favoured, against each other arm by another number of wins."""
    given = [[10.0 * other if arm == 4 != other else 0.0 for other in range(6)] for arm in range(6)]
    asked = settings(policies=[("top_two", {parameter: given})], horizon=20, compiled=False)
    spec = asked.specs[0]
    created: list[Any] = []

    def create(*args: Any, create: Any = policies.create, **params: Any) -> Any:
        created.append(create(*args, **params))
        return created[-1]

    monkeypatch.setattr(policies, "create", create)
    runs = range(5)
    results = [measure(asked, spec, run) for run in runs]
    orders = [arrangement(7, run, 6) for run in runs]
    assert len(created) == len(runs)
    for arms, policy in zip(orders, created, strict=True):
        found = np.array(policy.parameters[parameter])
        assert found.tolist() == np.array(given)[np.ix_(arms, arms)].tolist()
        assert arms[int(found.sum(axis=1).argmax())] == 4
    assert len({arms.index(4) for arms in orders}) > 1
    assert spec.params[parameter] == given
    assert all(result.params == spec.params for result in results)


@pytest.mark.parametrize(
    ("changes", "kind", "sentence"),
    [
        ({"horizon": 0}, ConfigurationError, r"the horizon must be an integer from 1 to \d+"),
        ({"horizon": 1.5}, ConfigurationError, r"the horizon must be .* \(found 1.5\)"),
        ({"runs": 0}, ConfigurationError, r"the number of runs must be an integer from 1"),
        ({"runs": 10**9}, ConfigurationError, r"from 1 to 1000000 \(found 1000000000\)"),
        ({"seed": -1}, ConfigurationError, r"the seed must be an integer from 0 \(found -1\)"),
        ({"slate": 0}, ConfigurationError, r"the slate must be an integer from 1"),
        ({"per_decade": 0}, ConfigurationError, r"checkpoints per decade must be an integer from"),
        ({"policies": []}, ConfigurationError, r"a simulation needs a policy; there are .*rucb"),
        (
            {"policies": [("rucb", {}), ("rucb", {"alpha": 0.51})]}, ConfigurationError,
            "policy 'rucb' is given twice with the same parameters",
        ),
        ({"changes": {-5: ARXIV}}, ConfigurationError, r"time of a change must be an integer from"),
        ({"changes": {0: ARXIV}}, ConfigurationError, r"must be an integer from 1 \(found 0\)"),
        (
            {"changes": {500: ARXIV}}, ConfigurationError,
            r"time of a change must be less than the horizon 500 \(found 500\)",
        ),
        ({"changes": {5: np.full((2, 2), 0.5)}}, ConfigurationError, r"be of 6 arms .*found 2\)"),
        ({"changes": {5: cyclic(6)}}, PreferenceError, "from 5 on: .* needs a Condorcet winner"),
        ({"policies": [("rubc", {})]}, PolicyError, "unknown policy 'rubc'"),
        ({"policies": [("rucb", {"alpha": 0.2})]}, PolicyError, "must be greater than 0.5"),
        ({"regret": "condorect"}, PreferenceError, "did you mean 'condorcet'"),
        ({"preferences": cyclic(5)}, PreferenceError, "needs a Condorcet winner"),
        ({"preferences": [[0.5, 0.7]]}, PreferenceError, "as many rows as columns"),
        ({"ties": 2.0}, PreferenceError, "probability of a tie"),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_anything_starts(
    changes: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind, match=sentence):
        settings(**changes)

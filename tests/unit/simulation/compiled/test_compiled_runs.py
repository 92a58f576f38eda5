"""Compiled runs against stepped ones: equal in every bit, at any stop."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import pytest

from streamduel import policies
from streamduel.errors import PreferenceError
from streamduel.preference.arrays import Floats
from streamduel.simulation import compiled
from streamduel.simulation.compiled import compiled_run
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.run import Run, SteppedRun

pytest.importorskip("numba")


class Case(NamedTuple):
    """A policy as it is configured, and for how long it runs."""

    name: str
    parameters: dict[str, Any]
    duels: int


CASES = [
    Case("rucb", {}, 4_000),
    Case("rucb", {"champion_set": True}, 4_000),
    Case("rucb", {"alpha": 3.0}, 2_000),
    Case("ccb", {}, 4_000),
    Case("ccb", {"alpha": 0.8}, 3_000),
    Case("double_thompson", {}, 1_000),
    Case("double_thompson", {"alpha": 1.5}, 600),
    Case("rmed1", {}, 4_000),
    Case("rmed1", {"f_weight": 0.0}, 3_000),
    Case("top_two", {}, 4_000),
    Case("top_two", {"aim": "earn"}, 3_000),
    Case("top_two", {"confidence": 0.5}, 2_000),
    Case("top_two", {"confidence": 0.5, "min_duels": 1_500}, 2_000),
    Case("top_two", {"smallest_difference": 0.03}, 2_000),
    Case("top_two", {"smallest_difference": 0.2, "confidence": 0.5}, 1_000),
    Case("top_two", {"smallest_difference": 0.2, "aim": "earn"}, 1_000),
    Case("top_two", {"prior": "any"}, 3_000),
    Case("top_two", {"prior": "strong", "confidence": 0.5}, 1_000),
    Case("beat_the_mean", {"horizon": 3_000, "gamma": 1, "tight": True}, 4_000),
    Case("beat_the_mean", {"horizon": 10_000}, 3_000),
]

WITHOUT_STRETCHES = ("double_thompson",)


def line(n_arms: int, dice: np.random.RandomState) -> Floats:
    """Arms in a row, shuffled: a Condorcet winner with gaps from 0.05 to 0.4."""
    rank = dice.permutation(n_arms)
    steps = rank - rank[:, None]
    chances: Floats = 0.5 + 0.05 * np.sign(steps) + 0.35 * steps / n_arms
    return chances


def cycle(n_arms: int, dice: np.random.RandomState) -> Floats:
    """Each arm loses to those before it on a circle: no Condorcet winner."""
    del dice
    steps = (np.arange(n_arms) - np.arange(n_arms)[:, None]) % n_arms
    half = (steps == 0) | (2 * steps == n_arms)
    return np.where(half, 0.5, 0.25 + (2 * steps < n_arms) / 2)


def equals(n_arms: int, dice: np.random.RandomState) -> Floats:
    """All arms are equal."""
    del dice
    return np.full((n_arms, n_arms), 0.5)


def sure(n_arms: int, dice: np.random.RandomState) -> Floats:
    """Who is better always wins."""
    rank = dice.permutation(n_arms)
    chances: Floats = 0.5 + 0.5 * np.sign(rank - rank[:, None])
    return chances


def coins(n_arms: int, dice: np.random.RandomState) -> Floats:
    """Any preferences."""
    upper = np.triu(dice.random_sample((n_arms, n_arms)), k=1)
    lower = np.tril(1 - upper.T, k=-1)
    chances: Floats = upper + lower + np.eye(n_arms) / 2
    return chances


MATRICES = [(line, 5), (cycle, 6), (equals, 3), (sure, 4), (coins, 9)]
"""Each with a number of arms between the least and the most."""


def prior(strength: str, n_arms: int) -> list[list[float]]:
    """Random pseudo-wins."""
    most = {"any": 6, "strong": 1_000}[strength]
    wins = np.random.RandomState(n_arms).random_sample((n_arms, n_arms)) * most
    np.fill_diagonal(wins, 0)
    listed: list[list[float]] = wins.tolist()
    return listed


def both(
    case: Case,
    preferences: Floats,
    seed: int,
    ties: float,
    before: int = 0,
    luck: random.Random | None = None,
) -> tuple[Run, Run]:
    """The same run, compiled and stepped.

    Args:
        case: the policy.
        preferences: of the users.
        seed: of all randomness.
        ties: their probability.
        before: the largest number of duels of a pair that the policy has observed before.
        luck: draws these pairs and numbers; None for no earlier duels.
    """
    run = compiled.find(case.name)
    assert run is not None
    parameters = dict(case.parameters)
    if "prior" in parameters:
        parameters["prior"] = prior(parameters["prior"], len(preferences))
    policy = policies.create(case.name, len(preferences), seed=seed, **parameters)
    if luck is not None:
        for _ in range(8):
            first, second = luck.randrange(policy.n_arms), luck.randrange(policy.n_arms)
            policy.observe(first, second, luck.choice([0, 0.5, 1]), luck.randint(1, before))
    compiled_run, stepped_run = (
        way(policy.clone(), MatrixEnvironment(preferences, ties=ties, seed=seed + 1))
        for way in (run, SteppedRun)
    )
    return compiled_run, stepped_run


def planning(case: Case, horizon: int) -> Case:
    """The case with this horizon, if it has one."""
    given = {"horizon": horizon} if "horizon" in case.parameters else {}
    return case._replace(parameters={**case.parameters, **given})


def environment(run: Run) -> MatrixEnvironment:
    assert isinstance(run._environment, MatrixEnvironment)
    return run._environment


def assert_equal(compiled_run: Run, stepped_run: Run) -> None:
    assert compiled_run.t == stepped_run.t
    assert compiled_run.plays.tolist() == stepped_run.plays.tolist()
    generators = [environment(run).generator for run in (compiled_run, stepped_run)]
    assert generators[0].state_dict() == generators[1].state_dict()
    assert compiled_run.policy().state_dict() == stepped_run.policy().state_dict()
    assert compiled_run.champion() == stepped_run.champion()


@pytest.mark.parametrize(("matrix", "size"), MATRICES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_compiled_is_stepped(case: Case, matrix: Any, size: int) -> None:
    luck = random.Random(str(case))
    for n_arms, ties in ((2, 0.2), (size, 0.0), (size, 0.3), (17, 0.1)):
        seed = luck.randrange(1000)
        preferences = matrix(n_arms, np.random.RandomState(seed))
        quick, slow = both(case, preferences, seed, ties)
        last = case.duels // (2 if n_arms == 17 else 1)
        for stop in (0, 1, *sorted(luck.randrange(last) for _ in range(3)), last):
            quick.advance(stop)
            slow.advance(stop)
            assert_equal(quick, slow)


@pytest.mark.parametrize("seed", range(4))
def test_of_several_winners_both_serve_the_same(seed: int) -> None:
    runs = both(Case("top_two", {}, 2_000), cycle(3, np.random.RandomState(1)), seed, 0.1)
    for run in runs:
        run.advance(2_000)
        assert run.policy().finished
    assert_equal(*runs)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_compiled_run_continues_stepped_and_compiled_again(case: Case) -> None:
    preferences = line(5, np.random.RandomState(1))
    quick, slow = both(case, preferences, 7, 0.1)
    quick.advance(500)
    slow.advance(500)
    stepping = SteppedRun(quick.policy(), environment(quick))
    stepping.advance(500)
    slow.advance(1_000)
    assert stepping.policy().state_dict() == slow.policy().state_dict()
    again = type(quick)(stepping.policy(), environment(quick))
    again.advance(500)
    slow.advance(1_500)
    assert again.policy().state_dict() == slow.policy().state_dict()
    assert again.champion() == slow.champion()


@pytest.mark.parametrize("most", [60, 10**8])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_after_duels_that_were_not_proposed(case: Case, most: int) -> None:
    # Few of each pair, with halves among them; or so many that what is rounded looks different.
    luck = random.Random(f"{case} {most}")
    for n_arms in (2, 5):
        preferences = coins(n_arms, np.random.RandomState(n_arms))
        runs = both(planning(case, 10**10), preferences, n_arms, 0.3, most, luck)
        for stop in (1, 40, 700):
            for run in runs:
                run.advance(stop)
            assert_equal(*runs)


@pytest.mark.parametrize("name", sorted({*compiled.names()} - {*WITHOUT_STRETCHES}))
def test_duels_that_change_no_bound_are_counted_at_once(name: str) -> None:
    case = next(case for case in CASES if case.name == name)
    quick, slow = both(planning(case, 10**12), line(4, np.random.RandomState(3)), 5, 0.0)
    quick.advance(10**8)
    slow.advance(10**8)
    assert_equal(quick, slow)
    quick.advance(10**12)  # one by one, the work of hours
    assert quick.t == quick.plays.sum() == quick.policy().duels == 10**12


@pytest.mark.parametrize("block", [1, 300])
@pytest.mark.parametrize("name", sorted(compiled.names()))
def test_words_may_run_out_at_any_step(
    name: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_run, "_BLOCK", block)
    case = next(case for case in CASES if case.name == name)
    quick, slow = both(case, coins(5, np.random.RandomState(2)), 3, 0.2)
    quick.advance(900)
    slow.advance(900)
    assert_equal(quick, slow)


def test_a_step_that_runs_out_of_words_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_run, "_BLOCK", 1)
    monkeypatch.setattr(compiled_run, "_REJECTIONS", 0)
    for name in ("double_thompson",):
        quick, slow = both(Case(name, {}, 300), equals(7, np.random.RandomState(1)), 3, 0.2)
        quick._margin = 1  # type: ignore[attr-defined]
        for stop in (1, 2, 120, 300):
            quick.advance(stop)
            slow.advance(stop)
            assert_equal(quick, slow)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_going_back_in_time_does_nothing(case: Case) -> None:
    quick, _ = both(case, equals(3, np.random.RandomState(1)), 7, 0.0)
    quick.advance(50)
    before = quick.policy().state_dict()
    quick.advance(20)
    assert quick.t == 50
    assert quick.policy().state_dict() == before
    quick.plays[:] = 0
    assert quick.plays.sum() == 50


def test_every_kernel_is_tested() -> None:
    assert {case.name for case in CASES} == set(compiled.names())


def test_a_policy_without_a_kernel_has_no_compiled_run() -> None:
    assert compiled.find("uniform") is None


def test_another_number_of_arms_is_refused() -> None:
    run = compiled.find("rucb")
    assert run is not None
    with pytest.raises(PreferenceError, match="3 arms needs a matrix of as many"):
        run(policies.create("rucb", 3), MatrixEnvironment(np.full((2, 2), 0.5), seed=1))

"""Changing preferences: their time and the regret."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel.errors import PreferenceError
from streamduel.policies import create
from streamduel.simulation.environment import DriftingEnvironment, MatrixEnvironment
from streamduel.simulation.measurement import measure, start_run
from streamduel.simulation.run import SteppedRun
from streamduel.simulation.settings import Settings

EARLY = np.array([[0.5, 0.9], [0.1, 0.5]])
LATE = np.array([[0.5, 0.2], [0.8, 0.5]])


@pytest.mark.parametrize(("t", "p"), [(0, 0.9), (99, 0.9), (100, 0.2), (199, 0.2), (200, 0.7)])
def test_each_time_has_its_preferences(t: int, p: float) -> None:
    environment = DriftingEnvironment(EARLY, {200: [[0.5, 0.7], [0.3, 0.5]], 100: LATE}, seed=1)
    assert environment.times == [100, 200]
    environment.move_to(t)
    fresh = MatrixEnvironment([[0.5, p], [round(1 - p, 1), 0.5]], seed=1)
    assert (environment.preferences == fresh.preferences).all()
    assert (environment.win_below == fresh.win_below).all()
    assert [environment.outcome(0, 1) for _ in range(50)] == [
        fresh.outcome(0, 1) for _ in range(50)
    ]


def test_moving_back_is_possible() -> None:
    environment = DriftingEnvironment(EARLY, {100: LATE}, seed=1)
    environment.move_to(100)
    environment.move_to(0)
    assert (environment.preferences == EARLY).all()


def test_arrays_stay_the_same_objects() -> None:
    environment = DriftingEnvironment(EARLY, {100: LATE}, seed=1)
    win, tie = environment.win_below, environment.tie_below
    environment.move_to(100)
    assert environment.win_below is win
    assert environment.tie_below is tie


def test_no_compiled_run_is_taken_with_drift() -> None:
    environment = DriftingEnvironment(EARLY, {100: LATE}, seed=1)
    assert type(start_run(create("rucb", 2), environment)) is SteppedRun


def test_regret_is_against_the_present_preferences() -> None:
    # The gap is 0.4 up to duel 50 and 0.3 after it, and the uniform policy, which knows nothing,
    # has only one pair: each duel costs half the gap.
    settings = Settings(EARLY, [("uniform", {})], horizon=150, runs=1, seed=3, changes={50: LATE})
    run = measure(settings, settings.specs[0], 0)
    costs = {t: 0.2 * min(t, 50) + 0.15 * max(t - 50, 0) for t in settings.checkpoints}
    assert run.regret == pytest.approx(list(costs.values()))


@pytest.mark.parametrize("run", [0, 1, 2])
def test_the_champion_is_compared_with_the_present_winner(run: int) -> None:
    settings = Settings(
        EARLY, [("uniform", {})], horizon=3000, runs=3, seed=3, changes={1000: LATE}
    )
    result = measure(settings, settings.specs[0], run)
    right = dict(zip(settings.checkpoints, result.right, strict=True))
    assert right[1000]  # that duel was still fought under the first preferences
    assert not right[1259]  # a policy that keeps all counts is slow to change its mind


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({0: LATE}, "must come after at least 1 duel"),
        ({5: np.full((3, 3), 0.5)}, r"be of 2 arms \(found one after 5 of 3\)"),
        ({5: [[0.5, 0.7], [0.7, 0.5]]}, "The preference matrix from 5 on: .* must add up to 1"),
    ],
)
def test_mistakes_are_named(changes: dict[int, np.ndarray], sentence: str) -> None:
    with pytest.raises(PreferenceError, match=sentence):
        DriftingEnvironment(EARLY, changes, seed=0)

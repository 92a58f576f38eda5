"""Duels of rankers are interleaved impressions, and go to the better ranker."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from streamduel.errors import ConfigurationError
from streamduel.interleaving.credit import Shown, click_count, on_ranks
from streamduel.policies import create
from streamduel.preference.matrix import check
from streamduel.records import Duel, Interleaving
from streamduel.simulation.click_models import click_model
from streamduel.simulation.rankers import GRADE_SHARES, RankerEnvironment
from streamduel.simulation.run import SteppedRun
from tests.unit.preference.matrices import is_total_order

NOISE = [0.3, 1.0, 3.0]
NAMES = ["good", "fair", "poor"]


@pytest.fixture(scope="module")
def rankers() -> RankerEnvironment:
    return RankerEnvironment(NOISE, click_model("navigational"), samples=1500, seed=7)


def test_grades_have_their_shares() -> None:
    grades = RankerEnvironment(NOISE, click_model("perfect"), queries=400, seed=1).grades
    for grade, share in enumerate(GRADE_SHARES):
        error = (share * (1 - share) / grades.size) ** 0.5
        assert abs((grades == grade).mean() - share) < 4 * error


def test_each_ranking_has_each_document_once_and_less_noise_ranks_better(
    rankers: RankerEnvironment,
) -> None:
    assert rankers.rankings.shape == (3, 100, 30)
    assert (np.sort(rankers.rankings, axis=2) == np.arange(30)).all()
    top = [
        np.take_along_axis(rankers.grades, ranking, axis=1)[:, :10].mean()
        for ranking in rankers.rankings
    ]
    assert top == sorted(top, reverse=True)


def test_preferences_are_a_matrix_in_the_order_of_quality(rankers: RankerEnvironment) -> None:
    p = rankers.preferences
    assert (check(p) == p).all()
    assert is_total_order(p)
    assert p[0, 2] > p[0, 1] > 0.5


def test_duels_agree_with_the_estimate_within_its_error(rankers: RankerEnvironment) -> None:
    n = 1500
    outcomes = np.array([rankers.outcome(0, 1) for _ in range(n)])
    error = np.hypot(rankers.estimate.std_error[0, 1], outcomes.std() / n**0.5)
    assert abs(outcomes.mean() - rankers.preferences[0, 1]) < 4 * error


def test_estimates_do_not_change_the_impressions() -> None:
    asked, other = (
        RankerEnvironment(NOISE, click_model("perfect"), queries=5, samples=10, seed=3)
        for _ in range(2)
    )
    assert asked.estimate.std_error.shape == (3, 3)
    assert [asked.impression(0, 1) for _ in range(20)] == [
        other.impression(0, 1) for _ in range(20)
    ]


def test_identical_rankers_are_equal() -> None:
    twins = RankerEnvironment([0.0, 0.0], click_model("informational"), samples=2000, seed=5)
    p, error = twins.estimate
    assert abs(p[0, 1] - 0.5) < 4 * error[0, 1]


def test_an_arm_alone_is_a_tie_and_draws_nothing(rankers: RankerEnvironment) -> None:
    assert rankers.outcome(1, 1) == 0.5


def test_a_list_shows_its_documents(rankers: RankerEnvironment) -> None:
    for _ in range(50):
        shown = rankers.impression(0, 2)
        assert len(shown.docs) == len(set(shown.docs)) == 10
        assert shown.teams.count("a") == shown.teams.count("b") == 5
        assert shown.clicks == sorted(set(shown.clicks))


def test_records_are_those_of_the_stream() -> None:
    made, fought = (RankerEnvironment(NOISE, click_model("navigational"), seed=9) for _ in range(2))
    for number in range(200):
        made_record = made.record(0, 1, NAMES, experiment="s", record_id=f"r{number}", ts=number)
        record = msgspec.json.decode(json.dumps(made_record), type=Duel | Interleaving)
        assert isinstance(record, Interleaving)
        assert (record.id, record.a, record.b) == (f"r{number}", "good", "fair")
        credited = click_count(Shown(made_record["teams"]), on_ranks(made_record["clicks"]))
        assert credited == fought.outcome(0, 1)


def test_an_arm_alone_is_a_duel_without_winner(rankers: RankerEnvironment) -> None:
    made = rankers.record(1, 1, NAMES, experiment="s", record_id="r1", ts=5)
    record = msgspec.json.decode(json.dumps(made), type=Duel | Interleaving)
    assert isinstance(record, Duel)
    assert (record.a, record.b, record.winner) == ("fair", "fair", None)


def test_a_policy_finds_the_best_ranker() -> None:
    rankers = RankerEnvironment(NOISE, click_model("perfect"), queries=50, seed=2)
    way = SteppedRun(create("rucb", 3, seed=1), rankers)
    way.advance(1500)
    assert way.champion() == 0
    assert way.plays.sum() == way.t == 1500


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"noise": [1.0]}, "rankers must be at least 2"),
        ({"noise": [1.0, -1.0]}, "noise must be at least 0"),
        ({"noise": [1.0, float("nan")]}, "noise must be at least 0"),
        ({"queries": 0}, "queries must be at least 1"),
        ({"documents": 0}, "documents must be at least 1"),
        ({"length": 0}, "length must be at least 1"),
        ({"samples": 1}, "samples must be at least 2"),
    ],
)
def test_mistakes_are_named(changes: dict[str, object], sentence: str) -> None:
    arguments = {"noise": NOISE, "clicks": click_model("perfect"), "seed": 0, **changes}
    with pytest.raises(ConfigurationError, match=sentence):
        RankerEnvironment(**arguments)  # type: ignore[arg-type]


def test_randomness_is_the_seeds() -> None:
    one, same, other = (
        RankerEnvironment(NOISE, click_model("perfect"), queries=5, seed=seed) for seed in (1, 1, 2)
    )
    assert (one.rankings == same.rankings).all()
    assert not (one.rankings == other.rankings).all()

"""The prior of an experiment: its mistakes, and the pseudo-wins that it becomes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from streamduel.config.prior import PriorSettings
from tests.unit.config.configurations import changed, written
from tests.unit.config.sentences import told

PRIOR = "experiments.search.prior"
ARMS = "bm25, ltr-v1, ltr-v2"


@pytest.mark.parametrize(
    ("prior", "sentence"),
    [
        (
            {"wins": {"bm25": {"ltr-v1": 1}}, "scores": {"bm25": 1}},
            f"{PRIOR} must have either wins or scores (found both).",
        ),
        (
            {"wins": {"bm52": {"ltr-v1": 1}}},
            f"{PRIOR}.wins must name arms, {ARMS} (found 'bm52'); did you mean 'bm25'?",
        ),
        (
            {"wins": {"bm25": {"x": 1}}},
            f"{PRIOR}.wins must name arms, {ARMS} (found 'x').",
        ),
        (
            {"wins": {"bm25": {"bm25": 1}}},
            f"{PRIOR}.wins must have no wins of an arm over itself (found 'bm25').",
        ),
        (
            {"wins": {"bm25": {"ltr-v1": -1}}},
            f"{PRIOR}.wins.bm25.ltr-v1 must be a number at least 0 and at most 1e+15 (found -1).",
        ),
        (
            {"scores": {"ltr-v3": 0.4}},
            f"{PRIOR}.scores must name arms, {ARMS} (found 'ltr-v3'); did you mean 'ltr-v2'?",
        ),
        (
            {"scores": {"bm25": math.inf}},
            f"{PRIOR}.scores.bm25 must be a number at least -1e+15 and at most 1e+15 (found inf).",
        ),
        (
            {"scores": {"bm25": 1}, "discount": 2},
            f"{PRIOR}.discount must be a number above 0 and at most 1 (found 2).",
        ),
        (
            {"scores": {"bm25": 1}, "cap": 5000},
            f"{PRIOR}.cap must be a number above 0 and at most 1000 (found 5000).",
        ),
    ],
)
def test_a_mistake_is_one_sentence(prior: Any, sentence: str, tmp_path: Path) -> None:
    changes = {"experiments.search.policy": {"name": "top_two"}, PRIOR: prior}
    assert told(tmp_path / "search.yaml", written(changed(changes))) == [sentence]


def test_only_some_policies_use_a_prior(tmp_path: Path) -> None:
    changes = {
        "experiments.search.policy": {"name": "rucb"},
        PRIOR: {"scores": {"bm25": 0.3, "ltr-v1": 0.4}},
    }
    assert told(tmp_path / "search.yaml", written(changed(changes))) == [
        f"{PRIOR} must be left out with policy 'rucb'; policies that use one: top_two."
    ]


def test_no_prior_with_the_aim_earn(tmp_path: Path) -> None:
    changes = {"experiments.search.policy": {"name": "top_two"}, "experiments.search.aim": "earn"}
    prior = {PRIOR: {"scores": {"bm25": 0.3, "ltr-v1": 0.4}}}
    (sentence,) = told(tmp_path / "search.yaml", written(changed({**changes, **prior})))
    assert sentence.startswith(f"{PRIOR} must be left out with aim 'earn'")


def test_a_prior_is_no_parameter_of_the_configured_policy(tmp_path: Path) -> None:
    wins = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    changes = {"experiments.search.policy": {"name": "top_two", "prior": wins}}
    assert told(tmp_path / "search.yaml", written(changed(changes))) == [
        "experiments.search.policy.prior must be left out; the experiment's own key prior names"
        " the arms."
    ]


def test_each_pair_is_discounted_and_capped() -> None:
    prior = PriorSettings(
        wins={"a": {"a": 0, "b": 75, "c": 40}, "b": {"a": 25}}, discount=0.2, cap=10
    )
    assert prior.pseudo_wins(["c", "a", "b"]) == [[0, 0, 0], [8, 0, 7.5], [0, 2.5, 0]]


def test_the_scale_of_scores_does_not_matter() -> None:
    scores = {"a": 1.0, "b": 2.0, "c": 4.0}
    arms = [*scores, "d"]
    one = PriorSettings(scores=scores).pseudo_wins(arms)
    other = PriorSettings(scores={arm: 8 * score - 2 for arm, score in scores.items()})
    assert other.pseudo_wins(arms) == one
    assert [one[i][j] + one[j][i] for i, j in ((0, 1), (0, 2), (1, 2))] == pytest.approx([30] * 3)
    assert one[2][0] > one[2][1] > 15
    assert one[3] == [row[3] for row in one] == [0] * 4


@pytest.mark.parametrize("scores", [{}, {"a": 3.0}, {"a": 3.0, "b": 3.0}])
def test_equal_scores_say_nothing(scores: dict[str, float]) -> None:
    wins = PriorSettings(scores=scores).pseudo_wins(["a", "b"])
    assert wins[0][1] == wins[1][0]

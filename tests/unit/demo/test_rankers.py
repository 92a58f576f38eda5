"""The demo's rankers, recipes and true preferences."""

from __future__ import annotations

import numpy as np
import pytest

from streamduel.demo.rankers import (
    LENGTH,
    MAX_ARMS,
    MIN_ARMS,
    MIN_LEAD,
    NAMES,
    make_rankers,
    true_preferences,
)
from streamduel.demo.users import CLICKS, QUERIES, RECIPES, Users, grade
from streamduel.interleaving.credit import Shown, click_count, on_ranks
from streamduel.interleaving.team_draft import interleave
from streamduel.policies.base.generator import Generator


class Coins:
    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def getrandbits(self, k: int, /) -> int:
        return self._generator.below(1 << k)


def test_names_are_different_and_fit_a_small_terminal() -> None:
    assert len(set(NAMES)) == MAX_ARMS == 20
    assert max(map(len, NAMES)) <= 14
    assert len(set(map(str, RECIPES))) == len(RECIPES)
    assert max(len(str(recipe)) for recipe in RECIPES) <= 24


def test_each_query_has_one_recipe_that_is_meant_and_all_grades() -> None:
    for query in QUERIES:
        grades = [grade(query, recipe) for recipe in RECIPES]
        assert grades.count(4) == 1
        assert str(RECIPES[grades.index(4)]) == f"classic {query}"
        assert set(grades) == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("n_arms", [MIN_ARMS, 3, 6, MAX_ARMS])
def test_the_best_ranker_beats_all_others_clearly(n_arms: int) -> None:
    rankers = make_rankers(n_arms, seed=1)
    assert rankers.arms == NAMES[:n_arms]
    assert np.delete(rankers.preferences[rankers.best], rankers.best).min() >= 0.5 + MIN_LEAD
    assert np.allclose(rankers.preferences + rankers.preferences.T, 1)
    assert len(rankers.worse_half) == n_arms // 2
    others = set(range(n_arms)) - set(rankers.worse_half)
    ahead = rankers.preferences[rankers.best]
    assert min(ahead[list(rankers.worse_half)]) >= max(ahead[list(others)])


def test_rankers_depend_on_the_seed_only() -> None:
    one, same, other = make_rankers(6, 3), make_rankers(6, 3), make_rankers(6, 4)
    assert one.rankings == same.rankings
    assert one.rankings != other.rankings
    assert len({make_rankers(6, seed).best for seed in range(12)}) > 3


def test_a_close_race_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first = make_rankers(2, 0)
    lead = first.preferences.max() - 0.5
    monkeypatch.setattr("streamduel.demo.rankers.MIN_LEAD", lead + 1e-6)
    second = make_rankers(2, 0)
    assert second.preferences.max() - 0.5 > lead


def test_the_true_preferences_are_the_limit_of_many_users() -> None:
    rankers, users = make_rankers(2, seed=5), Generator(8)
    outcomes = []
    for _ in range(20_000):
        query = users.below(len(QUERIES))
        docs, teams = interleave(
            rankers.rankings[0][query], rankers.rankings[1][query], LENGTH, Coins(users)
        )
        clicks = CLICKS.clicks([rankers.grades[query][doc] for doc in docs], users)
        outcomes.append(click_count(Shown(teams), on_ranks(clicks)))
    error = np.std(outcomes) / np.sqrt(len(outcomes))
    assert abs(np.mean(outcomes) - rankers.preferences[0, 1]) < 4 * error  # 1 in 16,000 exceeds it


def test_equal_rankers_are_equal_in_truth() -> None:
    rankers = make_rankers(2, seed=5)
    p = true_preferences([rankers.rankings[0]] * 2, rankers.grades, CLICKS, LENGTH)
    assert p == pytest.approx(np.full((2, 2), 0.5))


def test_equal_seeds_make_equal_users_who_prefer_relevant_recipes() -> None:
    rankers = make_rankers(2, seed=5)
    one, same = Users(rankers.grades, 9), Users(rankers.grades, 9)
    clicked = [0, 0]
    for _ in range(300):
        query = one.query()
        assert same.query() == query
        good, bad = rankers.grades[query].index(4), rankers.grades[query].index(0)
        clicks = one.clicks(query, [bad, good])
        assert same.clicks(query, [bad, good]) == clicks
        for rank in clicks:
            clicked[rank] += 1
    assert clicked[1] > 1.5 * clicked[0]

"""Simulated users click with the probabilities of their model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from streamduel.errors import ConfigurationError
from streamduel.policies.base.generator import Generator
from streamduel.simulation.click_models import CLICK_MODELS, ClickModel, click_model

USERS = 20_000
GRADES = [2, 0, 4, 1, 3]


def chances(model: ClickModel, grades: list[int]) -> dict[tuple[int, ...], float]:
    """The probability of every set of clicks, by going through all of a user's ways."""
    ways: dict[tuple[int, ...], float] = {}

    def read(rank: int, clicked: tuple[int, ...], chance: float) -> None:
        if rank == len(grades) or chance == 0:
            ways[clicked] = ways.get(clicked, 0.0) + chance
            return
        click, stop = model.click[grades[rank]], model.stop[grades[rank]]
        read(rank + 1, clicked, chance * (1 - click))
        read(rank + 1, (*clicked, rank), chance * click * (1 - stop))
        read(len(grades), (*clicked, rank), chance * click * stop)

    read(0, (), 1.0)
    return ways


@pytest.mark.parametrize("name", CLICK_MODELS)
def test_every_set_of_clicks_is_as_frequent_as_the_model_says(name: str) -> None:
    model, generator = click_model(name), Generator(7)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(USERS):
        clicked = tuple(model.clicks(GRADES, generator))
        counts[clicked] = counts.get(clicked, 0) + 1
    expected = chances(model, GRADES)
    assert sum(expected.values()) == pytest.approx(1)
    every = itertools.chain.from_iterable(itertools.combinations(range(5), k) for k in range(6))
    for clicked in every:
        p = expected.get(clicked, 0.0)
        assert abs(counts.get(clicked, 0) / USERS - p) <= 4.5 * (p * (1 - p) / USERS) ** 0.5


def test_the_models_are_the_published_ones() -> None:
    assert {name: (model.click, model.stop) for name, model in CLICK_MODELS.items()} == {
        "perfect": ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
        "navigational": ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
        "informational": ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
    }


def test_the_perfect_user_never_stops_and_never_clicks_on_what_is_irrelevant() -> None:
    model, generator = click_model("perfect"), Generator(1)
    for _ in range(200):
        assert model.clicks([0, 4, 0, 4, 4], generator) == [1, 3, 4]


def test_a_user_who_always_stops_clicks_once() -> None:
    model = ClickModel("one", (1.0,) * 5, (1.0,) * 5)
    assert model.clicks([0, 4, 2], Generator(1)) == [0]


def test_better_documents_are_clicked_more_in_every_published_model() -> None:
    for model in CLICK_MODELS.values():
        assert list(model.click) == sorted(model.click)
        assert list(model.stop) == sorted(model.stop)
    noise = {name: model.click[0] for name, model in CLICK_MODELS.items()}
    assert noise["perfect"] < noise["navigational"] < noise["informational"]
    assert np.allclose([model.click[0] for model in CLICK_MODELS.values()], [0, 0.05, 0.4])


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigurationError, match=r"\(found 'navigation'; did you mean"):
        click_model("navigation")
    with pytest.raises(ConfigurationError, match="click must be 5 probabilities"):
        ClickModel("x", (0.1,), (0.0,) * 5)
    with pytest.raises(ConfigurationError, match="stop must be 5 probabilities"):
        ClickModel("x", (0.1,) * 5, (0.0, 0.0, 0.0, 0.0, 1.5))

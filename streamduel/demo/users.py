"""The demo's users: their queries, the recipes they search, and their clicks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final, NamedTuple

from streamduel.policies.base.generator import Generator
from streamduel.simulation.click_models import CLICK_MODELS

CLICKS: Final = CLICK_MODELS["informational"]
"""The click model: users who look for a recipe open a few, and err at times."""

_APART: Final = 1 << 100
"""The distance, in words, of the users' part of the random stream from that of the rankers."""

MAIN: Final = ("apple", "carrot", "lemon", "mushroom", "onion", "pumpkin")
DISHES: Final = ("cake", "pie", "soup", "tart")
STYLES: Final = ("classic", "quick", "vegan")

FULL: Final = 4
"""The grade of the best match: the classic recipe of a query."""


class Recipe(NamedTuple):
    """A document of the demo."""

    style: str
    main: str
    dish: str

    def __str__(self) -> str:
        return " ".join(self)


class Query(NamedTuple):
    """A query of the demo."""

    main: str
    dish: str

    def __str__(self) -> str:
        return " ".join(self)


RECIPES: Final = tuple(Recipe(*words) for words in product(STYLES, MAIN, DISHES))
QUERIES: Final = tuple(Query(*words) for words in product(MAIN, DISHES))


def grade(query: Query, recipe: Recipe) -> int:
    """The relevance of a recipe for a query, from 0 to 4.

    >>> [grade(Query("apple", "pie"), Recipe(*words.split())) for words in (
    ...     "classic apple pie", "vegan apple pie", "classic apple tart", "quick apple soup",
    ...     "quick onion pie", "vegan lemon soup")]
    [4, 3, 2, 1, 1, 0]
    """
    both = (query.main == recipe.main) + (query.dish == recipe.dish)
    if both == 2:
        return FULL if recipe.style == STYLES[0] else FULL - 1
    return both + (both == 1 and recipe.main == query.main and recipe.style == STYLES[0])


class Users:
    """Simulated users, one after the other; equal seeds make equal users."""

    def __init__(self, grades: Sequence[Sequence[int]], seed: int) -> None:
        self._grades = grades
        self._generator = Generator(seed)
        self._generator.skip(_APART)

    def query(self) -> int:
        """The next user's query, an index of `QUERIES`."""
        return self._generator.below(len(self._grades))

    def clicks(self, query: int, docs: Sequence[int]) -> list[int]:
        """The clicked ranks, ascending from 0, of a user who is shown these recipes."""
        grades = self._grades[query]
        return CLICKS.clicks([grades[doc] for doc in docs], self._generator)

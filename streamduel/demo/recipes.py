"""What the demo's users look for: recipes with names that say how well they fit a query."""

from __future__ import annotations

from itertools import product
from typing import Final, NamedTuple

MAIN: Final = ("apple", "carrot", "lemon", "mushroom", "onion", "pumpkin")
DISHES: Final = ("cake", "pie", "soup", "tart")
STYLES: Final = ("classic", "quick", "vegan")

FULL: Final = 4
"""The grade of the recipe that everybody means: the classic one of what was asked for."""


class Recipe(NamedTuple):
    """A document of the demo."""

    style: str
    main: str
    dish: str

    def __str__(self) -> str:
        return " ".join(self)


class Query(NamedTuple):
    """What a user types."""

    main: str
    dish: str

    def __str__(self) -> str:
        return " ".join(self)


RECIPES: Final = tuple(Recipe(*words) for words in product(STYLES, MAIN, DISHES))
QUERIES: Final = tuple(Query(*words) for words in product(MAIN, DISHES))


def grade(query: Query, recipe: Recipe) -> int:
    """How well a recipe fits, as judges of search results say it: from 0, not at all, to 4.

    >>> [grade(Query("apple", "pie"), Recipe(*words.split())) for words in (
    ...     "classic apple pie", "vegan apple pie", "classic apple tart", "quick apple soup",
    ...     "quick onion pie", "vegan lemon soup")]
    [4, 3, 2, 1, 1, 0]
    """
    both = (query.main == recipe.main) + (query.dish == recipe.dish)
    if both == 2:
        return FULL if recipe.style == STYLES[0] else FULL - 1
    return both + (both == 1 and recipe.main == query.main and recipe.style == STYLES[0])

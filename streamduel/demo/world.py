"""The demo's rankers: who they are, how they rank, and which one is truly the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from streamduel.demo.recipes import QUERIES, RECIPES, grade
from streamduel.demo.truth import preferences
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Floats, Integers
from streamduel.preference.winners import condorcet_winner
from streamduel.simulation.click_models import CLICK_MODELS
from streamduel.simulation.matrices import uniform

NAMES: Final = (
    "bm25", "dense-v1", "hybrid", "ltr-v1", "ltr-v2", "top-rated",
    "bm25f", "tf-idf", "title-match", "newest", "most-cooked", "dense-v2", "ltr-v3",
    "cross-encoder", "splade", "graph", "personal", "session", "seasonal", "editors",
)  # fmt: skip
"""What rankers are called; which of them is good, the seed decides."""

FEWEST, MOST = 2, len(NAMES)

LENGTH: Final = 6
"""Documents in a list: three picks for each ranker, and a page that fits a small terminal."""

USERS: Final = CLICK_MODELS["informational"]
"""How users click: people who look for a recipe open a few, and err now and then."""

BEST_NOISE: Final = 0.4
OTHER_NOISE: Final = (1.8, 3.4)
"""By how much rankers misjudge a recipe's grade, from 0 to 4, as a standard deviation: the best
one, and the least and the most of the others. The best then wins 62 to 78 % of its duels: far more
than in practice, where 52 % is worth having, for nobody watches a demo for a week."""

LEAST_GAP: Final = 0.06
"""A world whose best ranker wins less than 56 % against some other one is drawn again: some
thousand duels could not tell them apart."""


@dataclass(frozen=True, eq=False)
class World:
    """Rankers of recipes, and what only the demo knows about them.

    Attributes:
        arms: their names.
        grades: (queries, recipes), how well each recipe fits.
        rankings: (K, queries, `LENGTH`), the recipes that each ranker puts on top, as indices.
        preferences: (K, K), how often each ranker beats each other one, a tie being half a win.
        best: the ranker that beats all others, an index.
    """

    arms: tuple[str, ...]
    grades: Sequence[Sequence[int]]
    rankings: Sequence[Sequence[Sequence[int]]]
    preferences: Floats
    best: int

    @property
    def worse_half(self) -> tuple[int, ...]:
        """The bad rankers: the half that the best one beats most often, the middle not counted."""
        order = np.argsort(-self.preferences[self.best], kind="stable").tolist()
        return tuple(order[: len(self.arms) // 2])


def make_world(n_arms: int, seed: int) -> World:
    """Rankers of different quality; equal arguments make equal worlds.

    A ranker orders recipes by their grade plus normal noise of its own, drawn once.

    Args:
        n_arms: how many, from `FEWEST` to `MOST`.
        seed: an integer from 0.

    >>> world = make_world(3, seed=7)
    >>> world.arms[world.best], world.preferences[world.best].round(2).tolist()
    ('bm25', [0.5, 0.73, 0.65])
    """
    generator = Generator(seed)
    grades = np.array([[grade(query, recipe) for recipe in RECIPES] for query in QUERIES])
    noise = np.array([BEST_NOISE, *np.linspace(*OTHER_NOISE, n_arms - 1)])
    while True:
        order = generator.permutation(n_arms)
        rankings = [_rank(generator, grades, each) for each in noise[order]]
        p = preferences(rankings, grades.tolist(), USERS, LENGTH)
        best = condorcet_winner(p)
        if best is not None and np.delete(p[best], best).min() >= 0.5 + LEAST_GAP:
            return World(NAMES[:n_arms], grades.tolist(), rankings, p, best)


def _rank(generator: Generator, grades: Integers, noise: float) -> list[list[int]]:
    """(queries, `LENGTH`): the recipes that seem best, first the best of them."""
    normal = NormalDist()
    errors = [normal.inv_cdf(draw) for draw in uniform(generator, grades.size).tolist()]
    scores = grades + noise * np.array(errors).reshape(grades.shape)
    tops: list[list[int]] = np.argsort(-scores, axis=1, kind="stable")[:, :LENGTH].tolist()
    return tops

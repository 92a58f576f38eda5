"""The demo's rankers, and their true preferences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from streamduel.demo.users import CLICKS, QUERIES, RECIPES, grade
from streamduel.interleaving.team_draft import interleave
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Floats
from streamduel.preference.winners import condorcet_winner
from streamduel.simulation.click_models import ClickModel
from streamduel.simulation.rankers import rank_documents

NAMES: Final = (
    "bm25", "dense-v1", "hybrid", "ltr-v1", "ltr-v2", "top-rated",
    "bm25f", "tf-idf", "title-match", "newest", "most-cooked", "dense-v2", "ltr-v3",
    "cross-encoder", "splade", "graph", "personal", "session", "seasonal", "editors",
)  # fmt: skip
"""Names of rankers; their quality depends on the seed."""

MIN_ARMS: Final = 2
MAX_ARMS: Final = len(NAMES)
"""A longer table would not fit a screen."""

LENGTH: Final = 6
"""Documents in a list: three picks for each ranker, and a page that fits a small terminal."""

BEST_NOISE: Final = 0.4
OTHER_NOISE: Final = (1.8, 3.4)
"""Standard deviation of the errors of grade, which is from 0 to 4: of the best ranker, and the
range of the others. The best then wins 62 to 78 % of its duels: far more than in practice, where
52 % is a success, but a demo must end within minutes."""

MIN_LEAD: Final = 0.06
"""Rankers whose best one wins less than 56 % against another are drawn again: some thousand duels
could not distinguish them."""


@dataclass(frozen=True, eq=False)
class Rankers:
    """Rankers of recipes, and their true quality.

    Attributes:
        arms: their names.
        grades: (queries, recipes) the relevance of each recipe.
        rankings: (K, queries, `LENGTH`) the top recipes of each ranker, as indices.
        preferences: (K, K), [i, j] the probability that i beats j, a tie being half a win.
        best: the index of the ranker that beats all others.
    """

    arms: tuple[str, ...]
    grades: Sequence[Sequence[int]]
    rankings: Sequence[Sequence[Sequence[int]]]
    preferences: Floats
    best: int

    @property
    def worse_half(self) -> tuple[int, ...]:
        """The half of the rankers that the best one beats most often, the middle not included."""
        order = np.argsort(-self.preferences[self.best], kind="stable").tolist()
        return tuple(order[: len(self.arms) // 2])


def make_rankers(n_arms: int, seed: int) -> Rankers:
    """Make rankers of different quality; equal arguments make equal rankers.

    A ranker orders recipes by their grade plus normal noise, drawn once per ranker.

    Args:
        n_arms: from `MIN_ARMS` to `MAX_ARMS`.
        seed: an integer from 0.

    >>> rankers = make_rankers(3, seed=7)
    >>> rankers.arms[rankers.best], rankers.preferences[rankers.best].round(2).tolist()
    ('bm25', [0.5, 0.73, 0.65])
    """
    generator = Generator(seed)
    grades = np.array([[grade(query, recipe) for recipe in RECIPES] for query in QUERIES])
    noise = np.array([BEST_NOISE, *np.linspace(*OTHER_NOISE, n_arms - 1)])
    while True:
        order = generator.permutation(n_arms)
        rankings = [
            rank_documents(generator, grades, each)[:, :LENGTH].tolist()
            for each in noise[order].tolist()
        ]
        p = true_preferences(rankings, grades.tolist(), CLICKS, LENGTH)
        best = condorcet_winner(p)
        if best is not None and np.delete(p[best], best).min() >= 0.5 + MIN_LEAD:
            return Rankers(NAMES[:n_arms], grades.tolist(), rankings, p, best)


_SIDES: Final = {"a": 1, "b": -1, None: 0}


class _Coins(NamedTuple):
    """Coins of team draft with given results, the last one first."""

    results: list[int]

    def getrandbits(self, k: int, /) -> int:
        assert k == 1
        return self.results.pop()


def true_preferences(
    rankings: Sequence[Sequence[Sequence[int]]],
    grades: Sequence[Sequence[int]],
    clicks: ClickModel,
    length: int,
) -> Floats:
    """The exact probability that each ranker wins an interleaved list against each other one.

    All queries are equally likely, and so are all results of team draft's coins. For each of these
    lists the distribution of the difference in clicks follows from the click model, rank by rank.

    Args:
        rankings: (K, queries, documents) the documents in each ranker's order.
        grades: (queries, documents) their relevance.
        clicks: the click model.
        length: documents in a list; even, and at most as many as in a ranking.

    Returns:
        (K, K), a tie being half a win, with 1/2 on the diagonal.

    >>> from streamduel.simulation.click_models import click_model
    >>> rankings, grades = [[[0, 1, 2, 3]], [[3, 2, 1, 0]]], [[4, 1, 0, 0]]
    >>> true_preferences(rankings, grades, click_model("perfect"), length=2)
    array([[0.5, 1. ],
           [0. , 0.5]])
    """
    n_arms, rounds = len(rankings), length // 2
    pairs = list(combinations(range(n_arms), 2))
    shown, sides = [], []
    for first, second in pairs:
        for query, judged in enumerate(grades):
            for pattern in range(1 << rounds):
                docs, teams = interleave(
                    rankings[first][query], rankings[second][query], length,
                    _Coins([pattern >> coin & 1 for coin in reversed(range(rounds))]),
                )  # fmt: skip
                shown.append([judged[doc] for doc in docs])
                sides.append([_SIDES[team] for team in teams])
    outcomes = _outcomes(np.array(shown), np.array(sides), clicks)
    p = np.full((n_arms, n_arms), 0.5)
    for (first, second), wins in zip(pairs, outcomes.reshape(len(pairs), -1), strict=True):
        p[first, second] = wins.mean()
        p[second, first] = 1 - p[first, second]
    return p


def _outcomes(shown: Floats, sides: Floats, clicks: ClickModel) -> Floats:
    """(lists,) P(side a has more clicks) + P(equally many) / 2, from grades and teams per rank."""
    lists, length = shown.shape
    click = np.array(clicks.click)[shown]
    stop = np.array(clicks.stop)[shown]
    # [list, difference + length]: probabilities, of users still reading and of those who stopped.
    reading = np.zeros((lists, 2 * length + 1))
    reading[:, length] = 1.0
    stopped = np.zeros_like(reading)
    for rank in range(length):
        clicked = np.zeros_like(reading)
        for side in (-1, 0, 1):
            rows = sides[:, rank] == side
            clicked[rows] = np.roll(reading[rows], side, axis=1)
        clicked *= click[:, rank, None]
        stopped += clicked * stop[:, rank, None]
        reading = reading * (1 - click[:, rank, None]) + clicked * (1 - stop[:, rank, None])
    chances = reading + stopped
    return np.asarray(chances[:, length + 1 :].sum(axis=1) + chances[:, length] / 2)

"""An environment of rankers whose duels are interleaved lists with simulated clicks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from streamduel.errors import ConfigurationError
from streamduel.interleaving.base import Team
from streamduel.interleaving.credit import Shown, click_count, on_ranks
from streamduel.interleaving.team_draft import interleave
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Floats, Integers
from streamduel.simulation.click_models import ClickModel
from streamduel.simulation.environment import Environment
from streamduel.simulation.matrices import normal, uniform

GRADE_SHARES: Final = (0.52, 0.32, 0.13, 0.02, 0.01)
"""Shares of documents with grade 0, 1, 2, 3 and 4, about as among the judged documents of
MSLR-WEB30K (Qin and Liu, "Introducing LETOR 4.0 datasets", 2013)."""


class Impression(NamedTuple):
    """One interleaved list and its clicks.

    Attributes:
        query: its index.
        docs: the documents shown.
        teams: per rank, "a" for the first ranker, "b" for the second, None for neither.
        clicks: the clicked ranks, ascending.
    """

    query: int
    docs: list[int]
    teams: list[Team]
    clicks: list[int]

    @property
    def outcome(self) -> float:
        """1.0 if the first ranker has more clicks, 0.0 if the second has, else 0.5."""
        return click_count(Shown(self.teams), on_ranks(self.clicks))


class Estimate(NamedTuple):
    """Estimated preferences, a tie being half a win, and the standard error of each."""

    preferences: Floats
    std_error: Floats


class RankerEnvironment(Environment):
    """K rankers of the same documents, which differ in their errors of relevance.

    A ranker orders each query's documents by their grade plus normal noise of its own, drawn once:
    the less noise, the better. A duel draws a query, shows the two rankings in one list by team
    draft, lets a user click, and goes to the side with more clicks.

    Args:
        noise: (K,) the standard deviation of each ranker's error, from 0; grades are 0 to 4.
        clicks: the click model.
        queries: the number of queries.
        documents: the number of documents of each query.
        length: documents in a list.
        samples: impressions of each pair from which `preferences` are estimated.
        seed: of documents, rankers and users, an integer from 0.

    Raises:
        ConfigurationError: a number is out of range.

    Attributes:
        grades: (queries, documents) the relevance of each document.
        rankings: (K, queries, documents), the documents in each ranker's order.

    >>> from streamduel.simulation.click_models import click_model
    >>> rankers = RankerEnvironment([0.5, 3.0], click_model("navigational"), seed=7)
    >>> rankers.impression(0, 1).clicks
    [1]
    >>> rankers.estimate.preferences.round(2).tolist()
    [[0.5, 0.74], [0.26, 0.5]]
    >>> rankers.estimate.std_error.round(3).tolist()
    [[0.0, 0.009], [0.009, 0.0]]
    """

    def __init__(
        self,
        noise: Sequence[float],
        clicks: ClickModel,
        *,
        queries: int = 100,
        documents: int = 30,
        length: int = 10,
        samples: int = 2000,
        seed: int,
    ) -> None:
        _check("rankers", len(noise), 2)
        for each in noise:
            _check("noise", each, 0)
        for what, number in (("queries", queries), ("documents", documents), ("length", length)):
            _check(what, number, 1)
        _check("samples", samples, 2)
        self.n_arms = len(noise)
        self._click_model, self._length, self._samples = clicks, length, samples
        self._seed = seed
        world = Generator(seed)
        self.grades: Integers = _draw_grades(world, queries, documents)
        self.rankings: Integers = np.stack(
            [rank_documents(world, self.grades, each) for each in noise]
        )
        # Lists are faster for single impressions.
        self._grade_lists: list[list[int]] = self.grades.tolist()
        self._ranking_lists: list[list[list[int]]] = self.rankings.tolist()
        self._users = world

    def impression(self, first: int, second: int) -> Impression:
        """Simulate one interleaved list, of ranker `first` on side a, and its clicks."""
        return self._impression(first, second, self._users)

    def _impression(self, first: int, second: int, users: Generator) -> Impression:
        query = users.below(len(self._grade_lists))
        docs, teams = interleave(
            self._ranking_lists[first][query],
            self._ranking_lists[second][query],
            self._length,
            _Bits(users),
        )
        grades = self._grade_lists[query]
        clicks = self._click_model.clicks([grades[doc] for doc in docs], users)
        return Impression(query, docs, teams, clicks)

    @override
    def outcome(self, first: int, second: int) -> float:
        if first == second:
            return 0.5
        return self.impression(first, second).outcome

    def record(
        self,
        first: int,
        second: int,
        arms: Sequence[str],
        *,
        experiment: str,
        record_id: str,
        ts: int,
    ) -> dict[str, Any]:
        """Simulate a duel as a record of a click log (docs/records.md).

        Args:
            first: the ranker of side a.
            second: the ranker of side b; the same as `first` if the arm is served alone.
            arms: (K,) names.
            experiment: the name of the experiment.
            record_id: of the record, unique in the experiment.
            ts: milliseconds since the Unix epoch.

        Returns:
            An `interleaving` record, or a `duel` without a winner for an arm alone.
        """
        sides = {"a": arms[first], "b": arms[second]}
        head = {"id": record_id, "experiment": experiment, "ts": ts, **sides}
        if first == second:
            return {"type": "duel", **head, "winner": None}
        shown = self.impression(first, second)
        return {"type": "interleaving", **head, "teams": shown.teams, "clicks": shown.clicks}

    @property
    def preferences(self) -> Floats:  # type: ignore[override]
        """(K, K), a tie being half a win: those of `estimate`, computed at the first access."""
        return self.estimate.preferences

    @cached_property
    def estimate(self) -> Estimate:
        """The preference matrix by Monte Carlo, from impressions other than those of the duels."""
        users = Generator(self._seed)
        users.skip(1 << 100)
        p, error = np.full((2, self.n_arms, self.n_arms), 0.5)
        np.fill_diagonal(error, 0.0)
        for first, second in zip(*np.triu_indices(self.n_arms, k=1), strict=True):
            pair = int(first), int(second)
            outcomes = np.array(
                [self._impression(*pair, users).outcome for _ in range(self._samples)]
            )
            p[first, second] = outcomes.mean()
            p[second, first] = 1 - p[first, second]
            error[first, second] = outcomes.std(ddof=1) / np.sqrt(self._samples)
            error[second, first] = error[first, second]
        return Estimate(p, error)


class _Bits:
    """A generator with the interface that interleaving draws from."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator

    def getrandbits(self, k: int, /) -> int:
        return self._generator.below(1 << k)


def _draw_grades(generator: Generator, queries: int, documents: int) -> Integers:
    """(queries, documents) grades by their shares."""
    draws = uniform(generator, queries * documents)
    bounds = np.cumsum(GRADE_SHARES)[:-1]
    grades: npt.NDArray[np.intp] = np.searchsorted(bounds, draws, side="right")
    return grades.astype(np.int64).reshape(queries, documents)


def rank_documents(generator: Generator, grades: Integers, noise: float) -> Integers:
    """(queries, documents): the documents of each query in the order of a noisy ranker."""
    scores = grades + noise * np.reshape(normal(generator, grades.size), grades.shape)
    return np.argsort(-scores, axis=1, kind="stable")


def _check(what: str, found: float, least: int) -> None:
    """Refuse a number that is too small or NaN."""
    if not found >= least:
        raise ConfigurationError(f"{what} must be at least {least} (found {found}).")

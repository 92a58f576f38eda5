"""Fairness and sensitivity of interleaving methods: the tables and the figure of one page.

    python -m benchmarks.interleaving [--impressions 100000] [--out docs]

Simulated users click on lists of two rankers of known quality, interleaved by each method.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.papers import picture
from benchmarks.policy_regret import PAGE, put_in
from streamduel.interleaving import INTERLEAVINGS, Interleaved, balanced, optimised, probabilistic
from streamduel.interleaving.base import below
from streamduel.interleaving.credit import Shown, click_count, on_ranks
from streamduel.policies.base.generator import Generator
from streamduel.preference.arrays import Floats
from streamduel.simulation.click_models import CLICK_MODELS
from streamduel.simulation.rankers import RankerEnvironment

SEED: Final = 2026
LENGTH: Final = 10
NOISE: Final = (0.6, 1.0)
"""Noise of the two rankers: close to each other, as in a typical comparison."""
QUERIES: Final = 200
SURE: Final = 1.96
"""Standard errors from a tie for 95 % confidence."""
CLICKS: Final = (1, 2, 3)
"""Numbers of random clicks."""
DISCOUNTS: Final = 1 / np.log2(np.arange(2, LENGTH + 2))

Ranking = Sequence[int]
Fixed = tuple[int, ...]


class Way(NamedTuple):
    """A method and its way of crediting clicks.

    Attributes:
        method: its name.
        counted: how its clicks are counted, for the table.
        outcome: the value of an impression, from the rankings, the list and the clicked ranks.
        tie: the value that favours neither side.
    """

    method: str
    counted: str
    outcome: Callable[[Ranking, Ranking, Interleaved[int], list[int]], float]
    tie: float = 0.5


def by_team(_a: Ranking, _b: Ranking, shown: Interleaved[int], clicks: list[int]) -> float:
    """The outcome that the stream computes from the record."""
    return click_count(Shown(shown.teams), on_ranks(clicks))


def of_docs(credit: Callable[[Any, Any, Any, Any], float]) -> Callable[..., float]:
    """A credit function of the rankings and the documents shown."""
    return lambda list_a, list_b, shown, clicks: credit(list_a, list_b, shown.docs, clicks)


WAYS: Final = (
    Way("team_draft", "teams", by_team),
    Way("probabilistic", "teams", by_team),
    Way("probabilistic", "`expected_credit`", of_docs(probabilistic.expected_credit)),
    Way("optimised", "teams", by_team),
    Way("optimised", "`worth_of`", of_docs(optimised.worth_of), 0.0),
    Way("balanced", "teams", by_team),
    Way("balanced", "`credit`", of_docs(balanced.credit)),
)


def lists(method: str, rng: Random) -> Callable[[Fixed, Fixed], Interleaved[int]]:
    """Makes lists; optimised interleaving is solved once per pair of rankings."""
    if method == "optimised":
        solve = cache(optimised.solve)
        return lambda list_a, list_b: solve(list_a, list_b, LENGTH).draw(rng)
    return lambda list_a, list_b: INTERLEAVINGS[method](list_a, list_b, LENGTH, rng)


class Share(NamedTuple):
    """A mean and its standard error."""

    mean: float
    error: float


def random_clicks(ways: Sequence[Way], impressions: int) -> list[list[Share]]:
    """How often the first of two rankings wins with random clicks; a fair method gives one half.

    The second ranking is the first with its first document moved to the end. For each of
    these ways of one method, a share for each number of clicks; the lists are the same.
    """
    list_a = tuple(range(LENGTH))
    list_b = (*list_a[1:], list_a[0])
    rng = Random(SEED)
    make = lists(ways[0].method, rng)
    values = np.empty((len(ways), len(CLICKS), impressions))
    for number in range(impressions):
        shown = make(list_a, list_b)
        for column, clicks in enumerate(CLICKS):
            ranks = [below(LENGTH, rng) for _ in range(clicks)]
            for row, way in enumerate(ways):
                value = way.outcome(list_a, list_b, shown, ranks)
                values[row, column, number] = 0.5 + value - way.tie
    return [
        [Share(float(cell.mean()), float(cell.std(ddof=1) / np.sqrt(impressions))) for cell in row]
        for row in values
    ]


class Result(NamedTuple):
    """The result of a click model for two rankers.

    Attributes:
        needed: impressions until 95 % confidence in the better ranker.
        error: standard error of that.
        seen: the quality (DCG) of the lists shown, relative to the better ranker's.
    """

    needed: float
    error: float
    seen: float


def users(ways: Sequence[Way], impressions: int) -> list[list[Result]]:
    """A result for each way of one method and each click model, on the same lists."""
    world = RankerEnvironment(NOISE, CLICK_MODELS["perfect"], queries=QUERIES, seed=SEED)
    rankings = [[tuple(docs) for docs in ranker] for ranker in world.rankings.tolist()]
    grades = world.grades.tolist()
    rng, clicking = Random(SEED), Generator(SEED)
    make = lists(ways[0].method, rng)
    values = np.empty((len(ways), len(CLICK_MODELS), impressions))
    seen = best = 0.0
    for number in range(impressions):
        query = below(QUERIES, rng)
        list_a, list_b = rankings[0][query], rankings[1][query]
        shown = make(list_a, list_b)
        found = [grades[query][document] for document in shown.docs]
        for column, model in enumerate(CLICK_MODELS.values()):
            clicks = model.clicks(found, clicking)
            for row, way in enumerate(ways):
                value = way.outcome(list_a, list_b, shown, clicks)
                values[row, column, number] = value - way.tie
        seen += dcg(found)
        best += dcg([grades[query][document] for document in list_a[:LENGTH]])
    return [[result(cell, seen / best) for cell in row] for row in values]


def result(values: Floats, seen: float) -> Result:
    """A result from the value of each impression, 0 for a tie."""
    effect = abs(values.mean()) / values.std(ddof=1)
    needed = (SURE / effect) ** 2
    return Result(float(needed), float(needed * 2 / (effect * np.sqrt(len(values)))), seen)


def dcg(grades: Sequence[int]) -> float:
    """Discounted cumulative gain of documents of these grades, the first on top."""
    return float((2.0 ** np.array(grades) - 1) @ DISCOUNTS[: len(grades)])


def label(way: Way) -> str:
    """Of a row."""
    return f"`{way.method}`, {way.counted}"


Shares = dict[str, list[Share]]
Results = dict[str, list[Result]]
"""By the label of the way."""


def measure(impressions: int) -> tuple[Shares, Results]:
    """The content of the page."""
    shares: Shares = {}
    results: Results = {}
    for _, group in groupby(WAYS, key=lambda way: way.method):
        ways = list(group)
        labels = [label(way) for way in ways]
        shares |= zip(labels, random_clicks(ways, impressions), strict=True)
        results |= zip(labels, users(ways, impressions), strict=True)
    return shares, results


def table(shares: Shares, results: Results, impressions: int) -> list[str]:
    """Markdown."""
    heads = [
        "method, counted by",
        *(f"{n} random click{'s' * (n > 1)}" for n in CLICKS),
        *CLICK_MODELS,
        "quality seen",
    ]
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    for row in shares:
        cells = [f"{share.mean:.1%}" for share in shares[row]]
        cells += [f"{each.needed:,.0f} ± {each.error:,.0f}" for each in results[row]]
        lines.append("| " + " | ".join([row, *cells, f"{results[row][0].seen:.1%}"]) + " |")
    worst = max(share.error for cells in shares.values() for share in cells)
    return [
        f"{impressions:,} impressions a cell; the shares of random clicks have a standard error of"
        f" {worst:.1%} at most.",
        "",
        *lines,
    ]


def draw(shares: Shares, results: Results, path: Path) -> None:
    """Two panels with a row for each way: random clicks, and impressions needed."""
    figure, axes = picture.panels(1, 2, 7.6, 3.2)
    left, right = axes[0]
    rows = [row.replace("`", "") for row in shares]
    places = np.arange(len(rows))[::-1]
    for number, clicks in enumerate(CLICKS):
        means = [cells[number].mean for cells in shares.values()]
        left.plot(means, places, "os^"[number], ms=5, label=f"{clicks} click{'s' * (clicks > 1)}")
    for number, kind in enumerate(CLICK_MODELS):
        needed = [cells[number].needed for cells in results.values()]
        right.plot(needed, places, "os^"[number], ms=5, label=kind)
    picture.finish(left, "clicks at random", "wins of the first ranking", log_x=False)
    picture.finish(right, "simulated users", "impressions until 95 % sure")
    left.axvline(0.5, color="#000000", linewidth=0.8)
    left.set_xlim(0, 1)
    left.set_yticks(places, rows)
    right.set_yticks(places, [""] * len(rows))
    for panel in (left, right):
        panel.legend(frameon=False, fontsize=7)
    picture.save(figure, path)


def main(given: list[str] | None = None) -> None:
    """Measure, and write the page and the figure."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--impressions", type=int, default=100_000)
    arguments.add_argument("--out", type=Path, default=Path("docs"))
    options = arguments.parse_args(given)
    shares, results = measure(options.impressions)
    put_in(options.out / PAGE, "interleaving", table(shares, results, options.impressions))
    draw(shares, results, options.out / "images" / "interleaving.png")


if __name__ == "__main__":
    main()

"""Figures from the results: relative regret, answers, and whether the gates are met."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan, nan
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.report import Goal
from benchmarks.research.worlds import geometric_mean

Cell = dict[str, Any]

REFERENCE: Final = "double_thompson"
HALVES: Final = ("tuned", "held out", "published")


def relative(cell: Cell, label: str) -> float:
    """Mean regret at the end as a multiple of Double Thompson Sampling's; NaN if unknown."""
    ours, theirs = cell["policies"].get(label), cell["policies"].get(REFERENCE)
    if not ours or not theirs or min(np.mean(ours["final"]), np.mean(theirs["final"])) <= 0:
        return nan
    return float(np.mean(ours["final"]) / np.mean(theirs["final"]))


def known_mean(values: Iterable[float]) -> float:
    """The geometric mean of those that are known; NaN if none is."""
    return geometric_mean([each for each in values if not isnan(each)])


def mean_relative(cells: Sequence[Cell], label: str) -> float:
    """The geometric mean of `relative`."""
    return known_mean(relative(cell, label) for cell in cells)


def tail(cells: Sequence[Cell], label: str) -> float:
    """The 99th percentile of the runs' regret as a multiple of the reference's mean."""
    runs: list[float] = []
    for cell in cells:
        if not isnan(relative(cell, label)):
            mean = np.mean(cell["policies"][REFERENCE]["final"])
            runs += (np.array(cell["policies"][label]["final"]) / mean).tolist()
    return float(np.quantile(runs, 0.99)) if runs else nan


class Answers(NamedTuple):
    """When top-two has answered on a matrix; a run without an answer counts with its last duel.

    Attributes:
        runs: how many.
        alone: duels until at most one arm is in, median.
        half: duels until the answer, median.
        most: 90th percentile.
        nearly_all: 95th percentile.
        never: runs without an answer.
        wrong: runs with a wrong one.
    """

    runs: int
    alone: float
    half: float
    most: float
    nearly_all: float
    never: int
    wrong: int


def answers(cell: Cell, patience: int) -> Answers:
    """Of a matrix."""
    ours = cell["policies"]["top_two"]
    alone = [patience if each is None else each for each in ours["alone"]]
    times = [patience if each is None else each for each in ours["answered"]]
    never = sum(each is None for each in ours["answered"])
    low, high, top = np.quantile(times, [0.5, 0.9, 0.95]).tolist()
    return Answers(len(times), float(np.median(alone)), low, high, top, never, ours["wrong"])


def families(cells: Sequence[Cell], half: str) -> dict[str, list[Cell]]:
    """The cells of a half, by family."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell["half"] == half:
            found.setdefault("published" if half == "published" else cell["family"], []).append(
                cell
            )
    return found


def above_ideal(cell: Cell, patience: int, *, alone: bool) -> float:
    """Median duels until one arm is left (claim A) or the answer (B), over the ideal."""
    if cell["ideal"] >= 1e300:
        return nan
    found = answers(cell, patience)
    return (found.alone if alone else found.half) / float(cell["ideal"])


def gates(comparison: dict[str, Any], half: str) -> list[Goal]:
    """The gates on regret and on answers, for a half."""
    cells, patience = comparison["cells"], comparison["patience"]
    groups = families(cells, half)
    chosen = [cell for group in groups.values() for cell in group]
    goals = []
    for label, each_at_most, mean_at_most in (("top_two", 1.25, 1.0), ("top_two, earn", 1.05, 0.8)):
        by_family = {name: mean_relative(group, label) for name, group in groups.items()}
        known = {name: value for name, value in by_family.items() if not isnan(value)}
        if not known:
            continue
        worst = max(known, key=lambda name: known[name])
        goals += [
            Goal(f"regret of `{label}` ÷ D-TS, worst family ({worst})", known[worst], each_at_most),
            Goal(
                f"regret of `{label}` ÷ D-TS, geometric mean",
                mean_relative(chosen, label),
                mean_at_most,
            ),
            Goal(
                f"99th percentile of `{label}` ÷ that of D-TS",
                tail(chosen, label) / tail(chosen, REFERENCE),
                1.0,
            ),
        ]
    with_winner = [cell for cell in chosen if cell["winner"]]
    for claim, at_most in (("A", 1.4), ("B", 1.9)):
        value = known_mean(above_ideal(cell, patience, alone=claim == "A") for cell in with_winner)
        goals.append(Goal(f"claim {claim} ÷ ideal, with a winner, geometric mean", value, at_most))
    times = [answers(cell, patience) for cell in chosen]
    goals += [
        Goal("95th percentile ÷ median of the answer, geometric mean",
             geometric_mean([one.nearly_all / one.half for one in times]), 1.6),
        Goal("wrong answers, %", 100 * sum(one.wrong for one in times)
             / sum(one.runs for one in times), 5.0),
    ]  # fmt: skip
    return goals

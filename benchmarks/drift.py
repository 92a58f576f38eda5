"""The cost of a window, and its gain when the best arm changes, for docs/measurements.md.

    python -m benchmarks.drift [--runs 10] [--jobs 2] [--out docs] [--quick]

About a quarter of an hour on two cores.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import sqrt
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.papers.picture import Curve, add, finish, panels, save
from benchmarks.policy_regret import PAGE, put_in
from streamduel import policies
from streamduel.preference.arrays import Floats
from streamduel.preference.regret import regrets
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.matrices import ARXIV
from streamduel.simulation.measurement import start_run
from streamduel.simulation.run import Run
from streamduel.simulation.seeds import arrangement, run_seeds

SEED: Final = 2026
POLICIES: Final[Mapping[str, tuple[str, dict[str, str]]]] = {
    "top_two": ("top_two", {}),
    "top_two, aim: earn": ("top_two", {"aim": "earn"}),
    "double_thompson": ("double_thompson", {}),
    "rucb": ("rucb", {}),
}
"""The policies and their parameters, by label."""
BEFORE: Final = np.asarray(ARXIV)
_TURNED: Final = np.roll(np.arange(len(BEFORE)), 1)
AFTER: Final = BEFORE[np.ix_(_TURNED, _TURNED)]
"""The best ranker is what the last one was, and every other one what the one before it was."""
PER: Final = 100_000
"""The cost of a window is given for this many duels."""
SETTLED: Final = 8
"""An arm that is champion at this many checks in a row is not so by chance."""


class Case(NamedTuple):
    """A policy's memory, and when the best arm changes.

    Attributes:
        window: in duels, or None for all.
        before: duels before the change. With a window, duels three windows ago have no effect; the
            change comes after two to three windows, so that it occurs at any phase of forgetting
            and learning.
    """

    window: int | None
    before: int

    @classmethod
    def of(cls, window: int) -> Case:
        """With a window."""
        return cls(window, 2 * window)

    def changes_at(self, run: int, runs: int) -> int:
        """When the best arm of one run changes."""
        return self.before + (self.window or 0) * run // runs

    @property
    def words(self) -> str:
        """The label in the plot."""
        if self.window:
            return f"window {self.window:,}"
        return f"no window, change after {self.before:,}"


@dataclass(frozen=True)
class Plan:
    """The extent of the measurement.

    Attributes:
        cases: each with all policies.
        after: duels after the change.
        grid: duels between two checks of the champion.
    """

    cases: tuple[Case, ...]
    after: int
    grid: int


FULL: Final = Plan(
    (
        Case(None, 100_000),
        Case(None, 1_000_000),
        *(Case.of(window) for window in (5_000, 20_000, 50_000, 100_000)),
    ),
    after=50_000,
    grid=250,
)
QUICK: Final = Plan((Case(None, 500), Case.of(100), Case.of(200)), after=500, grid=50)


class RunResult(NamedTuple):
    """The result of one run.

    Attributes:
        regret_before: per 100,000 duels while nothing changed and learning was over: of the second
            half of the duels before the change, or of the second window.
        regret_after: since the change, at each check.
        found: duels until the new best arm was champion, and remained so for `SETTLED` checks;
            None if it never was.
        share_correct: the share of later checks at which it was champion; 0 if never.
    """

    regret_before: float
    regret_after: list[float]
    found: int | None
    share_correct: float


def run_once(plan: Plan, runs: int, task: tuple[str, Case, int]) -> RunResult:
    """One run."""
    label, case, run = task
    name, parameters = POLICIES[label]
    arms = arrangement(SEED, run, len(BEFORE))
    there = np.ix_(arms, arms)
    seeds, later = run_seeds(SEED, run, name), run_seeds(SEED + 1, run, name)
    policy = policies.create(name, len(arms), seed=seeds.policy, window=case.window, **parameters)
    way = start_run(policy, MatrixEnvironment(BEFORE[there], seed=seeds.environment))
    before = _regret_before(way, case, regrets(BEFORE[there], "condorcet"))
    way.advance(case.changes_at(run, runs))
    best = arms.index(int(_TURNED.argmin()))
    way = start_run(way.policy(), MatrixEnvironment(AFTER[there], seed=later.environment))
    costs, after, correct = regrets(AFTER[there], "condorcet"), [0.0], []
    for t in range(plan.grid, plan.after + 1, plan.grid):
        way.advance(t)
        after.append(float((way.plays * costs).sum()))
        correct.append(way.champion() == best)
    starts = range(len(correct) - SETTLED + 1)
    start = next((each for each in starts if all(correct[each : each + SETTLED])), None)
    if start is None:
        return RunResult(before, after, None, 0.0)
    return RunResult(before, after, (start + 1) * plan.grid, statistics.fmean(correct[start:]))


def _regret_before(way: Run, case: Case, costs: Floats) -> float:
    """Regret per 100,000 duels in the second half of those before the change."""
    half = case.before // 2
    way.advance(half)
    learned = way.plays
    way.advance(case.before)
    return float(((way.plays - learned) * costs).sum()) * PER / half


def measure(plan: Plan, runs: int, jobs: int) -> dict[tuple[str, Case], list[RunResult]]:
    """All runs of all cases."""
    tasks = [(name, case, run) for name, case, run in product(POLICIES, plan.cases, range(runs))]
    found: dict[tuple[str, Case], list[RunResult]] = {}
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        results = (pool.map if jobs > 1 else map)(partial(run_once, plan, runs), tasks)
        for (name, case, _), result in zip(tasks, results, strict=True):
            found.setdefault((name, case), []).append(result)
            if len(found[name, case]) == runs:
                print(f"{name}, {case.words}: {runs} runs", file=sys.stderr, flush=True)
    return found


def mean_and_error(sample: Sequence[float]) -> tuple[float, float]:
    """The mean, and its standard error."""
    return statistics.fmean(sample), statistics.stdev(sample) / sqrt(len(sample))


def as_code(label: str) -> str:
    """The label in a table."""
    return ", ".join(f"`{part}`" for part in label.split(", "))


def duels_until(results: Sequence[RunResult], plan: Plan) -> str:
    """Median and largest number of duels until the new best arm was champion and stayed so."""
    never = plan.after + 1
    each = sorted(never if result.found is None else result.found for result in results)
    words = [
        f"over {plan.after:,}" if number == never else f"{number:,}"
        for number in (each[(len(each) - 1) // 2], each[-1])
    ]
    return f"{words[0]} ({words[1]})"


def table(plan: Plan, found: dict[tuple[str, Case], list[RunResult]]) -> list[str]:
    """Markdown, a line for each policy and case."""
    runs = len(next(iter(found.values())))
    lines = [
        f"Mean ± standard error of {runs} runs; for the duels until the champion is right, the"
        " median and in brackets the slowest run; then, the share of later checks at which it was"
        " right.",
        "",
        f"| policy | window | change after | regret per {PER:,} duels without a change | regret in"
        f" the {plan.after:,} duels after it | duels until the champion is right | right since |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for (name, case), results in found.items():
        before, before_error = mean_and_error([result.regret_before for result in results])
        after, after_error = mean_and_error([result.regret_after[-1] for result in results])
        since = [result.share_correct for result in results if result.found is not None]
        correct = f"{statistics.fmean(since):.1%}" if since else ""
        window = f"{case.window:,}" if case.window else "none"
        when = "2 to 3 windows" if case.window else f"{case.before:,}"
        lines.append(
            f"| {as_code(name)} | {window} | {when} | {before:,.0f} ± {before_error:,.0f}"
            f" | {after:,.0f} ± {after_error:,.0f} | {duels_until(results, plan)} | {correct} |"
        )
    return lines


def between(plan: Plan, case: Case, results: Sequence[RunResult], duels: int) -> str:
    """The regret from one change to the next."""
    if case.window is None and case.before != duels:
        return ""
    after = statistics.fmean(result.regret_after[-1] for result in results)
    if any(result.found is None for result in results):
        return f"over {after:,.0f}"
    before = statistics.fmean(result.regret_before for result in results)
    return f"{after + before * (duels - plan.after) / PER:,.0f}"


def choice(plan: Plan, found: dict[tuple[str, Case], list[RunResult]]) -> list[str]:
    """Markdown: the best window by the number of duels between changes."""
    apart = [case.before for case in plan.cases if case.window is None]
    lines = [
        f"Regret from one change to the next: that of the {plan.after:,} duels after a change, and"
        " the cost of the others. Without a window, of the first change.",
        "",
        "| policy | window | " + " | ".join(f"changes {duels:,} apart" for duels in apart) + " |",
        "|---|--:|" + "--:|" * len(apart),
    ]
    for (name, case), results in found.items():
        window = f"{case.window:,}" if case.window else f"none, after {case.before:,}"
        costs = [between(plan, case, results, duels) for duels in apart]
        lines.append(f"| {as_code(name)} | {window} | " + " | ".join(costs) + " |")
    return lines


def draw(plan: Plan, found: dict[tuple[str, Case], list[RunResult]], path: Path) -> None:
    """A panel for each policy: regret since the change, with its standard error."""
    figure, grid = panels(2, 2, 7.2, 6.4)
    x = [t / 1_000 for t in range(0, plan.after + 1, plan.grid)]
    top = 1.05 * max(
        mean_and_error([result.regret_after[-1] for result in each])[0] for each in found.values()
    )
    for panel, name in zip(grid.flat, POLICIES, strict=True):
        curves = []
        for place, case in enumerate(plan.cases):
            columns = zip(*(result.regret_after for result in found[name, case]), strict=True)
            band = [mean_and_error(column) for column in columns]
            low, high = [mean - by for mean, by in band], [mean + by for mean, by in band]
            curves.append(Curve(case.words, place, x, [mean for mean, _ in band], low, high))
        add(panel, curves)
        finish(
            panel,
            name.replace("`", ""),
            "thousand duels since the change",
            "regret since then",
            log_x=False,
        )
        panel.set_ylim(0, top)  # the same scale for all policies
    grid.flat[0].legend(fontsize=7, frameon=False)
    save(figure, path)


def main(given: list[str] | None = None) -> None:
    """Measure, and write the page and the plot."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=10)
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--out", type=Path, default=Path("docs"))
    arguments.add_argument("--quick", action="store_true", help="a trial run")
    options = arguments.parse_args(given)
    plan = QUICK if options.quick else FULL
    found = measure(plan, options.runs, options.jobs)
    put_in(options.out / PAGE, "drift", [*table(plan, found), "", *choice(plan, found)])
    draw(plan, found, options.out / "images" / "drift.png")


if __name__ == "__main__":
    main()

"""The cost of delayed outcomes and of slates: tables and plots of docs/measurements.md.

    python -m benchmarks.delay [--runs 20] [--jobs 1] [--out docs] [--quick]

An interrupted measurement resumes: finished runs are in the user's cache folder.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from benchmarks.papers.picture import Curve, add, finish, panels, save
from benchmarks.policy_regret import PAGE, put_in
from streamduel import policies
from streamduel.simulation.delay import FixedDelay
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.journal import Journal
from streamduel.simulation.matrices import ARXIV
from streamduel.simulation.measurement import RunResult
from streamduel.simulation.results import PolicyResult, Results
from streamduel.simulation.run import DelayedRun
from streamduel.simulation.seeds import arrangement, run_seeds
from streamduel.simulation.settings import PolicySpec, Settings
from streamduel.simulation.simulate import simulate

SEED: Final = 2026
POLICIES: Final = ("rucb", "ccb", "rmed1", "double_thompson")
SLOW: Final = "double_thompson"
"""Seven times as slow as the others; it has half as many runs, in fewer cells."""


class Cell(NamedTuple):
    """A way to propose duels while others are in flight.

    Attributes:
        flying: duels in flight.
        slate: duels between two decisions.
        repeated: whether all duels of a slate are of the single pair proposed.
    """

    flying: int
    slate: int = 1
    repeated: bool = False

    @property
    def words(self) -> str:
        """The label in the table."""
        if self.repeated:
            return f"one pair, served {self.slate:,} times"
        return f"slate of {self.slate:,}"


@dataclass(frozen=True)
class Plan:
    """The extent of the measurement.

    Attributes:
        horizon: duels of each run.
        cells: the first is undelayed.
        slow: the cells that are also measured for the slow policy.
        far: duels of each of the long runs.
        remote: the cells of the long runs; the first is undelayed.
        judged: cells in which the slow policy has more runs.
        long: the policies with long runs.
    """

    horizon: int
    cells: tuple[Cell, ...]
    slow: frozenset[Cell]
    far: int
    remote: tuple[Cell, ...]
    judged: Cell
    long: tuple[str, ...] = ("rmed1", SLOW)

    def runs(self, name: str, cell: Cell, runs: int) -> int:
        """The number of runs of a policy in a cell.

        Undelayed runs are compiled and fast. The judged cells of the slow policy have four times as
        many of its runs as the others.
        """
        if cell.flying == 0:
            return 5 * runs
        if name != SLOW:
            return runs
        return 2 * runs if cell == self.judged else max(2, runs // 2)

    def long_runs(self, cell: Cell, runs: int) -> int:
        """The number of long runs of each policy in a cell."""
        return 2 * runs if cell.flying else 5 * runs

    def has(self, name: str, cell: Cell) -> bool:
        """Whether a policy is measured in a cell."""
        return name != SLOW or cell in self.slow


def _plan(near: int, middle: int, far: int, horizon: int, long: int) -> Plan:
    """Three delays, each with slates from 1 to its own size."""
    none = Cell(0)
    cells = (
        none,
        *(Cell(near, slate) for slate in (1, 10, near, middle)),
        Cell(near, near, True),
        *(Cell(middle, slate) for slate in (1, 10, near, middle)),
        *(Cell(middle, slate, True) for slate in (near, middle)),
        *(Cell(far, slate) for slate in (1, near, middle, far)),
        Cell(far, near, True),
    )
    slow = {none, *(Cell(flying, 1) for flying in (near, middle, far))}
    slow |= {Cell(near, near), Cell(middle, middle), Cell(far, far)}
    slow |= {Cell(middle, near), Cell(middle, near, True)}
    remote = (none, Cell(middle, near))
    return Plan(horizon, cells, frozenset(slow), long, remote, Cell(middle))


FULL: Final = _plan(100, 1_000, 10_000, 100_000, 1_000_000)
QUICK: Final = _plan(20, 50, 200, 500, 1_000)


class RepeatedCourse(DelayedRun):
    """Serves the single pair of a decision until the next decision."""

    def advance(self, until: int) -> None:
        while self.t < until:
            if not self._proposed:
                self._proposed.extend(self._policy.propose(1).tolist() * self._slate)
            super().advance(min(until, self.t + len(self._proposed)))


def play_repeated(settings: Settings, contestant: PolicySpec, run: int) -> RunResult:
    """One run of a policy whose pairs are repeated, with the seeds of any other run."""
    arms = arrangement(settings.seed, run, settings.n_arms)
    seeds = run_seeds(settings.seed, run, contestant.name)
    truth, cells = settings.truths[0], np.ix_(arms, arms)
    policy = policies.create(
        contestant.name, settings.n_arms, seed=seeds.policy, **contestant.params
    )
    way = RepeatedCourse(
        policy,
        MatrixEnvironment(truth.preferences[cells], seed=seeds.environment),
        settings.delay or FixedDelay(0),
        slate=settings.slate,
        seed=seeds.delay,
    )
    began = time.perf_counter()
    regret, right = [], []
    for t in settings.checkpoints:
        way.advance(t)
        regret.append(math.fsum((truth.regrets[cells] * way.plays).ravel().tolist()))
        right.append(arms[way.champion()] in truth.winners)
    seconds = time.perf_counter() - began
    return RunResult(contestant.name, contestant.params, run, regret, right, seconds)


def measure(name: str, cell: Cell, horizon: int, runs: int, jobs: int) -> PolicyResult:
    """The runs of a policy; finished ones are read from the cache folder."""
    settings = Settings(
        ARXIV,
        [(name, {})],
        horizon=horizon,
        runs=runs,
        seed=SEED,
        delay=FixedDelay(cell.flying) if cell.flying else None,
        slate=cell.slate,
    )
    cache = Path(os.environ.get("XDG_CACHE_HOME", tempfile.gettempdir())) / "streamduel"
    cache.mkdir(parents=True, exist_ok=True)
    way = "repeated" if cell.repeated else "slate"
    path = cache / f"delay-{horizon}-{cell.flying}-{way}-{cell.slate}.jsonl"
    if cell.repeated:
        results = Results(settings)
        with Journal(path, settings) as journal:
            for run in journal:
                results.add(run)
            for task in results.missing():
                run = play_repeated(settings, *task)
                journal.add(run)
                results.add(run)
    else:
        results = simulate(settings, jobs=jobs, journal=path)
    result = results.policies()[0]
    print(
        f"{name}, {cell.flying:,} in flight, {cell.words}, {horizon:,} duels:"
        f" {result.mean[-1]:,.0f} ± {result.std_error[-1]:,.0f} ({result.runs} runs)",
        file=sys.stderr,
        flush=True,
    )
    return result


def ratio(result: PolicyResult, undelayed: PolicyResult, look: int = -1) -> tuple[float, float]:
    """Regret relative to undelayed at a checkpoint, and its standard error (to first order)."""
    quotient = result.mean[look] / undelayed.mean[look]
    parts = (each.std_error[look] / each.mean[look] for each in (result, undelayed))
    return quotient, quotient * math.hypot(*parts)


Measured = dict[tuple[str, Cell], PolicyResult]


def table(plan: Plan, found: Measured) -> list[str]:
    """Markdown: regret, absolute and relative to the undelayed run."""
    first, second, *_ = plan.cells
    runs = {name: found[name, second].runs for name in POLICIES}
    heads = ["in flight", "decisions", *(f"`{name}`" for name in POLICIES)]
    lines = [
        f"Regret after {plan.horizon:,} duels, mean ± standard error, and in brackets how many"
        " times that of the first row. Runs: "
        + ", ".join(f"{count} of `{name}`" for name, count in runs.items())
        + f"; {found[POLICIES[0], first].runs} of each in the first row, and"
        f" {found[SLOW, plan.judged].runs} of `{SLOW}` with {plan.judged.flying:,} in flight and a"
        f" {plan.judged.words}.",
        "",
        "| " + " | ".join(heads) + " |",
        "|--:|---" + "|--:" * len(POLICIES) + "|",
    ]
    for cell in plan.cells:
        texts = [f"{cell.flying:,}", cell.words]
        for name in POLICIES:
            result = found.get((name, cell))
            if result is None:
                texts.append("")
                continue
            text = f"{result.mean[-1]:,.0f} ± {result.std_error[-1]:,.0f}"
            if cell.flying:
                text += f" ({ratio(result, found[name, first])[0]:.2f})"
            texts.append(text)
        lines.append("| " + " | ".join(texts) + " |")
    return lines


def long_table(plan: Plan, far: Measured) -> list[str]:
    """Markdown: the long runs, at each power of ten from the first delayed outcome on."""
    none, late, *_ = plan.remote
    first = far[plan.long[0], none]
    looks = [
        look
        for look, t in enumerate(first.checkpoints)
        if t >= late.flying and math.log10(t).is_integer()
    ]
    times = [f"after {first.checkpoints[look]:,}" for look in looks]
    lines = [
        "Long runs: regret, mean ± standard error, and in brackets how many times the undelayed"
        f" one. {far[plan.long[0], late].runs} runs of each policy, {first.runs} undelayed.",
        "",
        "| " + " | ".join(["policy", "in flight", "decisions", *times]) + " |",
        "|---|--:|---" + "|--:" * len(times) + "|",
    ]
    for name in plan.long:
        for cell in plan.remote:
            result = far[name, cell]
            texts = [f"`{name}`", f"{cell.flying:,}", cell.words]
            for look in looks:
                text = f"{result.mean[look]:,.0f} ± {result.std_error[look]:,.0f}"
                if cell.flying:
                    text += " ({:.2f} ± {:.2f})".format(*ratio(result, far[name, none], look))
                texts.append(text)
            lines.append("| " + " | ".join(texts) + " |")
    return lines


def draw(plan: Plan, found: Measured, path: Path) -> None:
    """A panel for each policy: delay against relative regret, a line for each way to propose."""
    delays = sorted({cell.flying for cell in plan.cells[1:]})
    near, middle, _ = delays
    ways = {
        "slate of 1": [Cell(flying) for flying in delays],
        f"slate of {near:,}": [Cell(flying, near) for flying in delays],
        f"slate of {middle:,}": [Cell(flying, middle) for flying in delays],
        "slate = in flight": [Cell(flying, flying) for flying in delays],
        f"one pair, {near:,} times": [Cell(flying, near, True) for flying in delays],
    }
    figure, grid = panels(2, 2, 7.2, 6.0)
    for panel, name in zip(grid.flat, POLICIES, strict=True):
        curves = []
        for place, (label, cells) in enumerate(ways.items()):
            points = [
                (cell.flying, *ratio(found[name, cell], found[name, plan.cells[0]]))
                for cell in cells
                if (name, cell) in found
            ]
            flying, y, error = zip(*points, strict=True)
            x = [each * 1.05 ** (place - 2) for each in flying]  # side by side
            low = [each - by for each, by in zip(y, error, strict=True)]
            high = [each + by for each, by in zip(y, error, strict=True)]
            curves.append(Curve(label, place, x, y, apart=True))
            panel.vlines(x, low, high, color="#555555", linewidth=1)
        add(panel, curves)
        panel.axhline(1, color="#000000", linewidth=0.8)
        finish(panel, name, "duels in flight", "regret ÷ undelayed")
        panel.set_yscale("log")
        panel.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
        panel.minorticks_off()
    grid.flat[0].legend(fontsize=8, frameon=False)
    save(figure, path)


def draw_long(plan: Plan, far: Measured, path: Path) -> None:
    """A panel for each policy with long runs: regret over time, undelayed and not."""
    figure, grid = panels(1, len(plan.long), 7.2, 3.0)
    top = 1.05 * max(each.mean[-1] + each.std_error[-1] for each in far.values())
    for panel, name in zip(grid.flat, plan.long, strict=True):
        curves = []
        for place, cell in enumerate(plan.remote):
            result = far[name, cell]
            band = list(zip(result.mean, result.std_error, strict=True))
            low, high = [mean - by for mean, by in band], [mean + by for mean, by in band]
            label = f"{cell.flying:,} in flight, {cell.words}" if cell.flying else "undelayed"
            curves.append(Curve(label, place, result.checkpoints, result.mean, low, high))
        add(panel, curves)
        finish(panel, name, "duels", "regret")
        panel.set_ylim(0, top)  # the same scale for all policies
    grid.flat[0].legend(fontsize=8, frameon=False)
    save(figure, path)


def main(given: list[str] | None = None) -> None:
    """Measure, and write the page and the plots."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=20)
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--out", type=Path, default=Path("docs"))
    arguments.add_argument("--quick", action="store_true", help="a trial run")
    options = arguments.parse_args(given)
    plan, runs, jobs = QUICK if options.quick else FULL, options.runs, options.jobs
    # Fast policies first, so that an interrupted measurement has complete tables of them.
    found: Measured = {}
    far: Measured = {}
    for name in sorted(POLICIES, key=lambda name: name == SLOW):
        for cell in plan.cells:
            if plan.has(name, cell):
                count = plan.runs(name, cell, runs)
                found[name, cell] = measure(name, cell, plan.horizon, count, jobs)
        for cell in plan.remote:
            if name in plan.long:
                count = plan.long_runs(cell, runs)
                far[name, cell] = measure(name, cell, plan.far, count, jobs)
    put_in(options.out / PAGE, "delay", [*table(plan, found), "", *long_table(plan, far)])
    draw(plan, found, options.out / "images" / "delay.png")
    draw_long(plan, far, options.out / "images" / "delay-long.png")


if __name__ == "__main__":
    main()

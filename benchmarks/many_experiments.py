"""The cost of many experiments in one process: tables and picture of docs/measurements.md.

python -m benchmarks.many_experiments [--quick] [--out docs]
"""

from __future__ import annotations

import argparse
import gc
import logging
import math
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.crowd import (
    ARMS,
    WINDOW,
    Case,
    Run,
    fold_seconds,
    logs,
    restart,
    run,
    write_service,
)
from benchmarks.measure import Spread, in_fresh_process, in_turns, ratios, tell
from benchmarks.papers.picture import Curve, add, finish, panels, save
from benchmarks.policy_regret import PAGE, put_in
from benchmarks.report import Goal, Result, markdown
from streamduel.service import GC_THRESHOLDS

POLICIES: Final = ("top_two", "rucb")
DECIDE_EVERY: Final = 100
"""Duels between two decisions, so that the cost of records dominates that of decisions."""
MIN_RECORDS: Final = 20_000
"""Records of a run: some five polls, so that the median commit is not one of the first."""
MAX_RECORDS: Final = 400_000
"""Records of a run: with more experiments than that allows, each has fewer."""
MIN_EXPERIMENTS: Final = 100
"""With fewer experiments, their memory is less than the variation of a process's memory."""

Folds = dict[tuple[Case, int], list[float]]
Runs = dict[tuple[str, int], list[Run]]
Restarts = dict[tuple[str, int], list[float]]

RECORDS = """\
{most:,} experiments of {arms} arms, folded one at a time, or several together in one task, a
record of each in turn. Each has the same duels and takes the same decisions either way, so the
difference is the cost of sharing a task. Records in memory, 5,000 at a time, no commits; processor
time; median (min–max), the ratio within each turn. *Slope*: the exponent of the cost as a power of
the number of experiments, from 10 on."""

PROCESSES = """\
Fresh processes that read a YAML file, start, fold {duels} duels of each experiment in turn from a
JSON Lines file (more if that makes few polls, fewer if it makes more than {most:,} records), and
commit to files after each poll of a megabyte.
{arms} arms, `decide_every: {every}`, a dedupe window of {window:,} ids, so that memory is that of
the experiments. *Each*: resident set beyond that of a process with one experiment, per further one.
All times are processor time, medians of {repetitions}. *Start*: after the configuration is read,
until every experiment has its first assignment. *Restart*: the same from the snapshot, in another
process, without rebuilding the dedupe window, which depends on the window alone. *Commit*: with
nearly all experiments changed, if the poll has enough records. *Scrape*: the whole
page of metrics; *again*: when nothing has changed since."""


@dataclass(frozen=True)
class Plan:
    """The extent of the measurement.

    Attributes:
        numbers: of experiments in one process, ascending.
        folds: cases, with the duels of each experiment.
        duels: of each experiment in a run.
        repetitions: of everything.
    """

    numbers: Sequence[int]
    folds: Mapping[Case, int]
    duels: int
    repetitions: int


FULL: Final = Plan(
    numbers=(1, 10, 100, 1_000, 10_000),
    folds={
        Case(name, every): n for every, n in ((DECIDE_EVERY, 100), (1, 10)) for name in POLICIES
    },
    duels=200,
    repetitions=3,
)
QUICK: Final = Plan(
    numbers=(1, 10, 100),
    folds={Case(name, every): 100 for every in (DECIDE_EVERY, 1) for name in POLICIES},
    duels=100,
    repetitions=1,
)


@dataclass(frozen=True)
class Found:
    """The measurements: a value for each repetition.

    Attributes:
        folds: microseconds per record, by case and number of experiments in a task.
        runs: by policy and number of experiments.
        restarts: seconds, likewise.
    """

    folds: Folds
    runs: Runs
    restarts: Restarts


def find(plan: Plan) -> Found:
    """Measure everything."""
    gc.set_threshold(*GC_THRESHOLDS)
    folds: Folds = {}
    for case in plan.folds:
        folds |= _folds(plan, case)
    with tempfile.TemporaryDirectory() as name:
        runs, restarts = _runs(plan, Path(name))
    return Found(folds, runs, restarts)


def _folds(plan: Plan, case: Case) -> Folds:
    every, duels = logs(plan.numbers[-1], plan.folds[case]), plan.folds[case]

    def microseconds(number: int) -> float:
        return fold_seconds(case, every, number) / (len(every) * duels) * 1e6

    runs = {(case, number): partial(microseconds, number) for number in plan.numbers}
    return in_turns(runs, plan.repetitions)


def _runs(plan: Plan, folder: Path) -> tuple[Runs, Restarts]:
    """From an empty folder to the end of the click log, and then from the snapshot."""
    kinds = [(policy, number) for policy in POLICIES for number in plan.numbers]
    runs: Runs = {kind: [] for kind in kinds}
    restarts: Restarts = {kind: [] for kind in kinds}
    for turn in range(plan.repetitions):
        for policy, number in kinds:
            tell(f"{number} experiments of {policy}, {turn + 1} of {plan.repetitions}")
            path = write_service(
                folder / f"{policy}-{number}-{turn}",
                Case(policy, DECIDE_EVERY),
                logs(number, _duels(plan, number)),
                dedupe={"window_records": WINDOW},
            )
            runs[policy, number].append(in_fresh_process(run, path))
            restarts[policy, number].append(in_fresh_process(restart, path))
    return runs, restarts


def _duels(plan: Plan, number: int) -> int:
    """The duels of each of so many experiments."""
    return min(max(plan.duels, MIN_RECORDS // number), max(1, MAX_RECORDS // number))


def results(plan: Plan, found: Found) -> list[Result]:
    """The tables."""
    return [_of_records(plan, found), _of_processes(plan, found)]


def _of_records(plan: Plan, found: Found) -> Result:
    most = plan.numbers[-1]
    rows = []
    for case, duels in plan.folds.items():
        folds = [found.folds[case, number] for number in plan.numbers]
        rows.append(
            [
                f"`{case.policy}`, `decide_every: {case.decide_every}`",
                f"{duels:,}",
                *(Spread.of(values).text() for values in folds),
                ratios(folds[-1], folds[0]).text(),
                f"{slope(plan.numbers, [median(values) for values in folds]):.2f}",
            ]
        )
    heads = [f"{number:,} together, µs" for number in plan.numbers]
    columns = ["policy", "duels each", *heads, f"{most:,} ÷ 1", "slope"]
    title = f"Time per record of {most:,} experiments"
    goals = [
        Goal(f"slope of cost over experiments, {row[0]}", float(row[-1]), at_most=0.1)
        for row in rows
    ]
    return Result(title, RECORDS.format(most=most, arms=ARMS), columns, rows, goals)


def slope(numbers: Sequence[int], costs: Sequence[float]) -> float:
    """The exponent of the cost as a power of the number, from ten experiments on.

    >>> slope([1, 10, 100], [9.0, 2.0, 20.0])
    1.0
    """
    logs_of = [(math.log(n), math.log(c)) for n, c in zip(numbers, costs, strict=True) if n >= 10]
    fitted = statistics.linear_regression(*zip(*logs_of, strict=True))
    return round(fitted.slope, 9)


def _of_processes(plan: Plan, found: Found) -> Result:
    rows = [_of_process(found, kind, (kind[0], plan.numbers[0])) for kind in found.runs]
    columns = [
        "policy, experiments", "process, MB", "each, kB", "each with metrics, kB",
        "reading, s", "start, s", "restart, s", "commit, ms", "scrape, ms", "again, ms",
    ]  # fmt: skip
    method = PROCESSES.format(
        arms=ARMS, duels=plan.duels, every=DECIDE_EVERY, window=WINDOW, most=MAX_RECORDS,
        repetitions=plan.repetitions,
    )  # fmt: skip
    return Result("A process with many experiments", method, columns, rows)


def _of_process(found: Found, kind: tuple[str, int], lone: tuple[str, int]) -> list[str]:
    policy, number = kind

    def middle(figure: str, of: tuple[str, int] = kind) -> float:
        return float(median(getattr(one, figure) for one in found.runs[of]))

    def each(figure: str) -> str:
        more = middle(figure) - middle(figure, lone)
        return f"{more / (number - 1) / 1e3:.0f}" if number >= MIN_EXPERIMENTS else ""

    return [
        f"`{policy}`, {number:,}",
        f"{middle('resident') / 1e6:.0f}",
        each("resident"),
        each("scraped"),
        f"{middle('reading'):.2f}",
        f"{middle('starting'):.2f}",
        f"{median(found.restarts[kind]):.2f}",
        *(f"{1000 * middle(figure):.1f}" for figure in ("commit", "scrape", "again")),
    ]


def draw(plan: Plan, found: Found, path: Path) -> None:
    """Memory and time per record over the number of experiments."""
    figure, ((memory, time),) = panels(1, 2, 7.2, 3.2)
    x = list(plan.numbers)
    for place, policy in enumerate(POLICIES):
        sizes = [median(one.scraped for one in found.runs[policy, n]) / 1e6 for n in x]
        add(memory, [Curve(policy, place, x, sizes, apart=True)])
    for place, case in enumerate(plan.folds):
        label = f"{case.policy}, a decision every {case.decide_every}"
        each = [median(found.folds[case, n]) for n in x]
        add(time, [Curve(label, place, x, each, apart=True)])
    finish(memory, "memory of the process", "experiments", "MB")
    memory.set_ylim(bottom=0)
    finish(time, "time per record", "experiments together", "µs")
    time.set_yscale("log")
    time.set_ylim(1, 2_000)  # room for the legend
    for panel in (memory, time):
        panel.set_xticks(x, [f"{number:,}" for number in x])
        panel.minorticks_off()
        panel.legend(fontsize=7, frameon=False, loc="upper left")
    save(figure, path)


def write(plan: Plan, found: Found, folder: Path) -> None:
    """Put the tables into the page, and the picture beside it."""
    draw(plan, found, folder / "images" / "many-experiments.png")
    tables = [markdown(result).replace("## ", "### ", 1) for result in results(plan, found)]
    put_in(folder / PAGE, "many-experiments", "\n".join(tables).splitlines())


def main(given: Sequence[str] | None = None) -> None:
    """Measure, and write the page."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="fewer records and repetitions")
    arguments.add_argument("--out", type=Path, default=Path("docs"))
    options = arguments.parse_args(given)
    logging.basicConfig(level=logging.ERROR)
    plan = QUICK if options.quick else FULL
    write(plan, find(plan), options.out)


if __name__ == "__main__":
    main()

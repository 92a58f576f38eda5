"""The speed of simulations: stepped, compiled, and textbook.

    python -m benchmarks.simulation_speed [--quick] [--full [--matrices DIR] [--jobs 2]]

With `--full` a whole figure of the RUCB paper is computed, too, which takes minutes and needs
published matrices.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

from benchmarks.measure import Spread, in_fresh_process, in_turns, ratios, tell
from benchmarks.papers import rucb_figure_4
from benchmarks.papers.laboratory import Laboratory
from benchmarks.papers.matrices import FOLDER, HOW_TO_GET, NAVIGATIONAL
from benchmarks.report import Goal, Result, show
from benchmarks.textbook_loops import LOOPS, Floats
from streamduel import policies
from streamduel.simulation import compiled
from streamduel.simulation.environment import MatrixEnvironment
from streamduel.simulation.matrices import ARXIV as ARXIV_MATRIX
from streamduel.simulation.matrices import bradley_terry
from streamduel.simulation.run import Run, SteppedRun

STATIONS = 20

METHOD = """\
One run to T of a policy with its defaults, including the draws of the environment: in Python
(stepped), and compiled, with the same final state, bit for bit. The reference is
`benchmarks/textbook_loops.py`, the algorithm in plain numpy, which computes its K × K matrices at
every step. Its run is **scaled**: {steps:,} of its steps are timed, an equal part of them at each
of {stations} places spread evenly over the same run, where it continues from the counts of the
compiled run with empty lists of its own. The cost of a step hardly depends on the place (nine in
ten cost {low:.2f} to {high:.2f} times the median), so the mean represents all T steps. Figures
are processor time per step of the run, including duels of the champion with itself, which
streamduel counts at once. The last column is the ratio without this effect: a step of the
textbook to the compiled run's time per duel of two different arms. All alternate; the ratios are
within each turn."""

AGAINST_TEXTBOOK = (
    "run",
    "textbook, µs",
    "that × T, s",
    "stepped, µs",
    "compiled, µs",
    "that × T, s",
    "textbook ÷ compiled",
    "goal",
    "without leaps",
)

STEPS = """\
Compiled runs of {duels:,} steps under Bradley–Terry preferences, in processor time. Per step: all
steps, including duels of an arm with itself, which all policies but D-TS count at once. Per duel:
the same time per duel of two different arms. For some, a C++ library's figures per step are given.
They were not measured in the same minutes, and perhaps on another machine and other preferences:
only their order of magnitude is comparable."""

COMPILING = """\
Processor time of the first run of a kernel in a new process, for 100 duels of 6 arms: compiled,
with nothing on disk, and loaded from the machine code on disk."""

FIGURE = """\
`benchmarks/papers/rucb_figure_4.py`: 100 runs of RUCB for each of three numbers of arms, up to
4,500,000 duels, and as many of Condorcet SAVAGE and Beat the Mean for each of eight horizons up to
that, in {jobs} processes, including the plot, without cached runs. Elapsed time."""

ARXIV = "arXiv"
BRADLEY_TERRY = "Bradley–Terry"


class Case(NamedTuple):
    """A run.

    Attributes:
        policy: with its defaults.
        matrix: `ARXIV` or `BRADLEY_TERRY`.
        n_arms: K.
        duels: T.
    """

    policy: str
    matrix: str
    n_arms: int
    duels: int

    @property
    def name(self) -> str:
        """The name in the tables."""
        return f"{self.policy}, {self.matrix}, K = {self.n_arms}"

    @property
    def preferences(self) -> Floats:
        """Those of six rankers, or of arms with strengths from 1 to e² in equal ratios."""
        if self.matrix == ARXIV:
            return ARXIV_MATRIX
        return bradley_terry(np.linspace(2.0, 0.0, self.n_arms).tolist())


GOALS = {
    Case("rucb", ARXIV, 6, 4_500_000): 200,
    Case("rucb", BRADLEY_TERRY, 64, 1_000_000): 30,
    Case("ccb", BRADLEY_TERRY, 64, 1_000_000): 20,
    Case("rmed1", BRADLEY_TERRY, 64, 1_000_000): 20,
}
"""The goals: how many times as fast as the textbook a compiled run must be."""

LIBRARY: dict[tuple[str, int], float | None] = {
    ("rucb", 6): 0.28,
    ("rucb", 16): 1.2,
    ("rucb", 64): 9.6,
    ("rmed1", 64): 33.0,
    ("double_thompson", 16): None,
    ("double_thompson", 64): None,
}
"""Microseconds per step of a C++ library, by policy and K."""

MINUTES = 10
"""The goal for the figure."""


def start_run(way: type[Run], case: Case) -> Run:
    """A new run."""
    policy = policies.create(case.policy, case.n_arms, seed=1)
    return way(policy, MatrixEnvironment(case.preferences, seed=2))


def compiled_run(name: str) -> type[Run]:
    """The compiled run of a policy."""
    way = compiled.find(name)
    if way is None:
        raise SystemExit("this benchmark needs numba: pip install 'streamduel[sim]'")
    return way


def microseconds(way: type[Run], case: Case) -> float:
    """Microseconds per step of runs that take at least a tenth of a second."""
    spent, runs = 0.0, 0
    while spent < 0.1:
        run = start_run(way, case)
        began = time.process_time()
        run.advance(case.duels)
        spent += time.process_time() - began
        runs += 1
    return spent / (runs * case.duels) * 1e6


def share_apart(case: Case) -> float:
    """The share of duels of two different arms; also compiles the kernel."""
    run = start_run(compiled_run(case.policy), case)
    run.advance(case.duels)
    return float(1 - np.trace(run.plays) / case.duels)


def textbook_places(case: Case, steps: int) -> list[float]:
    """Microseconds per step of the textbook at places along the run."""
    run, means = start_run(compiled_run(case.policy), case), []
    each = steps // STATIONS
    for place in range(STATIONS):
        run.advance(place * (case.duels // STATIONS))
        loop = LOOPS[case.policy](case.preferences, run.policy().wins, run.t)
        began = time.process_time()
        loop.run(each)
        means.append((time.process_time() - began) / each * 1e6)
    return means


def textbook_microseconds(case: Case, steps: int) -> float:
    """The mean over the places."""
    return statistics.fmean(textbook_places(case, steps))


def against_textbook(quick: bool) -> Result:
    """Compare compiled runs with the textbook."""
    steps, repetitions = (4_000, 2) if quick else (20_000, 3)
    rows, goals, places = [], [], []
    for given, goal in GOALS.items():
        case = given._replace(duels=given.duels // 20) if quick else given
        apart = share_apart(case)
        found = textbook_places(case, steps)
        places += [place / statistics.median(found) for place in found]
        runs = {
            f"{case.name}, textbook": partial(textbook_microseconds, case, steps),
            f"{case.name}, stepped": partial(microseconds, SteppedRun, case),
            f"{case.name}, compiled": partial(microseconds, compiled_run(case.policy), case),
        }
        slow, stepped, quickest = in_turns(runs, repetitions).values()
        gain = ratios(slow, quickest)
        rows.append(
            [
                f"{case.name}, T = {case.duels:,}",
                Spread.of(slow).text(1),
                f"{seconds(slow, case):,.1f}",
                Spread.of(stepped).text(3),
                Spread.of(quickest).text(5),
                f"{seconds(quickest, case):.3f}",
                gain.text(0),
                f"≥ {goal}",
                f"{gain.median * apart:,.0f}",
            ]
        )
        what = f"{case.name}: textbook ÷ compiled"
        goals.append(Goal(what, gain.median, at_least=goal))
    low, high = np.quantile(places, [0.05, 0.95])
    method = METHOD.format(steps=steps, stations=STATIONS, low=low, high=high)
    return Result("Simulations: textbook and compiled", method, AGAINST_TEXTBOOK, rows, goals)


def seconds(means: Sequence[float], case: Case) -> float:
    """Seconds of a whole run."""
    return statistics.median(means) * case.duels / 1e6


def per_step(quick: bool) -> Result:
    """Measure compiled steps of more policies."""
    duels = 20_000 if quick else 200_000
    rows = []
    for (name, n_arms), library in LIBRARY.items():
        case = Case(name, BRADLEY_TERRY, n_arms, duels)
        apart, leaps = share_apart(case), not name.startswith("double_thompson")
        runs = {case.name: partial(microseconds, compiled_run(name), case)}
        (found,) = in_turns(runs, 2 if quick else 3).values()
        step, duel = Spread.of(found), Spread.of([mean / apart for mean in found])
        rows.append(
            [
                f"{name}, K = {n_arms}",
                step.text(3),
                f"{apart:.0%}",
                duel.text(3) if leaps else "",
                f"{library:g}" if library else "",
                f"{library / step.median:,.1f}" if library else "",
                f"{library / duel.median:,.1f}" if library and leaps else "",
            ]
        )
    columns = [
        "policy",
        "µs per step",
        "different arms",
        "µs per duel",
        "C++ library, µs",
        "library ÷ step",
        "library ÷ duel",
    ]
    method = STEPS.format(duels=duels)
    return Result("Simulations: one compiled step", method, columns, rows)


def first_seconds(name: str, cache: str) -> float:
    """Seconds of the first run of a kernel; numba must not be imported before."""
    os.environ["NUMBA_CACHE_DIR"] = cache
    way, declared = compiled_run(name), policies.get(name).declared
    needed = {one.name: 1_000 for one in declared.values() if one.required}
    run = way(policies.create(name, 6, **needed), MatrixEnvironment(ARXIV_MATRIX, seed=1))
    began = time.process_time()
    run.advance(100)
    return time.process_time() - began


def compiling() -> Result:
    """The cost of the first run of each kernel, compiled and loaded."""
    rows = []
    kernels = {compiled_run(name): name for name in reversed(compiled.names())}
    for way, name in reversed(kernels.items()):
        tell(f"compiling {way.__name__}")
        with tempfile.TemporaryDirectory() as cache:
            compiled_first, loaded = (
                in_fresh_process(first_seconds, name, cache) for _ in range(2)
            )
        rows.append([name, f"{compiled_first:.2f}", f"{loaded:.2f}"])
    return Result(
        "Simulations: compiling", COMPILING, ["kernel of", "compiled, s", "loaded, s"], rows
    )


def whole_figure(quick: bool, matrices: Path, jobs: int) -> Result:
    """Compute a figure of a paper without cached runs."""
    with tempfile.TemporaryDirectory() as folder:
        rooms = Path(folder) / "cache", Path(folder) / "images"
        for room in rooms:
            room.mkdir()
        laboratory = Laboratory(*rooms, matrices, jobs, quick, tell)
        began = time.perf_counter()
        rucb_figure_4.EXPERIMENT.run(laboratory)
        minutes = (time.perf_counter() - began) / 60
    what = "Figure 4 of the RUCB paper" + (", a small part of it" if quick else "")
    goal = Goal(what, minutes, at_most=MINUTES, unit="min")
    rows = [[what, f"{minutes:.2f}", goal.bound]]
    method = FIGURE.format(jobs=jobs)
    return Result("Simulations: a whole figure", method, ["", "minutes", "goal"], rows, [goal])


def measure(quick: bool) -> list[Result]:
    """Measure everything except the figure."""
    return [against_textbook(quick), per_step(quick), compiling()]


def main() -> None:
    """Measure, and print."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    add = arguments.add_argument
    add("--quick", action="store_true", help="shorter runs, fewer repetitions")
    add("--full", action="store_true", help="a figure of the RUCB paper, too")
    add("--matrices", type=Path, default=os.environ.get(FOLDER), help=f"default: {FOLDER}")
    add("--jobs", type=int, default=2, help="processes for the figure")
    given = arguments.parse_args()
    folder = given.matrices
    if given.full and (folder is None or not (folder / NAVIGATIONAL).is_file()):
        arguments.error(f"--full: {HOW_TO_GET}.")
    console = Console(width=max(120, shutil.get_terminal_size().columns))
    for result in measure(given.quick):
        show(result, console)
    if given.full:
        show(whole_figure(given.quick, folder, given.jobs), console)


if __name__ == "__main__":
    main()

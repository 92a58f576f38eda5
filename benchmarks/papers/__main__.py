"""Compute the papers' figures again and write docs/papers.md from benchmarks/papers/outcomes.json.

python -m benchmarks.papers [--matrices DIR] [--only NAME …] [--quick] [--jobs 2] [--out docs]
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from benchmarks.papers import (
    c2b,
    condorcet_assumption,
    copeland_figure_1,
    copeland_figure_2,
    copeland_figure_3,
    copeland_gap,
    copeland_table_1,
    matrices,
    page,
    rucb_figure_4,
    store,
)
from benchmarks.papers.experiment import Experiment
from benchmarks.papers.laboratory import Laboratory, processor_seconds
from benchmarks.papers.store import Record, Spent

EXPERIMENTS: tuple[Experiment, ...] = (
    rucb_figure_4.EXPERIMENT,
    condorcet_assumption.RUCB_FIGURE_5,
    copeland_figure_1.EXPERIMENT,
    copeland_figure_2.EXPERIMENT,
    copeland_figure_3.EXPERIMENT,
    condorcet_assumption.COPELAND_FIGURE_4,
    copeland_table_1.EXPERIMENT,
    copeland_gap.EXPERIMENT,
    c2b.FIGURE_1,
    c2b.FIGURE_2,
)
"""In the order of the page."""

CHEAPEST_FIRST = (
    "copeland_gap",
    "copeland_figure_4",
    "rucb_figure_5",
    "copeland_table_1",
    "copeland_figure_3",
    "copeland_figure_1",
    "c2b_figure_1",
    "c2b_figure_2",
    "rucb_figure_4",
    "copeland_figure_2",
)
"""The order in which they are computed."""


def default_cache() -> Path:
    """The user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "streamduel" / "papers"


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line, with defaults."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--matrices", type=Path, help=f"folder of published matrices; default: {matrices.FOLDER}")
    add("--only", nargs="+", choices=CHEAPEST_FIRST, metavar="NAME", help="these alone:"
        f" {', '.join(CHEAPEST_FIRST)}")  # fmt: skip
    add("--quick", action="store_true", help="few runs and duels, as a trial")
    add("--jobs", type=int, default=1, help="number of processes; does not change results")
    add("--out", type=Path, help="folder of papers.md; default: docs, with --quick run/papers")
    add("--cache", type=Path, default=default_cache(), help="folder of finished runs")
    add("--fresh", action="store_true", help="forget finished runs first")
    found = parser.parse_args(given)
    if found.jobs < 1:
        parser.error(f"--jobs must be at least 1 (found {found.jobs})")
    if found.matrices is None and os.environ.get(matrices.FOLDER):
        found.matrices = Path(os.environ[matrices.FOLDER])
    if found.out is None:
        found.out = Path("run/papers") if found.quick else store.DOCS
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Run the experiments, and write the page after each."""
    found = arguments(given)
    say = Console(stderr=True, highlight=False, soft_wrap=True).print
    images: Path = found.out / page.IMAGES
    outcomes = store.state_file(found.out, quick=found.quick)
    if found.fresh:
        shutil.rmtree(found.cache / ("quick" if found.quick else "thorough"), ignore_errors=True)
    for name in found.only or CHEAPEST_FIRST:
        experiment = next(each for each in EXPERIMENTS if each.name == name)
        if lacking := _lacking(experiment, found.matrices):
            say(f"{name}: not run, {' and '.join(lacking)} is missing; {matrices.HOW_TO_GET}.")
            continue
        record = measure(experiment, found, images, say)
        records = {**store.load(outcomes), name: record}
        store.save(outcomes, records)
        _write(found.out, records)
    _write(found.out, store.load(outcomes))
    say(f"written to {found.out / 'papers.md'}")


def _lacking(experiment: Experiment, folder: Path | None) -> list[str]:
    """The missing files of an experiment."""
    return [name for name in experiment.matrices if folder is None or not (folder / name).is_file()]


def measure(
    experiment: Experiment,
    found: argparse.Namespace,
    images: Path,
    say: Callable[[str], None],
) -> Record:
    """Run one experiment.

    Args:
        experiment: to run.
        found: the parsed command line.
        images: the folder for pictures.
        say: called with lines of progress.
    """
    name = experiment.name
    began, began_processor = time.perf_counter(), processor_seconds()
    say(f"{name}: begins")

    def tell(line: str) -> None:
        say(f"{name}: {line}, {time.perf_counter() - began:.0f} s")

    laboratory = Laboratory(found.cache, images, found.matrices, found.jobs, found.quick, tell)
    kind = "quick" if found.quick else "thorough"
    spent = Spent(found.cache / kind / f"{name}.seconds")
    try:
        outcome = experiment.run(laboratory)
    finally:
        seconds = spent.add(processor_seconds() - began_processor)
    say(f"{name}: {outcome.verdict}; {outcome.measured} ({time.perf_counter() - began:.0f} s)")
    return Record(outcome, found.quick, seconds, page.facts())


def _write(out: Path, records: dict[str, Record]) -> None:
    """Write the page from the present records."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "papers.md").write_text(page.page(EXPERIMENTS, records), encoding="utf-8")


def _stop(*_: object) -> NoReturn:
    """Exit as by Ctrl-C: the time is recorded and no process is left."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted; the same command resumes")

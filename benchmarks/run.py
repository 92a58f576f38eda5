"""Run the benchmarks, print their results, and write RESULTS.md.

    python benchmarks/run.py [--quick] [--only fold kafka_service …] [--output FILE]

Without options all benchmarks run, which takes more than an hour, and RESULTS.md is written.
With `--quick` or `--only` nothing is written unless `--output` names a file. The section on other
stream processors has a command of its own, `python -m benchmarks.peers`, and is kept.
"""

from __future__ import annotations

import argparse
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import (
    attribution,
    commit_interval,
    dedupe_memory,
    fold,
    hostile,
    kafka_service,
    latency,
    machine,
    many_experiments,
    memory,
    policies,
    processes,
    scrape,
    simulation_speed,
)
from benchmarks.measure import tell
from benchmarks.peers import page as peers
from benchmarks.report import Benchmark, Goal, Result, markdown, show

RESULTS = Path(__file__).with_name("RESULTS.md")

BENCHMARKS: dict[str, Benchmark] = {
    "fold": fold.measure,
    "hostile": hostile.measure,
    "attribution": attribution.measure,
    "policies": policies.measure,
    "kafka_service": kafka_service.measure,
    "latency": latency.measure,
    "processes": processes.measure,
    "commit_interval": commit_interval.measure,
    "dedupe_memory": dedupe_memory.measure,
    "memory": memory.measure,
    "many_experiments": many_experiments.measure,
    "scrape": scrape.measure,
    "simulation_speed": simulation_speed.measure,
}

HEAD = """\
# Results

Written by `make bench`; do not edit. This page shows how fast streamduel is on one machine, and its
ratio to a reference measured in the same minutes. A figure is the median of several repetitions,
with (min–max). Ratios carry over to other machines, figures do not.
"""

CHANGED = """\
**The code changed during the measurement**: these sections belong to different versions. Measure
again.
"""

BUSY = """\
The load average before each benchmark was {loads}, on {cores} cores. A load before the first is
from other programs; it lowers records per second, but hardly affects processor time."""


def document(results: Sequence[Result], loads: Sequence[str], *, quick: bool, changed: bool) -> str:
    """The page of results.

    Args:
        results: in their order.
        loads: of the machine, before each benchmark.
        quick: whether the run is a trial.
        changed: whether the code has changed since the start.
    """
    goals = [goal for result in results for goal in result.goals]
    parts = [HEAD, _goals(goals), *(markdown(result) for result in results), _machine(loads)]
    if quick:
        parts.insert(
            1, "**A quick run**: few records and repetitions; its figures are not reliable.\n"
        )
    if changed:
        parts.insert(1, CHANGED)
    return "\n".join(part for part in parts if part)


def _goals(goals: Sequence[Goal]) -> str:
    if not goals:
        return ""
    missed = [goal for goal in goals if not goal.met]
    lines = ["| goal | bound | found | |", "| --- | --- | --- | --- |"]
    for goal in goals:
        found = f"{goal.found:.2f} {goal.unit}".strip()
        lines.append(
            f"| {goal.what} | {goal.bound} | {found} | {'met' if goal.met else 'missed'} |"
        )
    verdict = (
        f"{len(missed)} of {len(goals)} goals are missed: "
        + "; ".join(f"{goal.what} ({goal.found:.2f}, {goal.bound})" for goal in missed)
        if missed
        else "All goals are met"
    )
    return "## Goals\n\n" + "\n".join(lines) + f"\n\n{verdict}.\n"


def _machine(loads: Sequence[str]) -> str:
    facts = machine.facts()
    lines = ["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in facts)]
    busy = BUSY.format(loads=", ".join(loads), cores=machine.cores())
    return "## The machine\n\n" + "\n".join(lines) + f"\n\n{busy}"


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--quick", action="store_true", help="fewer records and repetitions")
    arguments.add_argument("--only", nargs="+", choices=BENCHMARKS, help="these alone")
    arguments.add_argument("--output", type=Path, help="where to write the page")
    return arguments.parse_args()


def main() -> None:
    """Run the benchmarks named on the command line."""
    given = _arguments()
    logging.basicConfig(level=logging.ERROR)
    console = Console(width=max(120, shutil.get_terminal_size().columns))
    results: list[Result] = []
    loads: list[str] = []
    code = machine.code_digest()
    for name in given.only or BENCHMARKS:
        loads.append(machine.load())
        tell(f"{name}, load {loads[-1]}")
        found = BENCHMARKS[name](given.quick)
        for result in found:
            show(result, console)
        results += found
    whole = not given.quick and not given.only
    output = given.output or (RESULTS if whole else None)
    if output is not None:
        changed = machine.code_digest() != code
        page = document(results, loads, quick=given.quick, changed=changed)
        output.write_text(f"{page}\n{peers.section(output)}")
        tell(f"written to {output}")


if __name__ == "__main__":
    main()

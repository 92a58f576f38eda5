"""Run the benchmarks, print their results, and write them to RESULTS.md.

    python -m benchmarks.run [--quick] [--only fold kafka_service …]

All of them take more than an hour. Each is written when it ends; the results of the others are
kept. With `--quick` nothing is written. Other stream processors have a command of their own,
`python -m benchmarks.peers`.
"""

from __future__ import annotations

import argparse
import logging
import shutil

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
    memory,
    page,
    policies,
    processes,
    restart,
    scrape,
    simulation_speed,
)
from benchmarks.measure import tell
from benchmarks.page import Measured
from benchmarks.report import Benchmark, show

BENCHMARKS: dict[str, Benchmark] = {
    "fold": fold.measure,
    "hostile": hostile.measure,
    "attribution": attribution.measure,
    "policies": policies.measure,
    "kafka_service": kafka_service.measure,
    "latency": latency.measure,
    "processes": processes.measure,
    "restart": restart.measure,
    "commit_interval": commit_interval.measure,
    "dedupe_memory": dedupe_memory.measure,
    "memory": memory.measure,
    "scrape": scrape.measure,
    "simulation_speed": simulation_speed.measure,
}


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--quick", action="store_true", help="fewer records and repetitions")
    arguments.add_argument("--only", nargs="+", choices=BENCHMARKS, help="these alone")
    return arguments.parse_args()


def main() -> None:
    """Run the benchmarks named on the command line."""
    given = _arguments()
    logging.basicConfig(level=logging.ERROR)
    console = Console(width=max(120, shutil.get_terminal_size().columns))
    for name in given.only or BENCHMARKS:
        tell(f"{name}, load {machine.load()}")
        measured = Measured.of(BENCHMARKS[name], quick=given.quick)
        for result in measured.results:
            show(result, console)
        if not given.quick:
            page.put(name, measured)


if __name__ == "__main__":
    main()

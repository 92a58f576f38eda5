"""Runs schedules: `python -m streamduel.testing.simulation --seeds 0:10000`."""

from __future__ import annotations

import argparse
import sys
import time

from rich.console import Console
from rich.progress import Progress

from streamduel.testing.simulation import Failure, Outcome, Schedule, simulate


def main(arguments: list[str] | None = None) -> int:
    """Run what the arguments ask for.

    Returns:
        The exit status: 1 if a schedule failed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m streamduel.testing.simulation",
        description="Runs the service on a model of Kafka, with faults that a seed determines.",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--seed", type=int, help="run this schedule")
    which.add_argument(
        "--seeds", type=_range, default=range(1000), metavar="FIRST:END", help="default 0:1000"
    )
    parser.add_argument("--verbose", action="store_true", help="print every step of --seed")
    given = parser.parse_args(arguments)
    seeds = given.seeds if given.seed is None else range(given.seed, given.seed + 1)
    if given.verbose and len(seeds) == 1:
        return _narrate(Schedule(seeds[0]))
    return _run(seeds)


def _range(text: str) -> range:
    first, _, end = text.partition(":")
    try:
        return range(int(first), int(end))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be FIRST:END, such as 0:10000 (found {text!r})"
        ) from None


def _narrate(schedule: Schedule) -> int:
    failure = None
    try:
        outcome: object = schedule.run()
    except Failure as error:
        outcome = failure = error
    sys.stdout.write(f"{schedule.shown_trace()}\n{outcome}\n")
    return 0 if failure is None else 1


def _run(seeds: range) -> int:
    total, failed, began = Outcome(), list[int](), time.monotonic()
    console = Console(stderr=True)
    with Progress(console=console) as progress:
        for seed in progress.track(seeds, description="schedules"):
            try:
                total += simulate(seed)
            except Failure as failure:
                failed.append(seed)
                progress.print(str(failure), markup=False)
    sys.stdout.write(f"{total} in {time.monotonic() - began:.0f} s, failed: {failed or 'none'}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

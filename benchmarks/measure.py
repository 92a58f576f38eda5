"""Repetitions that take turns, and what is said about them."""

from __future__ import annotations

import resource
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple, ParamSpec, Self, TypeVar

Arguments = ParamSpec("Arguments")
Outcome = TypeVar("Outcome")
Name = TypeVar("Name")


class Spread(NamedTuple):
    """A figure that was measured several times."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Median and extremes."""
        return cls(statistics.median(values), min(values), max(values))

    def text(self, digits: int = 2) -> str:
        """`median (min–max)`."""
        low, high = f"{self.low:,.{digits}f}", f"{self.high:,.{digits}f}"
        return f"{self.median:,.{digits}f} ({low}–{high})"


def tell(message: str) -> None:
    """Progress, for whoever waits."""
    print(f"  {message}", file=sys.stderr, flush=True)


def in_turns(
    runs: Mapping[Name, Callable[[], Outcome]], repetitions: int
) -> dict[Name, list[Outcome]]:
    """Run one after another, all of them `repetitions` times.

    What else the machine does then falls on all of them, and on the ratio within a turn least.
    """
    outcomes: dict[Name, list[Outcome]] = {name: [] for name in runs}
    for turn in range(repetitions):
        for name, run in runs.items():
            tell(f"{name}, {turn + 1} of {repetitions}")
            outcomes[name].append(run())
    return outcomes


def ratios(of: Sequence[float], to: Sequence[float]) -> Spread:
    """The ratio within each turn."""
    return Spread.of([one / other for one, other in zip(of, to, strict=True)])


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def in_fresh_process(
    run: Callable[Arguments, Outcome],
    *arguments: Arguments.args,
    **options: Arguments.kwargs,
) -> Outcome:
    """Call a module's function in a new interpreter: nothing is warm, no memory is in use."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(run, *arguments, **options).result()


def resident_bytes() -> int:
    """The memory that this process has in use (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()

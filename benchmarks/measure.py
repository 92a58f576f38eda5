"""Repeated measurements that alternate, and their statistics."""

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
    """The spread of a figure over repetitions."""

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
    """Print progress to standard error."""
    print(f"  {message}", file=sys.stderr, flush=True)


def in_turns(
    runs: Mapping[Name, Callable[[], Outcome]], repetitions: int
) -> dict[Name, list[Outcome]]:
    """Run all measurements in turn, `repetitions` times.

    Other load on the machine then affects all of them alike, and the ratio within a turn least.
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
    """The smallest value that is not exceeded by this share of the values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def in_fresh_process(
    run: Callable[Arguments, Outcome],
    *arguments: Arguments.args,
    **options: Arguments.kwargs,
) -> Outcome:
    """Call a function of a module in a new interpreter, with cold caches and no memory in use."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(run, *arguments, **options).result()


def resident_bytes() -> int:
    """The memory that this process has in use (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()

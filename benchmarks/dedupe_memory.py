"""The memory of a dedupe window of a million ids.

python benchmarks/dedupe_memory.py [--quick]
"""

from __future__ import annotations

import gc
import tracemalloc
from functools import partial
from typing import NamedTuple

from benchmarks.measure import Spread, in_fresh_process, in_turns, resident_bytes
from benchmarks.report import Goal, Result, alone
from streamduel.stream.dedupe import DedupeWindow, record_key

METHOD = """\
One `DedupeWindow` is filled to its limit, then with as many ids again, so that each new id evicts
one. In the worst case, which the goal refers to, every record has its own stream time. Measured by
tracemalloc and, in another new process, as growth of the resident set; the ids themselves are not
kept. MB are millions of bytes. The peak includes tables that are copied while they grow; the goal
is for the memory at the end. The resident set varies with the placement of the tables by the
allocator: median (min–max) of new processes."""

BYTES_PER_ID = 120
"""The goal: 120 MB for a million ids."""
WORST, BUSY = 1, 50
"""Records with the same time."""
LOOKS = 100
"""Samples of the resident set, evenly over the run."""


class Memory(NamedTuple):
    """Bytes in use."""

    filled: int
    peak: int
    turned_over: int

    @property
    def lasting(self) -> int:
        """Bytes in use at the end."""
        return max(self.filled, self.turned_over)


def fill(window: DedupeWindow, start: int, count: int, per_millisecond: int) -> None:
    """Add `count` new ids, several in each millisecond."""
    for number in range(start, start + count):
        if number and number >= window.block_end:
            window.begin_block(number)
        if number % per_millisecond == 0:
            window.advance(number // per_millisecond, number)
        window.add(record_key(f"id-{number:032x}", 0))


def traced(ids: int, per_millisecond: int) -> Memory:
    """The memory by tracemalloc."""
    tracemalloc.start()
    window = DedupeWindow(ids, 10**12)
    before = tracemalloc.get_traced_memory()[0]
    fill(window, 0, ids, per_millisecond)
    filled, peak = tracemalloc.get_traced_memory()
    fill(window, ids, ids, per_millisecond)
    turned_over, later_peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Memory(filled - before, max(peak, later_peak) - before, turned_over - before)


def resident(ids: int, per_millisecond: int) -> Memory:
    """The resident set; its peak is the largest of some samples."""
    window = DedupeWindow(ids, 10**12)
    gc.collect()
    before = resident_bytes()
    sizes = []
    step = 2 * ids // LOOKS
    for start in range(0, 2 * ids, step):
        fill(window, start, step, per_millisecond)
        sizes.append(resident_bytes() - before)
    return Memory(sizes[LOOKS // 2 - 1], max(sizes), sizes[-1])


def measure(quick: bool) -> list[Result]:
    """Measure both ways, for a slow and a busy click log."""
    ids = 100_000 if quick else 1_000_000
    rows: list[list[str]] = []
    goals: list[Goal] = []
    for per_millisecond in (WORST, BUSY):
        runs = {
            f"{name}, {per_millisecond} per ms": partial(
                in_fresh_process, count, ids, per_millisecond
            )
            for name, count in (("tracemalloc", traced), ("resident set", resident))
        }
        for name, found in in_turns(runs, 2 if quick else 5).items():
            each = Spread.of([one.lasting / ids for one in found])
            sizes = [
                Spread.of([size / 1e6 for size in sizes]) for sizes in zip(*found, strict=True)
            ]
            rows.append([name, each.text(0), *(size.text(0) for size in sizes)])
            if per_millisecond == WORST:
                goals.append(Goal(f"bytes per id, {name}", each.median, BYTES_PER_ID, unit="B"))
    columns = [
        "measured by",
        "bytes per id",
        "full, MB",
        "peak, MB",
        "turned over, MB",
    ]
    return [Result(f"Dedupe window of {ids:,} ids", METHOD, columns, rows, goals)]


if __name__ == "__main__":
    alone(measure, __doc__)

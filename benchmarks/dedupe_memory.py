"""What the dedupe window costs in memory when it remembers a million ids.

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
One `DedupeWindow`, filled until it remembers as many ids as it may, and once more as many, so that
each new id makes it forget one. The worst case, and the goal's, is a stream time of its own for
every record: a stretch each. Measured by tracemalloc and, in another fresh process, as growth of
the resident set; the ids themselves are not kept. MB are millions of bytes; the peak includes
what growing tables hold twice for a moment, the goal is for what stays. The resident set depends
on how the allocator happens to place the tables: median (min–max) of fresh processes."""

BYTES_PER_ID = 120
"""So that a million ids take 120 MB."""
WORST, BUSY = 1, 50
"""Records that bear the same time."""
LOOKS = 100
"""At the resident set, evenly over the run."""


class Memory(NamedTuple):
    """Bytes in use."""

    filled: int
    peak: int
    turned_over: int

    @property
    def lasting(self) -> int:
        """What stays in use."""
        return max(self.filled, self.turned_over)


def fill(window: DedupeWindow, start: int, count: int, per_millisecond: int) -> None:
    """See `count` new ids, so many in each millisecond."""
    for number in range(start, start + count):
        if number % per_millisecond == 0:
            window.advance(number // per_millisecond, number)
        window.sight(record_key(f"id-{number:032x}", 0))


def traced(ids: int, per_millisecond: int) -> Memory:
    """As tracemalloc counts."""
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
    """As the operating system counts; its peak is the largest of some looks."""
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
    """Both ways of counting, a slow log and a busy one."""
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

"""The resident set of a process that folds many records.

python benchmarks/memory.py [--quick]
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.measure import in_fresh_process, resident_bytes, tell
from benchmarks.records import START, Record, configuration, duel_values, fresh_task
from benchmarks.report import Result, alone
from streamduel.service import GC_THRESHOLDS

METHOD = """\
One new process folds generated duels with distinct ids, each at its own millisecond, K = 6, with a
decision every 100 duels and a commit every 50,000 records, as the runner does. The resident set may
follow the turnover of the dedupe window; growth is therefore the mean over the last turnover
compared with the mean over the third."""

BATCH = 5000
BATCHES_PER_COMMIT = 10
BAR = 30
"""Characters for the largest sample."""


class Sample(NamedTuple):
    """The resident set after a number of records."""

    records: int
    size: int


def fold_on(total: int, window: int, step: int) -> list[Sample]:
    """Fold `total` records and look at the memory every `step`."""
    gc.set_threshold(*GC_THRESHOLDS)
    task = fresh_task(configuration(6, 100, dedupe={"window_records": window}))
    values = duel_values(total, 6)
    samples = []
    for start in range(0, total, BATCH):
        task.fold(
            [
                Record(offset, START + offset, b"search", next(values))
                for offset in range(start, start + BATCH)
            ]
        )
        done = start + BATCH
        if done % (BATCH * BATCHES_PER_COMMIT) == 0:
            task.take_commit()
        if done % step == 0:
            samples.append(Sample(done, resident_bytes()))
            tell(f"memory: {done:,} of {total:,} records, {samples[-1].size / 1e6:.0f} MB")
    return samples


def _mean(samples: Sequence[Sample], after: int, until: int) -> float:
    return statistics.mean(sample.size for sample in samples if after < sample.records <= until)


def measure(quick: bool) -> list[Result]:
    """Measure one long fold."""
    total, window, step = (500_000, 50_000, 25_000) if quick else (5_000_000, 1_000_000, 250_000)
    samples = in_fresh_process(fold_on, total, window, step)
    first = _mean(samples, 2 * window, 3 * window)
    last = _mean(samples, total - window, total)
    most = max(sample.size for sample in samples)
    rows = [
        [f"{sample.records:,}", f"{sample.size / 1e6:.0f}", "█" * round(BAR * sample.size / most)]
        for sample in samples
    ]
    growth = f"{100 * (last / first - 1):+.1f} %"
    rows.append([f"growth, {first / 1e6:.1f} to {last / 1e6:.1f} MB", growth, ""])
    title = f"Resident set over {total:,} records, window of {window:,} ids"
    return [Result(title, METHOD, ["records", "MB", ""], rows)]


if __name__ == "__main__":
    alone(measure, __doc__)

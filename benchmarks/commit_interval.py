"""The effect of the commit interval on throughput; `latency.py` measures its effect on latency.

python benchmarks/commit_interval.py [--quick]
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from benchmarks.broker import create_topic, experiments, fill, write_configuration
from benchmarks.measure import Spread, in_fresh_process, in_turns, ratios
from benchmarks.meter import Run, serve_to_end
from benchmarks.report import Result, alone
from tests.broker.local_kafka import LocalKafka

INTERVALS = (50, 100, 250, 500, 1000)
SLOWEST = INTERVALS[-1]
PARTITIONS = 4
ARMS = 6

METHOD = """\
A backlog of {count:,} duels in 4 partitions, K = 6, `decide_every: 100`, a new process and consumer
group per run, the intervals in turn; relative to 1000 ms within each turn, timed as for the
service."""


def measure(quick: bool) -> list[Result]:
    """Measure every interval."""
    count = 100_000 if quick else 400_000
    with tempfile.TemporaryDirectory() as name, LocalKafka() as broker:
        servers, directory = broker.bootstrap_servers, Path(name)
        create_topic(servers, "backlog", PARTITIONS)
        fill(servers, "backlog", PARTITIONS, count, ARMS)
        runs = in_turns(
            {
                f"commit interval {interval} ms": partial(_backlog, directory, servers, interval)
                for interval in INTERVALS
            },
            2 if quick else 3,
        )
    speeds = [[run.per_second for run in found] for found in runs.values()]
    rows = [
        [str(interval), Spread.of(found).text(0), ratios(found, speeds[-1]).text()]
        for interval, found in zip(INTERVALS, speeds, strict=True)
    ]
    columns = ["interval, ms", "records/s", f"relative to {SLOWEST} ms"]
    return [Result("The commit interval", METHOD.format(count=count), columns, rows)]


def _backlog(directory: Path, servers: str, interval: int) -> Run:
    path = write_configuration(
        directory, servers, "backlog", experiments(PARTITIONS), interval_ms=interval
    )
    return in_fresh_process(serve_to_end, path)


if __name__ == "__main__":
    alone(measure, __doc__)

"""The time from a click to the visible assignment that knows it, and where that time goes.

python -m benchmarks.latency [--quick]
"""

from __future__ import annotations

import contextlib
import tempfile
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import msgspec

from benchmarks.broker import create_topic, experiments, fill, write_configuration
from benchmarks.live import ARMS, Load, Moment, Reader, feed, running
from benchmarks.machine import cores
from benchmarks.measure import in_fresh_process, percentile, tell
from benchmarks.meter import serve_to_end
from benchmarks.report import Goal, Result, alone
from tests.broker.local_kafka import LocalKafka

CLIENTS: Final = ("kafka-python", "confluent")
INTERVALS: Final = (50, 100, 500)
PARTITIONS: Final = 4

LOW: Final = 1_000
"""Records per second at which the goals hold."""
HIGH: Final = 20_000
SHARE: Final = 0.8
"""Of the records per second of a backlog, for the third rate."""

MORE_MS: Final = 25.0
"""Beyond the interval: what 99 % may take at the low rate."""
COMMIT_MS: Final = 10.0

WARM_SECONDS: Final = 3.0
"""Not counted: the first commits, and code that runs for the first time."""

METHOD = """\
From the moment that the broker appends a duel (its `LogAppendTime`, in milliseconds; the sender is
librdkafka with `linger.ms: 0` in a process of its own) to the return of the poll in which a
`read_committed` consumer has the assignment that this duel caused, including assignments that are
replaced within the same commit. K = 6. At {low:,} records/s: one partition,
`decide_every: 1`; above: four partitions, `decide_every: 100`. {seconds:.0f} s for each row, the
first {warm:.0f} not counted. The last rate of each client is 80 % of what it folds of a backlog on
this machine, where broker, sender, service and reader share {cores} cores. The parts are medians:
*fetch*, until the service's poll returns the duel; *fold and wait*, until the commit begins;
*commit*, until its transaction has ended; *read*, until the assignment is polled."""


class Case(NamedTuple):
    """One row of the table."""

    client: str
    rate: int
    interval: int

    @property
    def partitions(self) -> int:
        """Of the click log."""
        return 1 if self.rate == LOW else PARTITIONS

    @property
    def decide_every(self) -> int:
        """Duels for each decision."""
        return 1 if self.rate == LOW else 100


@dataclass
class Latency:
    """Seconds, for each assignment; `parts` by name."""

    waits: list[float] = field(default_factory=list)
    parts: dict[str, list[float]] = field(default_factory=dict)


def measure(quick: bool) -> list[Result]:
    """Measure every rate, interval and client."""
    count, seconds = (100_000, 5.0) if quick else (800_000, 15.0)
    found: dict[Case, Latency] = {}
    with tempfile.TemporaryDirectory() as name, LocalKafka() as broker:
        servers, directory = broker.bootstrap_servers, Path(name)
        create_topic(servers, "backlog", PARTITIONS)
        fill(servers, "backlog", PARTITIONS, count, ARMS)
        for client in CLIENTS:
            path = write_configuration(
                directory, servers, "backlog", experiments(PARTITIONS), client=client
            )
            capacity = in_fresh_process(serve_to_end, path).per_second
            rates = (LOW, HIGH, round(SHARE * capacity, -3))
            for rate, interval in product(rates, INTERVALS):
                case = Case(client, int(rate), interval)
                tell(f"latency with {client}, {case.rate:,} records/s, interval {interval} ms")
                found[case] = _measure(directory, servers, case, seconds)
    return [_result(found, seconds)]


def _measure(directory: Path, servers: str, case: Case, seconds: float) -> Latency:
    """Feed a service of its own, and read what it publishes."""
    topic = f"clicks-{case.client}-{case.rate}-{case.interval}"
    names = experiments(case.partitions)
    create_topic(servers, topic, case.partitions, {"message.timestamp.type": "LogAppendTime"})
    path = write_configuration(
        directory, servers, topic, names, client=case.client, interval_ms=case.interval,
        n_arms=ARMS, decide_every=case.decide_every,
    )  # fmt: skip
    assignments = msgspec.json.decode(path.read_bytes())["sink"]["assignments"]
    create_topic(servers, assignments, 1, {"cleanup.policy": "compact"})
    with contextlib.closing(Reader(servers, assignments)) as reader, running(path) as ended:
        reader.await_first(len(names))
        moments = feed(servers, Load(topic, case.partitions, case.rate), seconds, reader)
        polls, commits = ended()
    partitions = {name: number for number, name in enumerate(names)}
    seen = {(partitions[name], offset): at for (name, offset), at in reader.seen.items()}
    return latency_of(seen, moments, polls, commits)


def latency_of(
    seen: Mapping[tuple[int, int], float],
    appended: Sequence[Sequence[float]],
    polls: Mapping[int, Sequence[Moment]],
    commits: Mapping[int, Sequence[Moment]],
) -> Latency:
    """Put together what sender, service and reader noted.

    Args:
        seen: when the reader had an assignment, by partition and the offset that it names.
        appended: when each record was appended, by partition.
        polls: of the service, by partition, in order.
        commits: likewise.
    """
    found = Latency(parts={name: [] for name in ("fetch", "fold and wait", "commit", "read")})
    begin = min(times[0] for times in appended) + WARM_SECONDS
    for (partition, offset), at in seen.items():
        if offset < 0 or appended[partition][offset] < begin:
            continue
        start = appended[partition][offset]
        fetched = _first(polls[partition], offset).time
        commit = _first(commits[partition], offset)
        found.waits.append(at - start)
        parts = (
            fetched - start,
            commit.time - commit.took - fetched,
            commit.took,
            at - commit.time,
        )
        for name, seconds in zip(found.parts, parts, strict=True):
            found.parts[name].append(seconds)
    return found


def _first(moments: Sequence[Moment], offset: int) -> Moment:
    """The first that has passed an offset."""
    return moments[bisect_left(moments, offset + 1, key=lambda each: each.offset)]


def _result(found: Mapping[Case, Latency], seconds: float) -> Result:
    rows, goals = [], []
    for case, latency in found.items():
        ms = {percent: 1000 * percentile(latency.waits, percent) for percent in (50, 99, 99.9)}
        parts = {name: 1000 * median(values) for name, values in latency.parts.items()}
        rows.append(
            [
                f"{case.client}, {case.rate:,}/s, {case.interval} ms",
                *(f"{value:.0f}" for value in ms.values()),
                *(f"{value:.1f}" for value in parts.values()),
                f"{len(latency.waits):,}",
            ]
        )
        if case.rate == LOW:
            what = f"{case.client}, {LOW:,}/s, interval {case.interval} ms"
            most = case.interval + MORE_MS
            goals.append(Goal(f"latency p99, {what}", ms[99], at_most=most, unit="ms"))
            goals.append(
                Goal(f"commit, median, {what}", parts["commit"], at_most=COMMIT_MS, unit="ms")
            )
    columns = [
        "client, records/s, commit interval", "p50, ms", "p99, ms", "p99.9, ms",
        "fetch, ms", "fold and wait, ms", "commit, ms", "read, ms", "assignments",
    ]  # fmt: skip
    method = METHOD.format(low=LOW, seconds=seconds, warm=WARM_SECONDS, cores=cores())
    return Result("From the click to the assignment", method, columns, rows, goals)


if __name__ == "__main__":
    alone(measure, __doc__)

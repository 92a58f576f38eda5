"""Several processes that share a click log: their cost, and the pause when one joins.

python -m benchmarks.processes [--quick]
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.broker import create_topic, experiments, fill, write_configuration
from benchmarks.live import ARMS, GRACE_SECONDS, Load, Reader, feed, running
from benchmarks.measure import Spread, in_turns, ratios
from benchmarks.meter import Run, serve_to_end
from benchmarks.report import Goal, Result, alone
from tests.broker.local_kafka import LocalKafka

CLIENTS: Final = ("kafka-python", "confluent")
NUMBERS: Final = (1, 2, 4)
PARTITIONS: Final = 8

MORE: Final = 1.1
"""Processor time per record, as a multiple of one process's."""

RATE: Final = 2_000
"""Records per second while a process joins: little, so that only the rebalance is measured."""
JOIN_SECONDS: Final = 4.0
"""After the first record; the new process needs about as long to start."""

COST = """\
{count:,} duels in 8 partitions, an experiment each, K = 6, `decide_every: 100`, folded by 1, 2 or 4
processes of one group, which start together and stop at the end of the log. Processor time of all
threads of all processes, from each process's first batch to its last commit, per record that
was delivered, so that rebalances at the start are included; the ratio within each turn. (The
broker and four processes share this machine's cores, so records per second say nothing here.)"""

PAUSE = """\
{rate:,} duels/s in 8 partitions, `decide_every: 1`, commits every 100 ms. A second process joins
the first, and every partition is restored where it is assigned. *Pause*: the longest time without
a visible assignment of an experiment, the longest of the eight; *before*: the same without the
join."""


def measure(quick: bool) -> list[Result]:
    """Measure cost and pause with both clients."""
    count, repetitions = (80_000, 1) if quick else (400_000, 3)
    with tempfile.TemporaryDirectory() as name, LocalKafka() as broker:
        servers, directory = broker.bootstrap_servers, Path(name)
        create_topic(servers, "backlog", PARTITIONS)
        fill(servers, "backlog", PARTITIONS, count, ARMS)
        costs = in_turns(
            {
                (client, number): partial(_share, directory, servers, client, number)
                for client in CLIENTS
                for number in NUMBERS
            },
            repetitions,
        )
        pauses = in_turns(
            {client: partial(_join, directory, servers, client) for client in CLIENTS}, repetitions
        )
    return [_costs(costs, count), _pauses(pauses)]


_runs = 0


def _configurations(
    directory: Path, servers: str, topic: str, client: str, number: int, **settings: int
) -> list[Path]:
    """Of several processes in one group."""
    global _runs  # noqa: PLW0603 - names of groups and topics
    _runs += 1
    return [
        write_configuration(
            directory, servers, topic, experiments(PARTITIONS), client=client,
            run=f"shared-{_runs}", instance=f"shared-{_runs}-{each}", **settings,
        )
        for each in range(number)
    ]  # fmt: skip


def _share(directory: Path, servers: str, client: str, number: int) -> float:
    """Microseconds of processor time per record of so many processes."""
    paths = _configurations(directory, servers, "backlog", client, number)
    with ProcessPoolExecutor(number, mp_context=get_context("spawn")) as pool:
        runs: list[Run] = [*pool.map(serve_to_end, paths)]
    return sum(run.cpu for run in runs) / sum(run.records for run in runs) * 1e6


def _join(directory: Path, servers: str, client: str) -> tuple[float, float]:
    """The longest silences before and while a process joins, in seconds."""
    topic = f"joined-{client}-{time.monotonic_ns()}"
    create_topic(servers, topic, PARTITIONS)
    paths = _configurations(
        directory, servers, topic, client, 2, interval_ms=100, decide_every=1
    )  # fmt: skip
    assignments = msgspec.json.decode(paths[0].read_bytes())["sink"]["assignments"]
    create_topic(servers, assignments, 1, {"cleanup.policy": "compact"})
    seconds = 4 * JOIN_SECONDS
    with (
        contextlib.closing(Reader(servers, assignments)) as reader,
        contextlib.ExitStack() as stack,
    ):
        stack.enter_context(running(paths[0]))
        reader.await_first(PARTITIONS)
        joiner = threading.Timer(JOIN_SECONDS, lambda: stack.enter_context(running(paths[1])))
        joiner.start()
        sent = feed(servers, Load(topic, PARTITIONS, RATE), seconds, reader)
        joiner.join()
    began = min(times[0] for times in sent)
    return (
        silence(reader.seen, began + 1.0, began + JOIN_SECONDS),
        silence(reader.seen, began + JOIN_SECONDS, began + seconds + GRACE_SECONDS),
    )


def silence(seen: Mapping[tuple[str, int], float], start: float, end: float) -> float:
    """The longest time between two assignments of an experiment within a span.

    Args:
        seen: the time of each assignment, by experiment and offset.
        start: of the span.
        end: of the span; the time after the last assignment does not count.

    >>> silence({("a", 1): 1.0, ("b", 1): 1.5, ("a", 2): 3.0, ("a", 3): 9.0}, 0.0, 5.0)
    2.0
    """
    times: dict[str, list[float]] = {}
    for (experiment, _), at in seen.items():
        if start <= at <= end:
            times.setdefault(experiment, []).append(at)
    return max(
        (after - before for each in times.values() for before, after in pairwise(sorted(each))),
        default=end - start,
    )


def _costs(found: Mapping[tuple[str, int], Sequence[float]], count: int) -> Result:
    rows, goals = [], []
    for client in CLIENTS:
        alone_ = found[client, 1]
        for number in NUMBERS:
            ratio = ratios(found[client, number], alone_)
            spread = Spread.of(found[client, number])
            rows.append([f"{client}, {number}", spread.text(), ratio.text()])
        goals.append(Goal(f"{client}, 4 processes ÷ 1", ratio.median, at_most=MORE))
    columns = ["client, processes", "processor time per record, µs", "÷ one process"]
    return Result("Several processes", COST.format(count=count), columns, rows, goals)


def _pauses(found: Mapping[str, Sequence[tuple[float, float]]]) -> Result:
    rows = []
    for client, pairs in found.items():
        before, pause = (Spread.of([pair[place] for pair in pairs]) for place in (0, 1))
        rows.append([client, before.text(), pause.text()])
    columns = ["client", "before, s", "pause, s"]
    return Result("When a process joins", PAUSE.format(rate=RATE), columns, rows)


if __name__ == "__main__":
    alone(measure, __doc__)

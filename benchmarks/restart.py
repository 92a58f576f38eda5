"""The time from a start until the first new assignment is visible, by the dedupe window.

python -m benchmarks.restart [--quick]
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from benchmarks.broker import create_topic, experiments, fill, write_configuration
from benchmarks.live import Reader, running
from benchmarks.measure import Spread, in_fresh_process, tell
from benchmarks.meter import serve_to_end
from benchmarks.records import duel_values
from benchmarks.report import Goal, Result, alone
from tests.broker.local_kafka import LocalKafka

CLIENTS: Final = ("kafka-python", "confluent")
ARMS: Final = 6
MORE: Final = 1_000
"""Duels that are waiting at the start: enough for several decisions."""
SECONDS: Final = 5.0
"""What a restart may take with the default window, which remembers a million ids."""

METHOD = """\
A service with one partition has folded a backlog of duels, and is started again with {more} new
ones waiting. From the start of its process (Python's included) until a `read_committed` reader has
the assignment that they cause; {repetitions} times each, median (min–max). A restart reads the
records of the dedupe window again, at most `dedupe.window_records`: by default a million."""


_seeds = itertools.count(1_000)


def measure(quick: bool) -> list[Result]:
    """Measure every window and client."""
    windows, repetitions = ((10_000,), 2) if quick else ((10_000, 100_000, 1_000_000), 5)
    rows, goals = [], []
    with tempfile.TemporaryDirectory() as name, LocalKafka() as broker:
        servers, directory = broker.bootstrap_servers, Path(name)
        for window in windows:
            topic = f"clicks-{window}"
            create_topic(servers, topic, 1)
            fill(servers, topic, 1, window, ARMS)
            for client in CLIENTS:
                tell(f"restart with {client}, window of {window:,} ids")
                path = write_configuration(directory, servers, topic, experiments(1), client=client)
                in_fresh_process(serve_to_end, path)
                waits = [_restart(servers, path, topic) for _ in range(repetitions)]
                spread = Spread.of(waits)
                rows.append([f"{client}, {window:,}", spread.text(1)])
                if window == 1_000_000:
                    what = f"restart with {client}, a million ids"
                    goals.append(Goal(what, spread.median, at_most=SECONDS, unit="s"))
    method = METHOD.format(more=MORE, repetitions=repetitions)
    return [Result("A restart", method, ["client, ids", "seconds"], rows, goals)]


def _new(count: int, n_arms: int, experiment: str, _: int) -> Iterator[bytes]:
    """Duels with other ids than all before."""
    return duel_values(count, n_arms, experiment, next(_seeds))


def _restart(servers: str, path: Path, topic: str) -> float:
    """Add duels, start the service, and wait for what they cause."""
    assignments = msgspec.json.decode(path.read_bytes())["sink"]["assignments"]
    with contextlib.closing(Reader(servers, assignments)) as reader:
        reader.await_first(1)
        reader.read_to_end()
        fill(servers, topic, 1, MORE, ARMS, _new)
        known = max(offset for _, offset in reader.seen)
        began = time.monotonic()
        with running(path) as ended:
            while max(offset for _, offset in reader.seen) <= known:
                reader.look()
            took = max(reader.seen.values()) - began
            ended()
    return took


if __name__ == "__main__":
    alone(measure, __doc__)

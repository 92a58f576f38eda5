"""What it costs to be watched: a hundred busy experiments whose metrics are asked for every second.

python -m benchmarks.scrape [--quick]
"""

from __future__ import annotations

import json
import math
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection
from itertools import combinations
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.crowd import Case, write_service
from benchmarks.measure import Spread, in_fresh_process, tell
from benchmarks.records import START, arms
from benchmarks.report import Goal, Result, alone
from streamduel.config import load
from streamduel.monitoring.server import Monitoring
from streamduel.service import serve
from streamduel.stream.observer import Observer

EXPERIMENTS: Final = 100
ARMS: Final = 16
BEFORE: Final = 2_000
"""Duels of each pair before the first that is measured: a bandit has long ruled out most arms."""

EXPLORED: Final = 0.4
"""The share of the duels that are of any two arms; the others are among the three best."""

FASTER: Final = 20
"""A scrape a second takes less than the noise of any machine. So it is scraped so many times a
second, commits come that much more often, for each to find all experiments changed, and what they
take is divided by their number."""

WINDOW_SECONDS: Final = 0.5
"""For so long it is scraped, and as long it is not: machines are faster or slower for seconds."""

PROMETHEUS: Final = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4"
"""What a Prometheus asks for, in short."""

METHOD = f"""\
The whole service with {EXPERIMENTS} experiments of {ARMS} arms that have run for a while and all
have traffic: {{count:,}} duels in a JSON Lines file, a decision after each. Another process asks
for the metrics, {{size:,.0f}} kB, over HTTP: for half a second it does, for the next it does not,
and so on. Each half second in which it asks is compared with the two beside it. Because one scrape
a second takes less than the noise, it is up to {FASTER} a second, with commits {2 * FASTER} times a
second, and what they take is divided by their number. *Behind*: what the records are short of,
counted as time. *Waits*: time in which the fold's thread did not run. If there is more behind than
waits, the fold has been slower, too: something lets go of the interpreter in each decision.
*Thread*: processor time of the thread that answers; reading and sending take nothing from the fold.
The first scrape, which shows all experiments for the first time, is not in it."""


class Window(NamedTuple):
    """Half a second of the service.

    Attributes:
        asked: whether the metrics were asked for.
        records: that were folded.
        seconds: how long it was.
        scrapes: that were answered.
        fold: seconds of processor time of the thread that folds.
        thread: likewise of the one that answers.
    """

    asked: bool
    records: int
    seconds: float
    scrapes: int
    fold: float
    thread: float

    @property
    def per_second(self) -> float:
        """Records."""
        return self.records / self.seconds


class Prometheus:
    """Another process that asks for the metrics, or does not.

    Args:
        address: of the monitoring.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        spawn = get_context("spawn")
        self._told, there = spawn.Pipe()
        self._process = spawn.Process(target=_ask, args=(*address, there), daemon=True)
        self._process.start()
        there.close()
        self.size = 0

    def tell(self, *, ask: bool) -> None:
        """From now on."""
        self._told.send(ask)

    def answers(self) -> int:
        """How many it has got since the last call."""
        count = 0
        while self._told.poll():
            self.size = self._told.recv()
            count += 1
        return count

    def stop(self) -> None:
        """Ask no more."""
        self._told.send(None)
        self._process.join()


def _ask(host: str, port: int, told: Connection) -> None:
    """While it shall, `FASTER` times a second; tell the size of each answer."""
    connection = HTTPConnection(host, port)  # which it keeps, as a Prometheus does
    asking: bool | None = False
    while asking is not None:
        if told.poll(1 / FASTER):
            asking = told.recv()
        elif asking:
            connection.request("GET", "/metrics", headers={"accept": PROMETHEUS})
            told.send(len(connection.getresponse().read()))


class Windows(Observer):
    """Divides the time in which records come, and has it scraped in every other part.

    Args:
        prometheus: who asks.

    Attributes:
        all: those that are over.
    """

    def __init__(self, prometheus: Prometheus) -> None:
        self._prometheus = prometheus
        [server] = [thread for thread in threading.enumerate() if thread.name == "monitoring"]
        self._clock = time.pthread_getcpuclockid(server.ident or 0)
        self._asked = False
        self._records = 0
        self._began: float | None = None
        self._fold = self._thread = 0.0
        self.all: list[Window] = []

    def polled(self, records: int) -> None:
        """Records have been folded."""
        now = time.perf_counter()
        if self._began is None:
            self._began, self._fold = now, time.thread_time()  # the first poll was before it
            return
        self._records += records
        if now - self._began < WINDOW_SECONDS:
            return
        fold, thread = time.thread_time(), time.clock_gettime(self._clock)
        used = fold - self._fold, thread - self._thread
        scrapes = self._prometheus.answers()
        self.all.append(Window(self._asked, self._records, now - self._began, scrapes, *used))
        self._asked = not self._asked
        self._prometheus.tell(ask=self._asked)
        self._began, self._records, self._fold, self._thread = now, 0, fold, thread


def watched(path: Path) -> tuple[list[Window], int]:
    """Run the service to the end of its log; the windows, and the bytes of the page."""
    loaded = load(path, {})
    assert loaded.config.monitoring is not None
    monitoring = Monitoring(loaded.config.monitoring, loaded)
    prometheus = Prometheus(monitoring.start())
    windows = Windows(prometheus)
    serve(loaded, lambda: False, until_end=True, observers=[windows, *monitoring.observers])
    prometheus.stop()
    monitoring.stop()
    return windows.all, prometheus.size


def log(count: int, experiment: str, seed: int) -> Iterator[bytes]:
    """Of an experiment that has run for a while: what was counted elsewhere, then its duels."""
    luck, names = random.Random(seed), arms(ARMS)
    for better, worse in combinations(range(ARMS), 2):
        wins = round(BEFORE * _wins(better, worse))
        counts = {"wins_a": wins, "wins_b": BEFORE - wins, "ties": 0}
        yield _record("duels", experiment, luck, a=names[better], b=names[worse], **counts)
    for _ in range(count):
        few = ARMS if luck.random() < EXPLORED else 3
        a, b = luck.sample(range(few), 2)
        winner = "a" if luck.random() < _wins(a, b) else "b"
        yield _record("duel", experiment, luck, a=names[a], b=names[b], winner=winner)


def _wins(arm: int, other: int) -> float:
    """How often the one beats the other."""
    return 0.5 + (other - arm) * 0.03


def _record(kind: str, experiment: str, luck: random.Random, **fields: Any) -> bytes:
    head = {"type": kind, "id": f"{luck.getrandbits(128):032x}", "experiment": experiment}
    return json.dumps({**head, "ts": START, **fields}, separators=(",", ":")).encode()


class Loss(NamedTuple):
    """What a scrape takes from the fold, by one window in which there were some.

    Attributes:
        waits: milliseconds in which its thread did not run.
        behind: milliseconds that its records are short of.
    """

    waits: float
    behind: float

    @classmethod
    def of(cls, before: Window, this: Window, after: Window) -> Loss:
        """By comparison with the two beside it."""
        still = statistics.mean(1 - each.fold / each.seconds for each in (before, after))
        rate = statistics.mean(each.per_second for each in (before, after))
        each = 1e3 * this.seconds / this.scrapes
        return cls(
            (1 - this.fold / this.seconds - still) * each, (1 - this.per_second / rate) * each
        )


def losses(windows: list[Window]) -> list[Loss]:
    """Of a run."""
    three = zip(windows, windows[1:], windows[2:], strict=False)
    return [Loss.of(*each) for each in three if each[1].asked and each[1].scrapes]


def measure(quick: bool) -> list[Result]:
    """Scraped and not, in turns."""
    count, runs = (5_000, 1) if quick else (15_000, 2)
    names = [f"search-{number:04d}" for number in range(EXPERIMENTS)]
    every = {name: list(log(count, name, seed)) for seed, name in enumerate(names)}
    taken: list[Loss] = []
    windows: list[Window] = []
    for run in range(runs):
        tell(f"scrape, {run + 1} of {runs}")
        with tempfile.TemporaryDirectory() as folder:
            sections = {"monitoring": {"port": 0}, "commit": {"interval_ms": 500 // FASTER}}
            path = write_service(Path(folder) / "service", Case("rucb", 1, ARMS), every, **sections)
            found, size = in_fresh_process(watched, path)
        warm = found[2:]  # the second has the first scrape
        windows += warm
        taken += losses(warm)
    asked = [window for window in windows if window.asked]
    silent = [window for window in windows if not window.asked]
    waits, behind = zip(*taken, strict=True)
    row = [
        f"{len(taken)}",
        *(Spread.of([each.per_second for each in kind]).text(0) for kind in (silent, asked)),
        f"{sum(each.scrapes for each in asked) / sum(each.seconds for each in asked):.1f}",
        *(_mean(each) for each in (waits, behind)),
        Spread.of([1e3 * each.thread / each.scrapes for each in asked]).text(1),
    ]
    columns = ["half seconds asked", "records/s, nobody asks", "asked", "scrapes/s"]
    columns += ["waits, ms", "behind, ms", "thread, ms"]
    goals = [
        Goal(what, statistics.mean(taken) / 1e3 * 100, at_most=1, unit="%")
        for what, taken in (
            ("what a scrape a second takes from the records", behind),
            ("what the fold waits for it", waits),
        )
    ]
    method = METHOD.format(count=count * EXPERIMENTS, size=size / 1e3)
    return [Result("Being watched", method, columns, [row], goals)]


def _mean(values: Sequence[float]) -> str:
    """With its standard error."""
    error = math.sqrt(statistics.variance(values) / len(values))
    return f"{statistics.mean(values):.1f} ± {error:.1f}"


if __name__ == "__main__":
    alone(measure, __doc__)

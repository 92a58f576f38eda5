"""What it costs to be watched: a hundred busy experiments whose metrics are asked for every second.

python -m benchmarks.scrape [--quick]
"""

from __future__ import annotations

import contextlib
import json
import random
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.crowd import SCRAPE_SECONDS, Case, Logs, Stopwatch, write_service
from benchmarks.measure import Spread, in_fresh_process, in_turns, ratios
from benchmarks.records import START, arms
from benchmarks.report import Goal, Result, alone
from streamduel.config import load
from streamduel.monitoring import app
from streamduel.monitoring.exposition import Exposition
from streamduel.monitoring.server import Monitoring
from streamduel.service import serve

EXPERIMENTS: Final = 100
ARMS: Final = 16
BEFORE: Final = 2_000
"""Duels of each pair before the first that is measured: a bandit has long ruled out most arms."""

EXPLORED: Final = 0.4
"""The share of the duels that are of any two arms; the others are among the three best."""

PROMETHEUS: Final = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4"
"""What a Prometheus asks for, in short."""

METHOD = f"""\
The whole service with {EXPERIMENTS} experiments of {ARMS} arms that have run for a while and all
have traffic: {{count:,}} duels in a JSON Lines file, a decision after each, commits twice a second.
Another process asks for its metrics over HTTP once a second, or not at all, taking turns, each run
in a fresh process. *Page*: processor time to make the {{size:,.0f}} kB, during which the fold goes
without the interpreter. *Thread*: that of the thread that answers, in all: a millisecond is HTTP's,
the rest goes by while it waits for the interpreter, and takes nothing from the fold. *First*: the
page that shows all experiments for the first time. Records per second of processor time, without
that one, and the ratio within each turn say the same with more noise."""


class Scrape(NamedTuple):
    """One of them.

    Attributes:
        size: bytes of the page.
        page: seconds of processor time to make it.
        thread: seconds of processor time of the thread that answers, since the one before.
    """

    size: int
    page: float
    thread: float


class Watched(NamedTuple):
    """A run of the service.

    Attributes:
        per_second: records for each second of processor time of the process, the first scrape's
            aside.
        scrapes: those that found all experiments.
    """

    per_second: float
    scrapes: list[Scrape]


class Timed(Exposition):
    """Looks at the clock of its thread.

    Attributes:
        seconds: of processor time for the last page.
    """

    seconds = 0.0

    def page(self, accept: str) -> tuple[bytes, str]:
        """The page and its content type."""
        began = time.thread_time()
        answer = super().page(accept)
        Timed.seconds = time.thread_time() - began
        return answer


class Prometheus(threading.Thread):
    """Has another process ask for the metrics, and looks at the clock of the thread that answers.

    Attributes:
        scrapes: all of them.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(daemon=True)
        spawn = get_context("spawn")
        self._told, there = spawn.Pipe()
        url = f"http://{address[0]}:{address[1]}/metrics"
        self._process = spawn.Process(target=_ask, args=(url, there), daemon=True)
        self._process.start()
        there.close()
        self.scrapes: list[Scrape] = []

    def run(self) -> None:
        """Until the other process ends."""
        [server] = [thread for thread in threading.enumerate() if thread.name == "monitoring"]
        clock = time.pthread_getcpuclockid(server.ident or 0)
        before = time.clock_gettime(clock)
        with contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                size = self._told.recv()
                now = time.clock_gettime(clock)
                self.scrapes.append(Scrape(size, Timed.seconds, now - before))
                before = now

    def stop(self) -> None:
        """Ask no more."""
        self._told.send(None)
        self._process.join()
        self.join()


def _ask(url: str, told: Connection) -> None:
    """Once a second, until there is word to stop; tell the size of each answer."""
    request = urllib.request.Request(url, headers={"accept": PROMETHEUS})
    while not told.poll(SCRAPE_SECONDS):
        with urllib.request.urlopen(request) as answer:
            size = len(answer.read())
        told.send(size)


def watched(path: Path, *, scraped: bool) -> Watched:
    """Run the service to the end of its log."""
    loaded, watch = load(path, {}), Stopwatch()
    assert loaded.config.monitoring is not None
    vars(app)["Exposition"] = Timed  # which the server makes when it starts
    monitoring = Monitoring(loaded.config.monitoring, loaded)
    address = monitoring.start()
    prometheus = Prometheus(address) if scraped else None
    if prometheus:
        prometheus.start()
    serve(loaded, lambda: False, until_end=True, observers=[watch, *monitoring.observers])
    if prometheus:
        prometheus.stop()
    monitoring.stop()
    scrapes = prometheus.scrapes if prometheus else []
    whole = max((each.size for each in scrapes), default=0)
    scrapes = [each for each in scrapes if each.size > whole / 2]
    first = sum(each.thread for each in scrapes[:1])
    return Watched(watch.records / (watch.cpu - first), scrapes)


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


def _run(case: Case, every: Logs, *, scraped: bool) -> Watched:
    with tempfile.TemporaryDirectory() as folder:
        path = write_service(Path(folder) / "service", case, every, monitoring={"port": 0})
        return in_fresh_process(watched, path, scraped=scraped)


def measure(quick: bool) -> list[Result]:
    """Scraped and not."""
    each, repetitions = (1_500, 1) if quick else (4_000, 2)
    names = [f"search-{number:04d}" for number in range(EXPERIMENTS)]
    every = {name: list(log(each, name, seed)) for seed, name in enumerate(names)}
    case = Case("rucb", 1, ARMS)
    runs = {
        "scrape: nobody asks": partial(_run, case, every, scraped=False),
        "scrape: once a second": partial(_run, case, every, scraped=True),
    }
    silent, asked = in_turns(runs, repetitions).values()
    rates = [[run.per_second for run in found] for found in (silent, asked)]
    later = [each for run in asked for each in run.scrapes[1:]]
    pages = Spread.of([1e3 * each.page for each in later])
    rows = [
        ["nobody asks", Spread.of(rates[0]).text(0), "", "", "", ""],
        [
            "once a second",
            Spread.of(rates[1]).text(0),
            ratios(rates[1], rates[0]).text(3),
            pages.text(1),
            Spread.of([1e3 * each.thread for each in later]).text(1),
            Spread.of([1e3 * run.scrapes[0].page for run in asked]).text(0),
        ],
    ]
    share = pages.median / 1e3 / SCRAPE_SECONDS * 100
    columns = ["metrics", "records per second", "÷ nobody asks", "page, ms", "thread, ms"]
    return [
        Result(
            "Being watched",
            METHOD.format(count=each * EXPERIMENTS, size=later[-1].size / 1e3),
            [*columns, "first, ms"],
            rows,
            [Goal("a scrape a second takes from the fold", share, at_most=1, unit="%")],
        )
    ]


if __name__ == "__main__":
    alone(measure, __doc__)

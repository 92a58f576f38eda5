"""What it costs to be watched: a hundred busy experiments whose metrics are asked for every second.

python -m benchmarks.scrape [--quick]
"""

from __future__ import annotations

import json
import random
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.crowd import LOOK_SECONDS, SCRAPE_SECONDS, Case, Logs, Stopwatch, write_service
from benchmarks.measure import Spread, in_fresh_process, in_turns, ratios
from benchmarks.records import START, arms
from benchmarks.report import Goal, Result, alone
from streamduel.config import load
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
Its metrics are asked for over HTTP once a second of its processor time, or not at all, taking
turns, each run in a fresh process. *Scrape*: processor time of the thread that answers, from the
connection to the last of {{size:,.0f}} kB; it is the most that the fold goes without. *First*: the
one that finds all experiments for the first time. Records per second of processor time, without
that one and without the reader's own, and the ratio within each turn say the same with more noise.
"""


class Watched(NamedTuple):
    """A run of the service.

    Attributes:
        per_second: records for each second of processor time of the process, the reader's own and
            the first scrape's aside.
        scrapes: bytes of the page and seconds of processor time, of each.
    """

    per_second: float
    scrapes: list[tuple[int, float]]

    @property
    def size(self) -> int:
        """Bytes of the page with all experiments."""
        return max((size for size, _ in self.scrapes), default=0)

    @property
    def costs(self) -> list[float]:
        """Seconds of the scrapes that found all experiments."""
        return [seconds for size, seconds in self.scrapes if size > self.size / 2]


class Prometheus(threading.Thread):
    """Asks for the metrics once a second, and looks at the clock of the thread that answers.

    Attributes:
        scrapes: bytes of each answer, and seconds of processor time.
        own: seconds of processor time that asking and reading took.
    """

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(daemon=True)
        url = f"http://{address[0]}:{address[1]}/metrics"
        self._request = urllib.request.Request(url, headers={"accept": PROMETHEUS})
        self._enough = threading.Event()
        self.scrapes: list[tuple[int, float]] = []
        self.own = 0.0

    def run(self) -> None:
        """Until it is stopped."""
        [server] = [thread for thread in threading.enumerate() if thread.name == "monitoring"]
        clock = time.pthread_getcpuclockid(server.ident or 0)
        due = time.process_time()
        while not self._enough.wait(LOOK_SECONDS):
            if time.process_time() < due:
                continue
            due += SCRAPE_SECONDS
            before = time.clock_gettime(clock)
            with urllib.request.urlopen(self._request) as answer:
                size = len(answer.read())
            self.scrapes.append((size, time.clock_gettime(clock) - before))
            self.own = time.thread_time()

    def stop(self) -> None:
        """Ask no more."""
        self._enough.set()
        self.join()


def watched(path: Path, *, scraped: bool) -> Watched:
    """Run the service to the end of its log."""
    loaded, watch = load(path, {}), Stopwatch()
    assert loaded.config.monitoring is not None
    monitoring = Monitoring(loaded.config.monitoring, loaded)
    prometheus = Prometheus(monitoring.start())
    if scraped:
        prometheus.start()
    serve(loaded, lambda: False, until_end=True, observers=[watch, *monitoring.observers])
    if scraped:
        prometheus.stop()
    monitoring.stop()
    aside = prometheus.own + max((seconds for _, seconds in prometheus.scrapes), default=0.0)
    return Watched(watch.records / (watch.cpu - aside), prometheus.scrapes)


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
    each, repetitions = (1_500, 1) if quick else (5_000, 2)
    names = [f"search-{number:04d}" for number in range(EXPERIMENTS)]
    every = {name: list(log(each, name, seed)) for seed, name in enumerate(names)}
    case = Case("rucb", 1, ARMS)
    runs = {
        "scrape: nobody asks": partial(_run, case, every, scraped=False),
        "scrape: once a second": partial(_run, case, every, scraped=True),
    }
    silent, asked = in_turns(runs, repetitions).values()
    rates = [[run.per_second for run in found] for found in (silent, asked)]
    first = Spread.of([1e3 * run.costs[0] for run in asked])
    later = Spread.of([1e3 * cost for run in asked for cost in run.costs[1:]])
    rows = [
        ["nobody asks", Spread.of(rates[0]).text(0), "", "", ""],
        [
            "once a second",
            Spread.of(rates[1]).text(0),
            ratios(rates[1], rates[0]).text(3),
            later.text(1),
            first.text(0),
        ],
    ]
    share = later.median / 1e3 / SCRAPE_SECONDS * 100
    return [
        Result(
            "Being watched",
            METHOD.format(count=each * EXPERIMENTS, size=asked[0].size / 1e3),
            ["metrics", "records per second", "÷ nobody asks", "scrape, ms", "first, ms"],
            rows,
            [Goal("a scrape a second takes of a processor", share, at_most=1, unit="%")],
        )
    ]


if __name__ == "__main__":
    alone(measure, __doc__)

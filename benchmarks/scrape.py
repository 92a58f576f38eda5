"""The cost of scraping the metrics of 100 and of 1,000 busy experiments every 15 seconds.

python -m benchmarks.scrape [--quick]
"""

from __future__ import annotations

import math
import statistics
import time
from itertools import combinations
from typing import Final, NamedTuple

import msgspec

from benchmarks.crowd import Case
from benchmarks.measure import Spread, in_fresh_process, tell
from benchmarks.records import START, Record, arms, configuration, duel_values, fresh_task
from benchmarks.report import Goal, Result, alone
from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.exposition import CHEAP_SECONDS, REUSE, Exposition

ARMS: Final = 16
INTERVAL: Final = 15.0
"""Seconds between two scrapes; Prometheus scrapes every 15 to 60 s."""
GOALS: Final = {100: 1.0, 1000: 3.0}
"""At most this many per cent of a core, by the number of experiments."""
PROMETHEUS: Final = (
    "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
"""The `accept` header of a Prometheus server, shortened."""

METHOD: Final = f"""\
Experiments of {ARMS} arms, whose pairs have 2,000 duels each; between two scrapes every experiment
gets a duel and is committed, so all figures have changed. *Scrape*: processor time to render the
page, the computation of regret and confidence included, without the history thread, which computes
some of them beforehand. *Share of a core*: processor time of all scrapes of a simulated stretch of
time with a scrape every {INTERVAL:g} s, divided by that time. A page that takes more than
{CHEAP_SECONDS:g} s is served again for {REUSE} times as long as it took; *age*: how old it gets."""


class Scraped(NamedTuple):
    """What the scrapes of a process took.

    Attributes:
        size: of the page, in bytes.
        rendered: seconds of processor time of each scrape that rendered the page.
        share: of a core, taken by all scrapes.
    """

    size: int
    rendered: list[float]
    share: float


def scraped(experiments: int, scrapes: int) -> Scraped:
    """Scrape the metrics of so many experiments every 15 simulated seconds."""
    names = [f"search-{number:04d}" for number in range(experiments)]
    settings = Case("rucb", 1, ARMS).settings(names)
    task = fresh_task(configuration(ARMS, 1, experiments=settings))
    offset, now = 0, 0.0

    def fold(values: list[bytes]) -> None:
        nonlocal offset
        task.fold([Record(offset + at, START, b"", value) for at, value in enumerate(values)])
        offset += len(values)
        task.take_commit()
        metrics.committed([task], 0.0)

    metrics = Metrics("files")
    exposition = Exposition(metrics.registry, lambda: now)
    for name in names:
        fold([_counted(name, a, b) for a, b in combinations(range(ARMS), 2)])
    duels = [list(duel_values(scrapes, ARMS, name, seed)) for seed, name in enumerate(names)]
    spent, page = [], b""
    for number in range(scrapes):
        fold([each[number] for each in duels])
        began = time.process_time()
        page, _ = exposition.page(PROMETHEUS)
        spent.append(time.process_time() - began)
        now += INTERVAL
    rendered = [seconds for seconds in spent if seconds > 1e-4]
    return Scraped(len(page), rendered, sum(spent) / (scrapes * INTERVAL))


def _counted(experiment: str, better: int, worse: int) -> bytes:
    """2,000 duels of a pair, of which the better arm wins the more the further apart they are."""
    names, wins = arms(ARMS), round(2_000 * (0.5 + (worse - better) * 0.03))
    return msgspec.json.encode(
        {"type": "duels", "id": f"{better}-{worse}", "experiment": experiment, "ts": START,
         "a": names[better], "b": names[worse], "wins_a": wins, "wins_b": 2_000 - wins, "ties": 0}
    )  # fmt: skip


def measure(quick: bool) -> list[Result]:
    """The share of a core for each number of experiments."""
    rows, goals = [], []
    for experiments, most in GOALS.items():
        tell(f"scrape, {experiments:,} experiments")
        found = in_fresh_process(scraped, experiments, 6 if quick else 24)
        median = statistics.median(found.rendered)
        reused = REUSE * median if median > CHEAP_SECONDS else 0.0
        rows.append([
            f"{experiments:,}",
            f"{found.size / 1e6:.1f}",
            Spread.of([1e3 * seconds for seconds in found.rendered]).text(0),
            f"{INTERVAL * math.floor(reused / INTERVAL):.0f}",
            f"{100 * found.share:.2f}",
        ])  # fmt: skip
        what = f"the share of a core that scrapes of {experiments:,} experiments take"
        goals.append(Goal(what, 100 * found.share, at_most=most, unit="%"))
    columns = ["experiments", "page, MB", "scrape, ms", "age, s", "share of a core, %"]
    return [Result("Scrapes", METHOD, columns, rows, goals)]


if __name__ == "__main__":
    alone(measure, __doc__)

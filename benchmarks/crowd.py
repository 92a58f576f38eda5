"""Measurements of many experiments in one process; `many_experiments.py` makes tables of them.

Every function that takes a configuration's path is for a fresh process: it times a cold start, or
measures the memory of the process.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from benchmarks.fold import POLL
from benchmarks.measure import resident_bytes
from benchmarks.records import START, Record, arms, configuration, duel_values, fresh_task
from streamduel.config import load
from streamduel.connector import Outlet, Source, SourceOptions, no_failpoint
from streamduel.monitoring.collector import Metrics
from streamduel.monitoring.exposition import Exposition
from streamduel.service import GC_THRESHOLDS
from streamduel.stream.commit import commit
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask

ARMS: Final = 8
WINDOW: Final = 1_000
"""Ids of the dedupe window while memory is measured; experiments share the window."""

Logs = Mapping[str, Sequence[bytes]]
"""The records of each experiment by name."""


class Case(NamedTuple):
    """Equal experiments."""

    policy: str
    decide_every: int
    n_arms: int = ARMS

    def settings(self, names: Sequence[str]) -> dict[str, Any]:
        """Their section of a configuration; the seeds differ."""
        common = {
            "arms": arms(self.n_arms),
            "policy": {"name": self.policy},
            "decide_every": self.decide_every,
        }
        return {name: {**common, "seed": seed} for seed, name in enumerate(names)}


def logs(experiments: int, duels: int) -> Logs:
    """That many duels of each experiment."""
    names = [f"search-{number:04d}" for number in range(experiments)]
    return {
        name: list(duel_values(duels, ARMS, name, seed)) for seed, name in enumerate(names, start=1)
    }


def in_rounds(together: Sequence[Sequence[bytes]]) -> Iterator[bytes]:
    """One click log of several: a record of each in turn, in another order in each round."""
    order, rng = list(range(len(together))), random.Random(1)
    for turn in range(len(together[0])):
        rng.shuffle(order)
        for place in order:
            yield together[place][turn]


def fold_seconds(case: Case, every: Logs, at_a_time: int) -> float:
    """Processor time to fold all experiments, that many of them in one task.

    Each experiment has the same records and takes the same decisions for any number.
    """
    names, seconds = list(every), 0.0
    for start in range(0, len(names), at_a_time):
        group = names[start : start + at_a_time]
        task = fresh_task(configuration(ARMS, 1, experiments=case.settings(group)))
        numbered = enumerate(in_rounds([every[name] for name in group]))
        while batch := [
            Record(offset, START + offset // 50, b"", value)
            for offset, value in islice(numbered, POLL)
        ]:
            began = time.process_time()
            task.fold(batch)
            seconds += time.process_time() - began
    return seconds


def write_service(folder: Path, case: Case, every: Logs, **sections: Any) -> Path:
    """Write a click log and the configuration of a service that reads it; return its path."""
    folder.mkdir()
    (folder / "clicks.jsonl").write_bytes(b"".join(v + b"\n" for v in in_rounds([*every.values()])))
    places = {"source": "clicks.jsonl", "sink": "out", "snapshots": "state"}
    document = {
        **{name: {"connector": "files", "path": path} for name, path in places.items()},
        "experiments": case.settings(list(every)),
        **sections,
    }
    path = folder / "streamduel.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


class Opened(NamedTuple):
    """A service before its first record.

    Attributes:
        reading: seconds of processor time to read and check the configuration.
        starting: likewise from then on, until each experiment has its assignment.
    """

    source: Source
    outlet: Outlet
    task: PartitionTask
    reading: float
    starting: float


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """Start a service, from its snapshot if there is one; seeking is not timed."""
    gc.set_threshold(*GC_THRESHOLDS)
    began = time.process_time()
    loaded = load(path, {})
    reading = time.process_time() - began
    source = loaded.source_connector.open_source(loaded.source, SourceOptions(until_end=True))
    source.poll(0)  # assigns the partition
    began = time.process_time()
    outlet = loaded.outlet_connector.open_outlet(
        loaded.sink, loaded.snapshots, source, no_failpoint
    )
    log = ClickLog(source.topic, source.partitions, source.home)
    snapshot = outlet.load(0)
    task = PartitionTask(loaded.config, log, 0, snapshot.entries if snapshot else None)
    starting = time.process_time() - began
    start = source.seek(0, task.resume_offset)
    began = time.process_time()
    task.begin(start)
    if task.changed:
        commit(outlet, [task.take_commit()])
    starting += time.process_time() - began
    try:
        yield Opened(source, outlet, task, reading, starting)
    finally:
        outlet.close()
        source.close()


class Run(NamedTuple):
    """A run of one process, from an empty folder to the end of the click log.

    Attributes:
        reading: see `Opened`.
        starting: see `Opened`.
        commit: seconds of processor time of the median commit, each after one poll of a megabyte.
        resident: bytes in use by then.
        scraped: bytes in use after scrapes of the metrics.
        scrape: seconds of processor time of a scrape when every experiment has changed.
        again: the same when none has.
    """

    reading: float
    starting: float
    commit: float
    resident: int
    scraped: int
    scrape: float
    again: float


def run(path: Path) -> Run:
    """Start, fold the click log with a commit after each poll, and scrape the metrics."""
    with opened(path) as service:
        commits = []
        while not service.source.caught_up(0):
            for records in service.source.poll(0).records.values():
                service.task.fold(records)
            began = time.process_time()
            commit(service.outlet, [service.task.take_commit()])
            commits.append(time.process_time() - began)
        resident = _settled_size()
        metrics = Metrics("files")
        metrics.committed([service.task], 0.0)
        fresh, again = scrape_seconds(metrics), scrape_seconds(metrics)
        return Run(
            service.reading,
            service.starting,
            statistics.median(commits),
            resident,
            _settled_size(),
            fresh,
            again,
        )


def _settled_size() -> int:
    gc.collect()
    return resident_bytes()


def scrape_seconds(metrics: Metrics) -> float:
    """Processor time to render the page of metrics."""
    began = time.process_time()
    Exposition(metrics.registry).page("")
    return time.process_time() - began


def restart(path: Path) -> float:
    """Seconds of processor time until a service has restored its experiments from the snapshot."""
    with opened(path) as service:
        return service.starting

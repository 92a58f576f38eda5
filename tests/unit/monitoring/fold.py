"""Real tasks, and the samples of a scrape of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from streamduel.config import Config
from streamduel.monitoring.collector import Metrics
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record, duel

STREAM_TIME = 1_790_000_000_000

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Clock:
    """Seconds that a test advances."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def config(experiments: Mapping[str, Sequence[str]], **settings: Any) -> Config:
    section = {"connector": "files", "path": "nowhere"}
    return Config.model_validate(
        {
            "source": section,
            "sink": section,
            "snapshots": section,
            "experiments": {name: {"arms": arms} | settings for name, arms in experiments.items()},
        }
    )


def task(
    configured: Config, partition: int = 0, entries: Mapping[str, bytes] | None = None
) -> PartitionTask:
    """A task at the start of its click log, or at the entries' offset."""
    made = PartitionTask(configured, ClickLog("clicks", 1, lambda _: partition), partition, entries)
    made.begin(made.resume_offset or 0)
    return made


def commit(metrics: Metrics, *tasks: PartitionTask) -> None:
    """What the runner does after a commit."""
    for each in tasks:
        each.take_commit()
    metrics.committed(tasks, 0.02)


def fold(target: PartitionTask, *values: bytes | None) -> None:
    """Fold the next records."""
    start = target.next_offset
    target.fold(
        [
            Record(offset, value, STREAM_TIME + offset)
            for offset, value in enumerate(values, start=start)
        ]
    )


def fold_ahead(target: PartitionTask, ahead_ms: int) -> None:
    """Fold a duel whose timestamp is ahead, and then as many others as tell that it is wrong."""
    offset = target.next_offset
    made = duels("search", offset, "x", "y", "a" * 80)
    records = [Record(offset + number, it, STREAM_TIME) for number, it in enumerate(made)]
    records[40] = records[40]._replace(timestamp=STREAM_TIME + ahead_ms)
    target.fold(records)


def duels(experiment: str, first: int, a: str, b: str, winners: str) -> list[bytes]:
    """One duel of a and b per character: `a`, `b`, or `t` for a tie."""
    return [
        duel(experiment, first + number, a, b, "tie" if winner == "t" else winner)
        for number, winner in enumerate(winners)
    ]


def scrape(registry: CollectorRegistry) -> Samples:
    """All samples except those of the process, by name and labels, as Prometheus reads them."""
    samples = parse(generate_latest(registry).decode())
    return {key: found for key, found in samples.items() if not key[0].startswith("process_")}


def parse(text: str) -> Samples:
    samples: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in samples, f"{key} twice"
            # One NaN, which equals itself in a comparison of dictionaries.
            samples[key] = nan if isnan(sample.value) else sample.value
    return samples


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"streamduel_{name}", frozenset(labels.items())]

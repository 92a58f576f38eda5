"""The observer that keeps the figures for metrics, health and status page up to date.

The figures are read from committed state: a counter of an experiment is the number that its
snapshot holds. So metrics show only what is committed, continue after a restart, and cost the fold
one copy of each changed experiment per commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric

from streamduel.monitoring.figures import Distribution, Figures
from streamduel.monitoring.forecasts import Forecasts
from streamduel.monitoring.metrics import COMMIT_SECONDS, METRICS, POLL_RECORDS
from streamduel.monitoring.views import PartitionView
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask

_Value = TypeVar("_Value")


class Metrics(Observer):
    """Keeps the figures, and is the collector of their metrics.

    All figures are one immutable object, which is replaced as a whole. A scrape in another thread
    reads it once, so it needs no lock and all its values are of the same moment.

    Args:
        connector: the source's.
        clock: monotonic seconds.

    Attributes:
        registry: all metrics of this process.
        forecasts: when each experiment will be sure.
    """

    def __init__(self, connector: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turned_at = clock()
        self.forecasts = Forecasts()
        self._figures = Figures(
            connector,
            commit_seconds=Distribution.empty(*COMMIT_SECONDS),
            poll_records=Distribution.empty(*POLL_RECORDS),
        )
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(registry=self.registry)

    @property
    def figures(self) -> Figures:
        """The present figures."""
        return replace(
            self._figures,
            turned_at=self._turned_at,
            now=self._clock(),
            outlooks=self.forecasts.outlooks,
        )

    def collect(self) -> Iterator[Metric]:
        """The metrics with their samples, for the registry."""
        figures = self.figures
        for metric in METRICS:
            yield metric.family(figures)

    def turned(self) -> None:
        """A poll has completed."""
        self._turned_at = self._clock()

    def polled(self, records: int) -> None:
        """A poll of the source brought that many records."""
        self._replace(poll_records=self._figures.poll_records.plus(records))

    def connection(self, *, source: bool) -> None:
        """The click log is reachable, or is not."""
        if source != self._figures.connected:  # called at every turn, changes rarely
            self._replace(connected=source)

    def unreadable(self, why: str) -> None:
        """Partitions of this process cannot be read, or can."""
        if why != self._figures.unreadable:
            self._replace(unreadable=why)

    def gained(self, partitions: Sequence[int]) -> None:
        """The state of these partitions is being read."""
        self._replace(restoring=self._figures.restoring.union(partitions))

    def restored(self, task: PartitionTask) -> None:
        """A partition was gained and restored."""
        self._replace(fenced=False, restores=self._figures.restores + 1)
        if task.cut_off_at is None:  # otherwise it folds nothing before `reread`
            self._end_restoring(task)
        if not task.outputs:  # otherwise it is committed next, and shown then
            self._view([task])

    def reread(self, task: PartitionTask) -> None:
        """A restored partition folds new records from now on."""
        self._end_restoring(task)

    def lost(self, partitions: Sequence[int]) -> None:
        """Remove all series of these partitions and of their experiments."""
        figures = self._figures
        self._replace(
            fenced=False,
            restoring=figures.restoring.difference(partitions),
            partitions=_without(figures.partitions, partitions),
            lags=_without(figures.lags, partitions),
            stable_offset_lags=_without(figures.stable_offset_lags, partitions),
        )

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:
        """The work of these partitions has become visible; the commit took that long."""
        self._turned_at = self._clock()  # first: the process is healthy even if the rest fails
        self._replace(refused=0, commit_seconds=self._figures.commit_seconds.plus(seconds))
        self._view(tasks)

    def fenced(self) -> None:
        """A commit failed."""
        figures = self._figures
        self._replace(
            fenced=True,
            refused=figures.refused + 1,
            refused_at=self._clock(),
            commit_failures=figures.commit_failures + 1,
        )

    def lagging(self, lags: Mapping[int, int]) -> None:
        """The lag of each partition."""
        self._replace(lags=dict(sorted(lags.items())))

    def stable_offset_lagging(self, lags: Mapping[int, int]) -> None:
        """The lag of each partition's last stable offset."""
        self._replace(stable_offset_lags=dict(sorted(lags.items())))

    def _end_restoring(self, task: PartitionTask) -> None:
        self._replace(restoring=self._figures.restoring - {task.partition})

    def _view(self, tasks: Sequence[PartitionTask]) -> None:
        now, former = self._clock(), self._figures
        views = {
            task.partition: PartitionView.of(task, now, former.partitions.get(task.partition))
            for task in tasks
        }
        dead_letters = {number: view.dead_letters for number, view in views.items()}
        self._replace(
            partitions={**former.partitions, **views},
            dead_letters={**former.dead_letters, **dead_letters},
        )

    def _replace(self, **changes: Any) -> None:
        self._figures = replace(self._figures, **changes)


def _without(mapping: Mapping[int, _Value], partitions: Sequence[int]) -> dict[int, _Value]:
    return {number: value for number, value in mapping.items() if number not in partitions}

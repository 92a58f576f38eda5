"""The observer that keeps up to date what metrics, health and pages show.

Nothing is counted here that the state counts already: a counter of an experiment is the number
that its snapshot holds. So the metrics show what is committed and nothing else, they go on where
they were after a restart, and the fold pays for them with one copy of the changed experiments
per commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric

from streamduel.monitoring.catalogue import COMMIT_SECONDS, METRICS, POLL_RECORDS
from streamduel.monitoring.views import Figures, PartitionView, Tally
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask

_Value = TypeVar("_Value")


class Pulse(Observer):
    """Knows that the runner's loop goes round, and nothing else.

    The runner tells an observer that has failed nothing any more. By this one it is judged whether
    the process must be restarted, so there is nothing in it that could fail.

    Args:
        clock: seconds that only grow.

    Attributes:
        turned_at: when it last did; at first, when watching began.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.turned_at = clock()

    def turned(self) -> None:
        """The runner's loop has gone round once more."""
        self.turned_at = self._clock()


class Metrics(Observer):
    """Keeps the figures that metrics and health are made of, for whoever asks.

    All figures are one immutable object, replaced as a whole: a scrape in another thread takes it
    once and sees one moment, and there is no lock that either thread could wait for.

    Args:
        connector: the source's.
        clock: seconds that only grow.

    Attributes:
        registry: where all metrics are registered, and nothing else is. `Exposition` writes what is
            in it, faster.
        process: those of the process, which are in it, too.
        pulse: another observer, to be handed to the runner as well.
    """

    def __init__(self, connector: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.pulse = Pulse(clock)
        self._figures = Figures(
            connector,
            commit_seconds=Tally.empty(*COMMIT_SECONDS),
            poll_records=Tally.empty(*POLL_RECORDS),
        )
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.process = ProcessCollector(registry=self.registry)

    @property
    def figures(self) -> Figures:
        """The figures of this moment."""
        return replace(self._figures, turned_at=self.pulse.turned_at, now=self._clock())

    def collect(self) -> Iterator[Metric]:
        """The metrics with their samples, for the registry."""
        figures = self.figures
        for metric in METRICS:
            yield metric.family(figures)

    def describe(self) -> Iterator[Metric]:
        """The metrics, for the registry to see that no name is taken twice."""
        return self.collect()

    # What the runner tells.

    def polled(self, records: int) -> None:
        """A poll of the source brought that many records."""
        self._replace(poll_records=self._figures.poll_records.plus(records))

    def connection(self, *, source: bool) -> None:
        """The log can be reached at present, or it cannot."""
        if source != self._figures.connected:  # told at every turn, changes hardly ever
            self._replace(connected=source)

    def restored(self, task: PartitionTask) -> None:
        """A partition was gained and its state is in memory."""
        self._replace(fenced=False, restores=self._figures.restores + 1)
        if not task.outputs:  # else it is committed next, and visible then
            self._view([task])

    def lost(self, partitions: Sequence[int]) -> None:
        """All series of these partitions and of their experiments go."""
        figures = self._figures
        self._replace(
            fenced=False,
            partitions=_without(figures.partitions, partitions),
            lags=_without(figures.lags, partitions),
        )

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:
        """The work of these partitions has become visible; the commit took that long."""
        self._replace(commit_seconds=self._figures.commit_seconds.plus(seconds))
        self._view(tasks)

    def fenced(self) -> None:
        """A commit came to nothing."""
        self._replace(fenced=True, commit_failures=self._figures.commit_failures + 1)

    def lagging(self, lags: Mapping[int, int]) -> None:
        """How many records of each partition are not folded yet."""
        self._replace(lags=dict(sorted(lags.items())))

    def _view(self, tasks: Sequence[PartitionTask]) -> None:
        now, former = self._clock(), self._figures
        views = {
            task.partition: PartitionView.of(task, now, former.partitions.get(task.partition))
            for task in tasks
        }
        letters = {number: view.dead_letters for number, view in views.items()}
        self._replace(
            partitions={**former.partitions, **views},
            dead_letters={**former.dead_letters, **letters},
        )

    def _replace(self, **changes: Any) -> None:
        self._figures = replace(self._figures, **changes)


def _without(mapping: Mapping[int, _Value], partitions: Sequence[int]) -> dict[int, _Value]:
    return {number: value for number, value in mapping.items() if number not in partitions}

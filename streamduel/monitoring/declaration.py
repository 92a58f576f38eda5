"""What a metric is: name, labels, description, and how its samples are read from the figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from streamduel.monitoring.figures import Distribution, Figures
from streamduel.monitoring.views import ExperimentView, PartitionView

Samples = Iterable[tuple[tuple[str, ...], float]]
"""Label values, in the order of the labels' names, and the value."""


@dataclass(frozen=True)
class Declaration(ABC):
    """One metric.

    Attributes:
        name: as it is scraped.
        labels: their names.
        description: what the metric shows, and what it does not.
    """

    kind: ClassVar[str]

    name: str
    labels: tuple[str, ...]
    description: str

    @abstractmethod
    def family(self, figures: Figures) -> Metric:
        """The metric with its samples."""

    @property
    def per(self) -> Literal["arm", "experiment", "partition", "process"]:
        """What has a set of series each, by the labels."""
        if "arm" in self.labels:
            return "arm"
        if "experiment" in self.labels:
            return "experiment"
        return "partition" if "partition" in self.labels else "process"


@dataclass(frozen=True)
class _Value(Declaration):
    _family: ClassVar[type[GaugeMetricFamily | CounterMetricFamily]]

    read: Callable[[Figures], Samples]

    def family(self, figures: Figures) -> Metric:
        """The metric with its samples."""
        family = self._family(self.name, self.description, labels=self.labels)
        for labels, value in self.read(figures):
            family.add_metric(labels, value)
        return family


class Gauge(_Value):
    """A value that rises and falls."""

    kind = "gauge"
    _family = GaugeMetricFamily


class Counter(_Value):
    """A value that only grows."""

    kind = "counter"
    _family = CounterMetricFamily


@dataclass(frozen=True)
class Histogram(Declaration):
    """The distribution of measurements; it has no labels."""

    kind: ClassVar[str] = "histogram"

    read: Callable[[Figures], Distribution]

    def family(self, figures: Figures) -> Metric:
        """The metric with its samples."""
        found = self.read(figures)
        buckets, cumulative = [], 0
        bounds = [str(float(bound)) for bound in found.bounds]
        for bound, count in zip((*bounds, "+Inf"), found.counts, strict=True):
            cumulative += count
            buckets.append((bound, float(cumulative)))
        return HistogramMetricFamily(
            self.name, self.description, buckets=buckets, sum_value=found.total
        )


def per_experiment(read: Callable[[ExperimentView], float | None]) -> Callable[[Figures], Samples]:
    """One series per experiment; none where the value is None."""

    def samples(figures: Figures) -> Samples:
        for view in figures.experiments():
            value = read(view)
            if value is not None:
                yield (view.name,), value

    return samples


def per_experiment_and(read: Callable[[ExperimentView], Samples]) -> Callable[[Figures], Samples]:
    """Several series per experiment, each with further labels after `experiment`."""
    return lambda figures: (
        ((view.name, *labels), value)
        for view in figures.experiments()
        for labels, value in read(view)
    )


def per_arm(read: Callable[[ExperimentView], Iterable[float]]) -> Callable[[Figures], Samples]:
    """One series per arm of each experiment."""
    return lambda figures: (
        ((view.name, arm), value)
        for view in figures.experiments()
        for arm, value in zip(view.arms, read(view), strict=True)
    )


def per_partition(read: Callable[[Figures], Mapping[int, float]]) -> Callable[[Figures], Samples]:
    """One series per partition that has a value."""
    return lambda figures: (((str(number),), value) for number, value in read(figures).items())


def per_view(
    read: Callable[[PartitionView, Figures], float | None],
) -> Callable[[Figures], Samples]:
    """One series per partition of which there is a view; none where the value is None."""
    return lambda figures: (
        ((str(number),), value)
        for number, view in figures.partitions.items()
        if (value := read(view, figures)) is not None
    )

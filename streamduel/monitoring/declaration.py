"""What a metric is: name, labels, description, and how its samples are read from the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar, Literal

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from streamduel.monitoring.figures import Figures
from streamduel.monitoring.views import ExperimentView, PartitionView

Samples = Iterable[tuple[tuple[str, ...], float]]
"""Label values, in the order of the labels' names, and the value."""


@dataclass(frozen=True)
class Declaration:
    """One metric.

    Attributes:
        name: as it is scraped.
        labels: their names.
        description: what the metric shows, and what it does not.
        read: its `Samples`; of a histogram, which has no labels, its `Distribution`.
    """

    kind: ClassVar[str]
    _family: ClassVar[type[GaugeMetricFamily | CounterMetricFamily]]

    name: str
    labels: tuple[str, ...]
    description: str
    read: Callable[[Figures], Any]

    def family(self, figures: Figures) -> Metric:
        """The metric with its samples."""
        family = self._family(self.name, self.description, labels=self.labels)
        for labels, value in self.read(figures):
            family.add_metric(labels, value)
        return family

    @property
    def per(self) -> Literal["arm", "experiment", "partition", "process"]:
        """What has a set of series each, by the labels."""
        if "arm" in self.labels:
            return "arm"
        if "experiment" in self.labels:
            return "experiment"
        return "partition" if "partition" in self.labels else "process"


class Gauge(Declaration):
    """A value that rises and falls."""

    kind = "gauge"
    _family = GaugeMetricFamily


class Counter(Declaration):
    """A value that only grows."""

    kind = "counter"
    _family = CounterMetricFamily


class Histogram(Declaration):
    """The distribution of measurements."""

    kind = "histogram"

    def family(self, figures: Figures) -> Metric:
        """The metric with its samples."""
        found = self.read(figures)
        bounds = (*(str(float(bound)) for bound in found.bounds), "+Inf")
        buckets = list(zip(bounds, map(float, accumulate(found.counts)), strict=True))
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

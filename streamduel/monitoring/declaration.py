"""What a metric is: a name, labels, a meaning, and how its samples are read from the figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from streamduel.monitoring.views import ExperimentView, Figures, Tally

Samples = Iterable[tuple[tuple[str, ...], float]]
"""The values of the labels, in their order, and the value."""


@dataclass(frozen=True)
class Declaration:
    """One metric.

    Attributes:
        name: as it is scraped.
        labels: their names.
        meaning: what it says, and what it does not.
        per: of what there is a set of series each.
        times: how many series there are in a set.
    """

    kind: ClassVar[str]

    name: str
    labels: tuple[str, ...]
    meaning: str
    per: Literal["experiment", "arm", "partition", "process"]
    times: int = field(default=1, kw_only=True)

    def family(self, figures: Figures) -> Metric:
        """The metric with its samples."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Value(Declaration):
    _family: ClassVar[type[GaugeMetricFamily | CounterMetricFamily]]

    read: Callable[[Figures], Samples]

    def family(self, figures: Figures) -> Metric:
        """The metric with its samples."""
        family = self._family(self.name, self.meaning, labels=self.labels)
        for labels, value in self.read(figures):
            family.add_metric(labels, value)
        return family


class Gauge(_Value):
    """A value that goes up and down."""

    kind = "gauge"
    _family = GaugeMetricFamily


class Counter(_Value):
    """A value that only grows."""

    kind = "counter"
    _family = CounterMetricFamily


@dataclass(frozen=True)
class Histogram(Declaration):
    """How measurements are spread; it has no labels."""

    kind: ClassVar[str] = "histogram"

    read: Callable[[Figures], Tally]

    def family(self, figures: Figures) -> Metric:
        """The metric with its samples."""
        tally = self.read(figures)
        buckets, upto = [], 0
        bounds = [str(float(bound)) for bound in tally.bounds]
        for bound, count in zip((*bounds, "+Inf"), tally.counts, strict=True):
            upto += count
            buckets.append((bound, float(upto)))
        return HistogramMetricFamily(
            self.name, self.meaning, buckets=buckets, sum_value=tally.total
        )


def of_experiments(read: Callable[[ExperimentView], Samples]) -> Callable[[Figures], Samples]:
    """Several series of each experiment: the labels after `experiment`, and the value."""

    def samples(figures: Figures) -> Samples:
        for view in figures.experiments():
            for labels, value in read(view):
                yield (view.name, *labels), value

    return samples


def of_experiment(read: Callable[[ExperimentView], float]) -> Callable[[Figures], Samples]:
    """One series of each experiment."""
    return of_experiments(lambda view: [((), read(view))])


def of_arms(read: Callable[[ExperimentView], Sequence[float]]) -> Callable[[Figures], Samples]:
    """One series of each arm of each experiment."""
    return of_experiments(
        lambda view: (((arm,), value) for arm, value in zip(view.arms, read(view), strict=True))
    )


def of_partitions(read: Callable[[Figures], Mapping[int, float]]) -> Callable[[Figures], Samples]:
    """One series of each partition for which there is a value."""
    return lambda figures: (((str(number),), value) for number, value in read(figures).items())

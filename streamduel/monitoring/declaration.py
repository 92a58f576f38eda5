"""What a metric is: a name, labels, a meaning, and how its samples are read from the figures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, TypeVar

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from streamduel.monitoring.assessment import Assessment
from streamduel.monitoring.views import ExperimentView, Figures, Tally

Samples = Iterable[tuple[tuple[str, ...], float]]
"""The values of the labels, in their order, and the value."""

_Part = TypeVar("_Part")


@dataclass(frozen=True)
class Declaration(ABC):
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

    @abstractmethod
    def family(self, figures: Figures) -> Metric:
        """The metric with its samples."""

    @abstractmethod
    def reading(self, figures: Figures) -> object:
        """What its samples hang on, to be compared: equal readings, equal samples."""


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

    def reading(self, figures: Figures) -> object:
        """The samples themselves."""
        return list(self.read(figures))


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

    def reading(self, figures: Figures) -> object:
        """The tally."""
        return self.read(figures)


@dataclass(frozen=True)
class OfExperiments:
    """How to read the series of one experiment after the other.

    Labels and values apart, because labels stay what they are while the experiment keeps its
    `ExperimentView.shape`.

    Attributes:
        labels: those after `experiment`, of each series.
        values: of each series.
    """

    labels: Callable[[ExperimentView], Sequence[tuple[str, ...]]]
    values: Callable[[ExperimentView], Sequence[float]]

    def __call__(self, figures: Figures) -> Samples:
        """The samples of all experiments."""
        for view in figures.experiments():
            for labels, value in zip(self.labels(view), self.values(view), strict=True):
                yield (view.name, *labels), value


@dataclass(frozen=True)
class OfAssessments(OfExperiments):
    """The same of what an assessment says, which need not be as fresh as the view.

    Attributes:
        judged: the values, of an assessment.
    """

    judged: Callable[[Assessment], Sequence[float]]


def of_experiment(read: Callable[[ExperimentView], float]) -> OfExperiments:
    """One series of each experiment."""
    return OfExperiments(lambda _: ((),), lambda view: (read(view),))


def of_labels(
    labels: Sequence[tuple[str, ...]], read: Callable[[ExperimentView], Sequence[float]]
) -> OfExperiments:
    """A series of each experiment for each of these labels."""
    return OfExperiments(lambda _: labels, read)


def of_some(
    part: Callable[[ExperimentView], _Part | None],
    labels: Sequence[tuple[str, ...]],
    read: Callable[[_Part], Sequence[float]],
) -> OfExperiments:
    """The same, of a part that not every experiment has."""

    def values(view: ExperimentView) -> Sequence[float]:
        found = part(view)
        return () if found is None else read(found)

    return OfExperiments(lambda view: () if part(view) is None else labels, values)


def of_assessment(
    labels: Sequence[tuple[str, ...]],
    judged: Callable[[Assessment], Sequence[float]],
    has: Callable[[ExperimentView], bool] = lambda _: True,
) -> OfAssessments:
    """A series of each experiment that has it, for each of these labels."""
    return OfAssessments(
        lambda view: labels if has(view) else (), lambda view: judged(view.assessment), judged
    )


def of_arms(read: Callable[[ExperimentView], Sequence[float]]) -> OfExperiments:
    """One series of each arm of each experiment."""
    return OfExperiments(lambda view: [(arm,) for arm in view.arms], read)


def of_partitions(read: Callable[[Figures], Mapping[int, float]]) -> Callable[[Figures], Samples]:
    """One series of each partition for which there is a value."""
    return lambda figures: (((str(number),), value) for number, value in read(figures).items())

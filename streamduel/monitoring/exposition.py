"""The page of metrics, byte for byte as prometheus_client writes it, in a thirtieth of the time.

prometheus_client puts every line together from its parts at every scrape: some 7 µs a line, 60 ms
for a hundred experiments of 16 arms, in which the fold waits for the interpreter. But of a line
only the number changes, and of many metrics nothing. So here prometheus_client writes the lines of
an experiment once; all but the numbers is kept, and a scrape puts the numbers in between where one
has changed. Names, labels and escaping stay the library's, and so do numbers that Go writes in
another way than JSON.

Nothing here lets go of the interpreter on the way, as numpy does with larger arrays, and as reading
files does: beside a busy fold it takes up to 5 ms each time to get it back. So what /proc says of
the process, in some forty of such steps, is kept for a while as well.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec
from prometheus_client import generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.utils import floatToGoString

from streamduel.monitoring.assessment import Assessment
from streamduel.monitoring.assessments import FRESH_SECONDS, Assessments
from streamduel.monitoring.catalogue import METRICS
from streamduel.monitoring.declaration import (
    Counter,
    Declaration,
    Gauge,
    OfAssessments,
    OfExperiments,
)
from streamduel.monitoring.metrics import Metrics
from streamduel.monitoring.views import ExperimentView, Figures, PartitionView, Tally

RARE_ESCAPINGS: Final = {"dots", "values"}
"""They change all names, and no Prometheus asks for them unless it is told to. No lines are kept
for them, so that there are never more than two of each."""

LEAST_PLAIN: Final = 1e-4
LEAST_WITH_EXPONENT: Final = 1e6
"""From the one up to the other, and of zero, JSON and Go write the same, all digits that a double
has; beyond, Go puts an exponent."""

OF_EXPERIMENTS: Final = [
    (metric, metric.read)
    for metric in METRICS
    if isinstance(metric, (Gauge, Counter)) and isinstance(metric.read, OfExperiments)
]
"""The metrics that experiments have, and how they are read: nearly all lines are theirs."""


class Exposition:
    """Writes the page, in the format that is asked for.

    Args:
        metrics: what is on it.
        assessments: of the experiments, where somebody else makes some of them.
    """

    def __init__(self, metrics: Metrics, assessments: Assessments | None = None) -> None:
        self._metrics = metrics
        self._assessments = assessments or Assessments()
        self._process: Sequence[Metric] = ()
        self._process_at = -math.inf
        self._formats = {False: _Format(generate_latest), True: _Format(generate_openmetrics)}

    def page(self, accept: str) -> tuple[bytes, str]:
        """The page and its content type.

        Args:
            accept: the header of the request; may be empty.
        """
        try:
            encode, content_type = choose_encoder(accept)
        except (TypeError, ValueError):  # a version that is no number
            encode, content_type = choose_encoder("")
        if content_type.rpartition("; escaping=")[2] in RARE_ESCAPINGS:
            return encode(self._metrics.registry), content_type
        figures = self._metrics.figures
        if figures.now - self._process_at >= FRESH_SECONDS:
            self._process, self._process_at = list(self._metrics.process.collect()), figures.now
        views = list(figures.experiments())
        values = _values(views, self._assessments.of(views, figures.now))
        chosen = self._formats[content_type.startswith("application/openmetrics-text")]
        return chosen.page(figures, self._process, values), content_type


class _Format:
    """The page in one format, and what is kept of it from one scrape to the next.

    Args:
        encode: how prometheus_client writes it.
    """

    def __init__(self, encode: Callable[[Any], bytes]) -> None:
        self._encode = encode
        self._end = encode(_Collected(()))
        nothing = Figures("", Tally.empty(), Tally.empty())
        heads = {metric.name: metric.family(nothing) for metric, _ in OF_EXPERIMENTS}
        self._blocks = {name: _Block(self._text([head])) for name, head in heads.items()}
        self._shapes: list[tuple[object, ...]] = []
        self._lines: dict[tuple[object, ...], list[list[bytes]]] = {}
        self._others: dict[str, tuple[object, bytes]] = {}

    def page(
        self,
        figures: Figures,
        process: Iterable[Metric],
        values: Mapping[str, Sequence[float]],
    ) -> bytes:
        """The whole of it.

        Args:
            figures: what is on it.
            process: the metrics of the process.
            values: the numbers of the experiments, by metric.
        """
        self._arrange(list(figures.experiments()))
        parts = [
            self._blocks[metric.name].text(values[metric.name])
            if metric.name in values
            else self._other(metric, figures)
            for metric in METRICS
        ]
        return b"".join([*parts, self._text(process), self._end])

    def _other(self, metric: Declaration, figures: Figures) -> bytes:
        """A metric that is not of experiments; only what has changed is written anew."""
        reading = metric.reading(figures)
        known, text = self._others.get(metric.name, (None, b""))
        if known != reading:
            text = self._text([metric.family(figures)])
            self._others[metric.name] = reading, text
        return text

    def _arrange(self, views: Sequence[ExperimentView]) -> None:
        """Have the lines of these experiments at hand, and of no others."""
        shapes = [view.shape for view in views]
        if shapes == self._shapes:
            return
        former, self._lines = self._lines, {}
        for shape, view in zip(shapes, views, strict=True):
            self._lines[shape] = former.get(shape) or self._lines_of(view)
        each = [self._lines[shape] for shape in shapes]
        for at, block in enumerate(self._blocks.values()):
            block.arrange([line for lines in each for line in lines[at]])
        self._shapes = shapes

    def _lines_of(self, view: ExperimentView) -> list[list[bytes]]:
        """For each metric that experiments have, the lines of one of them without the numbers."""
        alone = PartitionView(0, 0.0, {view.name: view}, {})
        figures = Figures("", Tally.empty(), Tally.empty(), partitions={0: alone})
        texts = (self._text([metric.family(figures)]) for metric, _ in OF_EXPERIMENTS)
        return [
            [
                b"\n" + line.rpartition(b" ")[0] + b" "
                for line in text.split(b"\n")
                if line and not line.startswith(b"#")
            ]
            for text in texts
        ]

    def _text(self, families: Iterable[Metric]) -> bytes:
        """Metrics as prometheus_client writes them."""
        return self._encode(_Collected(families)).removesuffix(self._end)


class _Block:
    """A metric of all experiments, written anew only if one of its numbers has changed.

    Args:
        head: what stands above its lines.
    """

    def __init__(self, head: bytes) -> None:
        self._head = head[:-1]
        self._pieces: list[bytes] = []
        self._bits = b""
        self._text = head

    def arrange(self, lines: Sequence[bytes]) -> None:
        """From now on it has these lines, without the numbers."""
        self._pieces = [b""] * (2 * len(lines))
        self._pieces[::2] = lines
        self._bits, self._text = b"", self._head + b"\n"

    def text(self, values: Sequence[float]) -> bytes:
        """The whole of it with these numbers, one for each line."""
        numbers = array("d", values)
        bits = numbers.tobytes()
        if bits != self._bits:
            self._pieces[1::2] = _written(numbers)
            self._bits, self._text = bits, b"".join([self._head, *self._pieces, b"\n"])
        return self._text


class _Collected(NamedTuple):
    """Metrics where prometheus_client expects a registry of them."""

    families: Iterable[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.families


def _values(
    views: Sequence[ExperimentView], assessments: Sequence[Assessment]
) -> dict[str, list[float]]:
    """The numbers of each metric of all experiments."""
    values = {}
    for metric, read in OF_EXPERIMENTS:
        each: Iterable[Sequence[float]]
        if isinstance(read, OfAssessments):
            each = map(read.judged, assessments)
        else:
            each = map(read.values, views)
        values[metric.name] = list(chain.from_iterable(each))
    return values


def _written(numbers: array[float]) -> list[bytes]:
    """Numbers as prometheus_client writes them.

    >>> _written(array("d", [3, 0.25, 2_500_000, 1e-05, float("inf")]))
    [b'3.0', b'0.25', b'2.5e+06', b'1e-05', b'+Inf']
    """
    # Not with numpy: it would let go of the interpreter at each step, and have to wait for it.
    values = numbers.tolist()
    written = msgspec.json.encode(values)[1:-1].split(b",")
    for at, value in enumerate(values):
        if value and not LEAST_PLAIN <= value < LEAST_WITH_EXPONENT:
            written[at] = floatToGoString(value).encode()  # type: ignore[no-untyped-call]
    return written

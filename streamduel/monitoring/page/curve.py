"""Curves over duels: coordinates of their points, and axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from streamduel.monitoring.history import Point
from streamduel.monitoring.page.wording import short

WIDTH: Final = 1000
HEIGHT: Final = 400
"""Size of the drawing in its own units; the browser scales it."""

_STEPS: Final = (1, 2, 2.5, 5, 10)
_MIN_STEPS: Final = 2
"""An axis has two to six intervals, whose labels fit on a phone."""


class Axis(NamedTuple):
    """An axis.

    Attributes:
        low: the first number.
        high: the last number.
        labels: at equal distances, from the first number to the last.
    """

    low: float
    high: float
    labels: tuple[str, ...]


class Curve(NamedTuple):
    """A drawing, `WIDTH` by `HEIGHT`.

    Attributes:
        line: the points of the line, in SVG syntax.
        band: the outline of the band above the line; empty without a band.
        across: the axis of duels.
        up: the other axis.
        grid: the heights of the lines at the labels of `up`.
    """

    line: str
    band: str
    across: Axis
    up: Axis
    grid: tuple[float, ...]


def axis(low: float, high: float) -> Axis:
    """The smallest axis of round numbers that contains both.

    >>> axis(0, 870).labels
    ('0', '250', '500', '750', '1k')
    >>> axis(40_100, 65_513).labels
    ('40k', '50k', '60k', '70k')
    """
    rough = max(high - low, 1e-9) / _MIN_STEPS
    scale = 10.0 ** math.floor(math.log10(rough))
    step = max(size * scale for size in _STEPS if size * scale <= rough * (1 + 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return Axis(
        first * step,
        last * step,
        tuple(short(round(number * step, 12)) for number in range(first, last + 1)),
    )


SHARES: Final = Axis(0.0, 1.0, ("0", "25", "50", "75", "100"))
"""From 0 to 100 %."""


def regret_curve(points: Sequence[Point]) -> Curve | None:
    """The estimate of regret, and the band up to its upper bound; None before the second point."""
    up = axis(0.0, max([1.0, *(point.regret_bound for point in points)]))
    return _curve(points, up, lambda point: point.regret, lambda point: point.regret_bound)


def confidence_curve(points: Sequence[Point]) -> Curve | None:
    """The champion's confidence; None before the second point."""
    return _curve(points, SHARES, lambda point: point.confidence)


def _curve(
    points: Sequence[Point],
    up: Axis,
    value: Callable[[Point], float],
    bound: Callable[[Point], float] | None = None,
) -> Curve | None:
    if not points or points[0].duels == points[-1].duels:
        return None
    across = axis(points[0].duels, points[-1].duels)

    def place(duels: float, height: float) -> str:
        x = WIDTH * (duels - across.low) / (across.high - across.low)
        y = HEIGHT * (1 - (height - up.low) / (up.high - up.low))
        return f"{x:.1f},{y:.1f}"

    line = [place(point.duels, value(point)) for point in points]
    upper = [place(point.duels, bound(point)) for point in reversed(points)] if bound else []
    steps = len(up.labels) - 1
    grid = tuple(HEIGHT * step / steps for step in range(steps))
    return Curve(" ".join(line), " ".join(line + upper) if bound else "", across, up, grid)

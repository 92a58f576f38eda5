"""Curves over duels: where their points are in a drawing, and what stands at the axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from streamduel.monitoring.history import Point
from streamduel.monitoring.page.wording import short

WIDTH: Final = 1000
HEIGHT: Final = 400
"""Of the drawing, in units of its own: the browser stretches it to the room that there is."""

_STEPS: Final = (1, 2, 2.5, 5, 10)
_FEWEST_STEPS: Final = 2
"""An axis has two to six intervals: labels for which there is room on a phone."""


class Axis(NamedTuple):
    """What stands at an axis.

    Attributes:
        low: the number at its beginning.
        high: the number at its end.
        labels: at equal distances, the first at the beginning and the last at the end.
    """

    low: float
    high: float
    labels: tuple[str, ...]


class Curve(NamedTuple):
    """A drawing, `WIDTH` by `HEIGHT`.

    Attributes:
        line: the points of the line, as SVG wants them.
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
    """The smallest axis of round numbers that holds both.

    >>> axis(0, 870).labels
    ('0', '250', '500', '750', '1k')
    >>> axis(40_100, 65_513).labels
    ('40k', '50k', '60k', '70k')
    """
    rough = max(high - low, 1e-9) / _FEWEST_STEPS
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
    """The estimate of regret, and the band up to its bound; None while there is no line yet."""
    if not _moves(points):
        return None
    up = axis(0.0, max(1.0, *(point.regret_bound for point in points)))
    across = axis(points[0].duels, points[-1].duels)
    place = _placing(across, up)
    lower = [place(point.duels, point.regret) for point in points]
    upper = [place(point.duels, point.regret_bound) for point in reversed(points)]
    return Curve(" ".join(lower), " ".join(lower + upper), across, up, _grid(up))


def confidence_curve(points: Sequence[Point]) -> Curve | None:
    """The champion's confidence; None while there is no line yet."""
    if not _moves(points):
        return None
    across = axis(points[0].duels, points[-1].duels)
    place = _placing(across, SHARES)
    line = [place(point.duels, point.confidence) for point in points]
    return Curve(" ".join(line), "", across, SHARES, _grid(SHARES))


def _moves(points: Sequence[Point]) -> bool:
    return bool(points) and points[0].duels < points[-1].duels


def _placing(across: Axis, up: Axis) -> Callable[[float, float], str]:
    def place(duels: float, value: float) -> str:
        x = WIDTH * (duels - across.low) / (across.high - across.low)
        y = HEIGHT * (1 - (value - up.low) / (up.high - up.low))
        return f"{x:.1f},{y:.1f}"

    return place


def _grid(up: Axis) -> tuple[float, ...]:
    steps = len(up.labels) - 1
    return tuple(HEIGHT * step / steps for step in range(steps))

"""Plots for the page: curves that differ not only in colour, in small files."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from PIL import Image

from streamduel.simulation.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
_DASHES: Final[tuple[Any, ...]] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (8, 2)))
_MARKERS: Final = "os^DvP*"
_DOTS_PER_INCH: Final = 110
_TONES: Final = 128
"""Colours in a file, including those of anti-aliased lines."""

Numbers = Sequence[float]


@dataclass(frozen=True)
class Curve:
    """One line of a panel.

    Attributes:
        label: in the legend.
        place: determines colour, dashes and marker; equal for a policy in all panels.
        x: where.
        y: the line.
        low: the lower end of the band, or empty.
        high: its upper end.
        apart: whether each point is a separate experiment, shown by a marker.
        outlined: whether the band is two dotted lines.
    """

    label: str
    place: int
    x: Numbers
    y: Numbers
    low: Numbers = ()
    high: Numbers = ()
    apart: bool = False
    outlined: bool = False


def add(panel: Axes, curves: Sequence[Curve]) -> None:
    """Draw curves."""
    for curve in curves:
        colour = _COLOURS[curve.place % len(_COLOURS)]
        every: Any = None if curve.apart else (curve.place % 7, 7)
        panel.plot(
            curve.x,
            curve.y,
            color=colour,
            linestyle=_DASHES[curve.place % len(_DASHES)],
            marker=_MARKERS[curve.place % len(_MARKERS)],
            markersize=4,
            markevery=every,
            linewidth=1.3,
            label=curve.label,
        )
        if len(curve.low) and curve.outlined:
            for edge in (curve.low, curve.high):
                panel.plot(curve.x, edge, color=colour, linestyle=":", linewidth=0.8)
        elif len(curve.low):
            panel.fill_between(
                curve.x, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0
            )


def finish(panel: Axes, title: str, x: str = "", y: str = "", *, log_x: bool = True) -> None:
    """Set up a panel's axes and title."""
    panel.set_title(title, loc="left", fontsize=9)
    panel.set_xlabel(x)
    panel.set_ylabel(y)
    if log_x:
        panel.set_xscale("log")
    panel.grid(color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def panels(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """A figure with rows of panels."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def save(figure: Figure, path: Path) -> None:
    """Write a PNG of about 40 kB; equal figures give equal bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = io.BytesIO()
    with rc_context({"font.size": 9}):
        figure.savefig(raw, format="png", dpi=_DOTS_PER_INCH)
    shrink(raw, path)


def shrink(raw: io.BytesIO, path: Path) -> None:
    """Reduce the colours of an image."""
    with Image.open(raw) as picture:
        few = picture.convert("RGB").quantize(
            _TONES, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
        few.save(path, format="PNG", optimize=True)


def over_time(results: Sequence[Results], contestant: int, label: str, place: int) -> Curve:
    """Mean cumulative regret of a policy: of the runs, or of several problems with equal weight.

    The band is a standard error: over the runs of one problem, or else over the problems.
    """
    times = results[0].settings.checkpoints
    samples = [np.array(each.regrets(contestant)) for each in results]
    rows = samples[0] if len(samples) == 1 else np.array([runs.mean(axis=0) for runs in samples])
    center = rows.mean(axis=0)
    error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows)) if len(rows) > 1 else 0 * center
    return Curve(
        label, place, times, center.tolist(), (center - error).tolist(), (center + error).tolist()
    )

"""Plots of regret and accuracy over time."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from streamduel.errors import ConfigurationError, nearest
from streamduel.files import write_whole
from streamduel.preference.arrays import Floats
from streamduel.simulation.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS: Final = (".png", ".svg", ".pdf")
SCALES: Final = ("linear", "log")
BANDS: Final = ("error", "quantiles")

_COLOURS: Final = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#8A7F00",
)  # fmt: skip
"""The palette of Okabe and Ito, which colour-blind readers can distinguish, with a darker
yellow."""
_DASHES: Final[tuple[Any, ...]] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (8, 2)))
_MARKERS: Final = "os^DvPX*<>hd"
_BAND_LABELS: Final = {
    "error": "band: mean ± standard error",
    "quantiles": "line: mean, band: 10 % to 90 % of the runs",
}
_MAX_INSIDE: Final = 12
"""With more policies the legend is beside the plot."""


def check_plot(path: Path, scale: str = "linear", band: str = "error") -> None:
    """Check the arguments of `draw` before the simulation starts.

    Raises:
        ConfigurationError: matplotlib is missing, or an argument is not allowed.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConfigurationError(
            f"the plot must be a file named .png, .svg or .pdf (found '{path}')."
        )
    for what, value, allowed in (("scale", scale, SCALES), ("band", band, BANDS)):
        if value not in allowed:
            raise ConfigurationError(
                f"the {what} of the plot must be {' or '.join(allowed)}"
                f" (found {value!r}{nearest(value, allowed)})."
            )
    if find_spec("matplotlib") is None:
        raise ConfigurationError("a plot needs matplotlib: pip install 'streamduel[sim]'.")


def draw(
    results: Results, path: Path, *, title: str = "", scale: str = "linear", band: str = "error"
) -> None:
    """Cumulative regret over time above, champion accuracy below, time on a log scale.

    If it was measured, the share of runs that had an answer is at the bottom: where a line crosses
    0.5 is the median number of duels until an answer.

    Colours, dashes and markers all differ, so that the lines can be distinguished without colour.

    Args:
        results: of at least one run.
        path: .png, .svg or .pdf; equal results give equal bytes.
        title: of the plot.
        scale: of the regret: linear or log.
        band: error for one standard error of the mean each way, quantiles for the middle 80 % of
            the runs.

    Raises:
        ConfigurationError: as for `check_plot`.
        StreamduelError: the file cannot be written.
    """
    check_plot(path, scale, band)
    with drawing(path, 6.0 if results.settings.until_sure is None else 7.5) as figure:
        _fill(figure, results, title, scale, band)


@contextmanager
def drawing(path: Path, height: float) -> Iterator[Figure]:
    """A figure of a height in inches, which is written when the block ends.

    Raises:
        StreamduelError: the file cannot be written.
    """
    from matplotlib import rc_context  # noqa: PLC0415 - an optional extra, and slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    picture = io.BytesIO()
    with rc_context({"svg.hashsalt": "streamduel", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(7.0, height), layout="constrained")
        yield figure
        kind = path.suffix.lower()[1:]
        # Without a date, so that equal results give equal bytes.
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
        figure.savefig(picture, format=kind, dpi=160, metadata=metadata)
    write_whole(path, picture.getvalue())


def style(*panels: Axes) -> None:
    """Give panels over time their scale, grid and frame."""
    for panel in panels:
        panel.set_xscale("log")
        panel.grid(color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.spines[["top", "right"]].set_visible(False)


def _fill(figure: Figure, results: Results, title: str, scale: str, band: str) -> None:
    """Draw all panels."""
    settings = results.settings
    ratios = [2.2, 1] if settings.until_sure is None else [2.2, 1, 1]
    above, below, *bottom = figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios)
    finals = {}
    for place, label in enumerate(settings.labels()):
        regrets = np.array(results.regrets(place))
        if len(regrets):
            finals[label] = _add_policy(above, below, results, place, label, regrets, band)
            for panel in bottom:
                _add_answers(panel, results, place)
    above.set_ylabel(f"cumulative {settings.regret} regret")
    _scale_regret(above, scale, finals)
    below.set_ylabel("champion accuracy")
    below.set_ylim(-0.03, 1.03)
    for panel in bottom:
        panel.set_ylabel(f"share {100 * (settings.until_sure or 0):.10g} % sure")
        panel.set_ylim(-0.03, 1.03)
        panel.set_yticks([0, 0.5, 0.9])
    [below, *bottom][-1].set_xlabel(f"duels ({_BAND_LABELS[band]} of {settings.runs} runs)")
    style(above, below, *bottom)
    above.set_title(title, loc="left", fontsize=10, parse_math=False)  # a file may have $ in it
    _add_legend(figure, above, finals)


def _add_policy(
    above: Axes,
    below: Axes,
    results: Results,
    place: int,
    label: str,
    regrets: Floats,
    band: str,
) -> float:
    """Draw one policy into both panels; returns its final regret."""
    times = results.settings.checkpoints
    mean = regrets.mean(axis=0)
    if band == "error":
        deviation = regrets.std(axis=0, ddof=1) if len(regrets) > 1 else np.zeros(len(times))
        error = deviation / np.sqrt(len(regrets))
        low, high = mean - error, mean + error
    else:
        low, high = np.quantile(regrets, [0.1, 0.9], axis=0)
    look = {**_look(place), "label": label}
    above.plot(times, mean, **look)
    band_look = {"color": look["color"], "alpha": 0.18, "linewidth": 0}
    above.fill_between(times, np.maximum(low, 0), high, **band_look)
    spec = results.settings.specs[place]
    accuracy = next(
        each.champion_accuracy for each in results.policies() if (each.name, each.params) == spec
    )
    below.plot(times, accuracy, **look)
    return float(mean[-1])


def _look(place: int) -> dict[str, Any]:
    """The look of the lines of the policy at an index."""
    return {
        "color": _COLOURS[place % len(_COLOURS)],
        "linestyle": _DASHES[place % len(_DASHES)],
        "marker": _MARKERS[place % len(_MARKERS)],
        "markersize": 4,
        "markevery": (place % 7, 7),
        "linewidth": 1.4,
    }


def _add_answers(panel: Axes, results: Results, place: int) -> None:
    """Draw the share of one policy's runs that had an answer, over the number of duels."""
    answers = results.answers(place)
    times = sorted(answer.duels for answer in answers if answer.verdict is not None)
    shares = np.arange(len(times) + 1) / len(answers)
    panel.step(
        [1, *times, results.settings.horizon], [*shares, shares[-1]], where="post", **_look(place)
    )


def _scale_regret(panel: Axes, scale: str, finals: dict[str, float]) -> None:
    """Set up the axis of regret; a log scale begins at 1, or lower if a final regret is lower."""
    least = min((value for value in finals.values() if value > 0), default=None)
    if scale == "log" and least is not None:  # a log scale needs a positive regret
        panel.set_yscale("log", nonpositive="clip")
        panel.set_ylim(bottom=min(1.0, least / 3))
    else:
        panel.set_ylim(bottom=0)


def _add_legend(figure: Figure, panel: Axes, finals: dict[str, float]) -> None:
    """Add a legend in the order of the final regret, the highest first."""
    entries = zip(*panel.get_legend_handles_labels(), strict=True)
    handles, names = zip(*sorted(entries, key=lambda entry: -finals[entry[1]]), strict=True)
    if len(names) > _MAX_INSIDE:
        figure.legend(handles, names, loc="outside right upper", frameon=False)
    else:
        panel.legend(handles, names, loc="upper left", frameon=False, handlelength=4)

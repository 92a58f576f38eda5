"""The report of an analysis: one HTML file that loads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from importlib import resources
from math import ceil
from typing import Final, NamedTuple

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

import streamduel
from streamduel.analysis.report import Analysis, Day, ExperimentAnalysis
from streamduel.analysis.segments import MAX_VALUES
from streamduel.analysis.wording import doubt, from_ahead, verdict
from streamduel.errors import readable
from streamduel.preference.verdict import INTERVALS, LEVEL, PairResult, at_least
from streamduel.records import MAX_NOTE
from streamduel.stream.examples import MAX_QUERY

MAX_ROWS: Final = 30
"""Of a table; `--json` and `--csv` have all."""

WIDTH, HEIGHT = 600, 172
"""Of the drawing of days."""


class PairRow(NamedTuple):
    """A pair, seen from the arm that is ahead in it or in all; places are per cent of the plot."""

    first: str
    second: str
    duels: int
    ties: float
    rate: float
    low: float
    high: float
    places: tuple[float, float, float]
    is_sure: bool


class Plot(NamedTuple):
    """The leader's win rate over time.

    Attributes:
        line: points of the drawing.
        bars: place, width and height of each period's number of duels.
        low: the smallest win rate of the drawing; the largest is as far from 1/2.
        first: the first day.
        last: the first day of the last period.
    """

    line: str
    bars: Sequence[tuple[float, float, float]]
    low: float
    first: str
    last: str


class Page(NamedTuple):
    """What the page of one experiment shows; `doubt` is None if no check has failed."""

    name: str
    verdict: str
    doubt: str | None
    found: ExperimentAnalysis
    pairs: Sequence[PairRow]
    extent: float
    plot: Plot | None


def render(analysis: Analysis) -> str:
    """The report as HTML."""
    templates = Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("streamduel.analysis.page"),
                PackageLoader("streamduel.monitoring.page"),  # what both show
            ]
        ),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    templates.filters.update(
        readable=readable,
        legible=partial(readable, limit=MAX_QUERY),
        written=partial(readable, limit=MAX_NOTE),
        moment=_moment,
        at_least=at_least,
        percent=_percent,
        count=_count,
    )
    style = resources.files("streamduel.monitoring.page") / "static" / "style.css"
    return templates.get_template("report.html").render(
        pages=[_page(name, found) for name, found in analysis.experiments.items()],
        analysis=analysis,
        style=style.read_text("utf-8"),
        version=streamduel.__version__,
        level=LEVEL,
        about_intervals=INTERVALS,
        most_segments=MAX_VALUES,
        max_rows=MAX_ROWS,
        drawing=(WIDTH, HEIGHT),
    )


def _moment(at: int) -> str:
    """A time in UTC; a log may contain any number.

    >>> _moment(1_790_000_000_000), _moment(2**60)
    ('2026-09-21 14:13:20 UTC', '1152921504606846976 ms')
    """
    try:
        return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{at} ms"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NARROW NO-BREAK SPACE}%"


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _page(name: str, found: ExperimentAnalysis) -> Page:
    shown = found.pairs[:MAX_ROWS]
    ends = [end for pair in shown for end in pair.interval]
    extent = max((abs(end - 0.5) for end in ends), default=0.5)
    extent = min(0.5, ceil(20 * extent) / 20)
    rows = [_row(pair, found.leader, extent) for pair in shown]
    return Page(name, _sentence(found), doubt(found), found, rows, extent, _plot(found.days))


def _sentence(found: ExperimentAnalysis) -> str:
    text = verdict(found)
    return text if found.champion is not None else text[0].upper() + text[1:]


def _row(pair: PairResult, leader: str | None, extent: float) -> PairRow:
    a, b, rate, (low, high) = from_ahead(pair, leader)
    low_place, place, high_place = (50 + 50 * (x - 0.5) / extent for x in (low, rate, high))
    return PairRow(
        a, b, pair.duels, pair.ties / pair.duels, rate, low, high,
        (low_place, place, high_place), low > 0.5 or high < 0.5,
    )  # fmt: skip


def _plot(days: Sequence[Day]) -> Plot | None:
    """None unless there are two periods with duels of the leader."""
    rates = [day.win_rate for day in days if day.win_rate is not None]
    if len(rates) < 2:
        return None
    extent = max(0.05, min(0.5, ceil(20 * max(abs(rate - 0.5) for rate in rates)) / 20))
    step, most = WIDTH / len(days), max(day.duels for day in days)
    points = [
        f"{(place + 0.5) * step:.1f},{HEIGHT * (0.5 - (day.win_rate - 0.5) / (2 * extent)):.1f}"
        for place, day in enumerate(days)
        if day.win_rate is not None
    ]
    bars = [
        (place * step + 0.1 * step, 0.8 * step, HEIGHT / 3 * day.duels / most)
        for place, day in enumerate(days)
    ]
    return Plot(" ".join(points), bars, 0.5 - extent, days[0].start, days[-1].start)

"""Renders the pages. They work without JavaScript, and load nothing from other hosts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

import streamduel
from streamduel.errors import MAX_COMPARED, legible, nearest
from streamduel.monitoring.figures import Figures
from streamduel.monitoring.history import History
from streamduel.monitoring.metrics import STATUSES
from streamduel.monitoring.page import curve
from streamduel.monitoring.page.experiment import (
    EVIDENCE_MARK,
    MAX_SHOWN_DEAD_LETTERS,
    experiment_page,
)
from streamduel.monitoring.page.heat_map import SCALE
from streamduel.monitoring.page.overview import MAX_SEARCH_LENGTH, Query, overview
from streamduel.monitoring.page.wording import (
    address,
    amount,
    at_least,
    brief,
    count,
    last_record,
    moment,
    path,
    percent,
    wait,
)
from streamduel.monitoring.recent_dead_letters import RecentDeadLetter, RecentDeadLetters
from streamduel.preference.verdict import INTERVALS
from streamduel.stream.timeline import MAX_ALARMS, MAX_CHAMPIONS, MAX_MOMENTS

PAGE_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
}
"""Of a page: only the files of `STATIC` are loaded and run."""

STATIC: Final = {
    "style.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files that pages load, with their media types."""


FILTERS: Final = (
    address, amount, at_least, brief, count, last_record, legible, moment, path, percent, wait,
)  # fmt: skip
"""The functions with which templates write values."""


class File(NamedTuple):
    """A file that pages load."""

    content: bytes
    media_type: str
    version: str


class Pages:
    """Renders the status page.

    Args:
        figures: returns the present figures.
        history: past confidence and regret.
        dead_letters: the newest ones.
        clock: seconds since 1970.

    Attributes:
        files: those that pages load, by name.
    """

    def __init__(
        self,
        figures: Callable[[], Figures],
        history: History,
        dead_letters: RecentDeadLetters,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._figures, self._history, self._clock = figures, history, clock
        self._dead_letters = dead_letters
        self.files = {name: _file(name) for name in STATIC}
        self._templates = Environment(
            loader=PackageLoader("streamduel.monitoring.page"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        self._templates.filters.update({function.__name__: function for function in FILTERS})
        self._templates.globals.update(
            version=streamduel.__version__,
            files={name: f"/static/{name}?v={file.version}" for name, file in self.files.items()},
            drawing=(curve.WIDTH, curve.HEIGHT),
            scale=SCALE,
            evidence_mark=EVIDENCE_MARK,
            about_intervals=INTERVALS,
            max_moments=MAX_MOMENTS,
            max_champions=MAX_CHAMPIONS,
            max_alarms=MAX_ALARMS,
        )

    def overview(self, query: Mapping[str, str]) -> str:
        """The overview of all experiments, or of those that match the query."""
        figures = self._figures()
        named, others = _by_experiment(self._dead_letters.newest, figures)
        return self._render(
            "overview.html",
            page=overview(figures, self._history, Query.parse(query)),
            figures=figures,
            warnings=figures.why_not_ready(),
            dead_letters=named[:MAX_SHOWN_DEAD_LETTERS],
            other_dead_letters=others[:MAX_SHOWN_DEAD_LETTERS],
            all_dead_letters=sum(sum(each.values()) for each in figures.dead_letters.values()),
            statuses=STATUSES,
            max_search_length=MAX_SEARCH_LENGTH,
        )

    def experiment(self, name: str) -> str | None:
        """The page of one experiment; None if this process does not hold it."""
        figures = self._figures()
        for number, partition in figures.partitions.items():
            view = partition.experiments.get(name)
            if view is not None:
                page = experiment_page(
                    figures, view, number, self._history, self._dead_letters.newest, self._clock()
                )
                return self._render("experiment.html", page=page)
        return None

    def missing(self, name: str) -> tuple[str, int]:
        """The page for an experiment that this process does not hold, and its HTTP status."""
        sentence, status = absent(self._figures(), name)
        return self._render("missing.html", sentence=sentence, status=status), status

    def _render(self, template: str, **values: Any) -> str:
        return self._templates.get_template(template).render(now=self._clock(), **values)


def _by_experiment(
    dead_letters: Sequence[RecentDeadLetter], figures: Figures
) -> tuple[list[RecentDeadLetter], list[RecentDeadLetter]]:
    """Those that name an experiment of their partition, and all others; the latest first."""
    named, others = list[RecentDeadLetter](), list[RecentDeadLetter]()
    for dead_letter in reversed(dead_letters):
        partition = figures.partitions.get(dead_letter.partition)
        known = partition is not None and dead_letter.experiment in partition.experiments
        (named if known else others).append(dead_letter)
    return named, others


def absent(figures: Figures, name: str) -> tuple[str, int]:
    """The error sentence for an experiment that this process does not hold, and its HTTP status.

    503 means that this process may hold it soon.
    """
    if incomplete := figures.incomplete():
        return incomplete, 503
    names = [view.name for view in figures.experiments()]
    hint = nearest(name, names) if len(names) <= MAX_COMPARED else ""
    return f"experiment '{name[:80]}' is in no partition of this process{hint or '.'}", 404


def _file(name: str) -> File:
    folder = resources.files("streamduel.monitoring.page") / "static"
    content = (folder / name).read_bytes()
    return File(content, STATIC[name], hashlib.sha256(content).hexdigest()[:16])

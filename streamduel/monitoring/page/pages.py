"""Renders the pages; they are whole without JavaScript, and ask nobody else for anything."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined

import streamduel
from streamduel.errors import nearest
from streamduel.monitoring.figures import Figures
from streamduel.monitoring.history import History
from streamduel.monitoring.page import curve
from streamduel.monitoring.page.experiment import experiment_page
from streamduel.monitoring.page.overview import MOST_SOUGHT, STATUSES, Wish, overview
from streamduel.monitoring.page.wording import count, legible, moment, path
from streamduel.monitoring.recent_dead_letters import RecentDeadLetter, RecentDeadLetters
from streamduel.stream.homes import MOST_COMPARED

PAGE_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
}
"""Of a page: nothing runs in it, and nothing is loaded into it, but the files of `STATIC`."""

STATIC: Final = {
    "style.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
"""The files that pages refer to, and what they are."""

NEWEST_LETTERS: Final = 10
"""Shown with all experiments, of those that are of one, and of the others."""


class File(NamedTuple):
    """A file that pages refer to."""

    content: bytes
    media_type: str
    version: str


class Pages:
    """The status page in all its parts.

    Templates are compiled when a page is first asked for, and kept.

    Args:
        figures: asked for what is known at the moment.
        history: how it came to be.
        letters: the newest dead letters.
        clock: seconds since 1970.

    Attributes:
        files: those that pages refer to, by name.
    """

    def __init__(
        self,
        figures: Callable[[], Figures],
        history: History,
        letters: RecentDeadLetters,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._figures, self._history, self._letters, self._clock = figures, history, letters, clock
        self.files = {name: _file(name) for name in STATIC}
        self._templates = Environment(
            loader=PackageLoader("streamduel.monitoring.page"),
            autoescape=True,
            trim_blocks=True,
            lstrip_blocks=True,
            undefined=StrictUndefined,
        )
        self._templates.filters.update(legible=legible, moment=moment, count=count, path=path)
        self._templates.globals.update(
            version=streamduel.__version__,
            files={name: f"/static/{name}?v={file.version}" for name, file in self.files.items()},
            drawing=(curve.WIDTH, curve.HEIGHT),
        )

    def overview(self, query: Mapping[str, str]) -> str:
        """All experiments, or those that the query asks for."""
        figures = self._figures()
        letters, strays = _sorted_out(self._letters.newest, figures)
        return self._render(
            "overview.html",
            page=overview(figures, self._history, Wish.of(query)),
            figures=figures,
            warnings=figures.why_not_ready(),
            letters=letters[:NEWEST_LETTERS],
            strays=strays[:NEWEST_LETTERS],
            letters_in_all=sum(sum(each.values()) for each in figures.dead_letters.values()),
            statuses=STATUSES,
            most_sought=MOST_SOUGHT,
        )

    def experiment(self, name: str) -> str | None:
        """One experiment; None if this process does not hold it."""
        figures = self._figures()
        for number, partition in figures.partitions.items():
            view = partition.experiments.get(name)
            if view is not None:
                page = experiment_page(
                    figures, view, number, self._history, self._letters.newest, self._clock()
                )
                return self._render("experiment.html", page=page)
        return None

    def missing(self, name: str) -> str:
        """That there is no such experiment here."""
        return self._render("missing.html", sentence=absent(self._figures(), name))

    def _render(self, template: str, **values: Any) -> str:
        return self._templates.get_template(template).render(now=self._clock(), **values)


def _sorted_out(
    letters: Sequence[RecentDeadLetter], figures: Figures
) -> tuple[list[RecentDeadLetter], list[RecentDeadLetter]]:
    """Those of experiments in their partition, and all others; the latest first."""
    known, strays = list[RecentDeadLetter](), list[RecentDeadLetter]()
    for letter in reversed(letters):
        partition = figures.partitions.get(letter.partition)
        found = partition is not None and letter.experiment in partition.experiments
        (known if found else strays).append(letter)
    return known, strays


def absent(figures: Figures, name: str) -> str:
    """The sentence for whoever asks for an experiment that is not here."""
    names = [view.name for view in figures.experiments()]
    hint = nearest(name, names) if len(names) <= MOST_COMPARED else ""
    return f"experiment '{name[:80]}' is in no partition of this process{hint or '.'}"


def _file(name: str) -> File:
    folder = resources.files("streamduel.monitoring.page") / "static"
    content = (folder / name).read_bytes()
    return File(content, STATIC[name], hashlib.sha256(content).hexdigest()[:16])

"""The overview: a table of experiments, searched, sorted and paged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from streamduel.monitoring.figures import Figures
from streamduel.monitoring.history import History
from streamduel.monitoring.page.wording import (
    address,
    at_least,
    count,
    last_record,
    legible,
)
from streamduel.monitoring.views import ExperimentView

PAGE_ROWS: Final = 50
"""Experiments per page; rendered in some milliseconds."""

MAX_SEARCH_LENGTH: Final = 256
"""No name is longer."""

STATUSES: Final = ("running", "paused", "finished")

COLUMNS: Final = (
    ("name", "Experiment"),
    ("status", "Status"),
    ("champion", "Champion"),
    ("confidence", "Confidence"),
    ("duels", "Duels"),
    ("policy", "Policy"),
    ("epoch", "Epoch"),
    ("seen", "Last record"),
    ("dead", "Dead letters"),
)
"""The columns, by which the table can be sorted, and their headings."""

_LARGEST_FIRST: Final = frozenset({"confidence", "duels", "epoch", "dead"})
"""Columns that are first sorted in descending order."""


@dataclass(frozen=True)
class Query:
    """The selection and order of experiments in the table.

    Attributes:
        q: a part of the experiment's or the champion's name.
        status: all if empty.
        sort: a column.
        descending: the largest first.
        page: from 1.
    """

    q: str = ""
    status: str = ""
    sort: str = "name"
    descending: bool = False
    page: int = 1

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Query:
        """The query of an address; invalid values are ignored.

        >>> Query.parse({"sort": "-duels", "page": "2", "status": "lost"})
        Query(q='', status='', sort='duels', descending=True, page=2)
        """
        sort, page, status = query.get("sort", ""), query.get("page", ""), query.get("status", "")
        column = sort.removeprefix("-")
        known = column in dict(COLUMNS)
        return cls(
            q=query.get("q", "")[:MAX_SEARCH_LENGTH],
            status=status if status in STATUSES else "",
            sort=column if known else "name",
            descending=known and sort.startswith("-"),
            page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 10 else 1,
        )

    @property
    def address(self) -> str:
        """The address of this query."""
        sort = f"{'-' if self.descending else ''}{self.sort}"
        parameters = {
            "q": self.q,
            "status": self.status,
            "sort": sort if sort != "name" else "",
            "page": str(self.page) if self.page > 1 else "",
        }
        text = urlencode({name: value for name, value in parameters.items() if value})
        return f"/?{text}" if text else "/"


class Row(NamedTuple):
    """An experiment in the table; confidence as text and in per cent."""

    name: str
    address: str
    status: str
    champion: str
    confidence: str
    confidence_percent: float
    duels: str
    policy: str
    epoch: str
    last_record: str
    dead_letters: str


class Heading(NamedTuple):
    """A column's heading: its text, its present order, and the address that sorts by it."""

    column: str
    text: str
    sorted: str
    address: str


@dataclass(frozen=True)
class Overview:
    """The content of the page.

    Attributes:
        query: as asked for, with an existing page.
        headings: of the table.
        rows: of the page.
        found: how many experiments match the query.
        first: the number of the first row.
        statuses: number of experiments by status.
        duels: of all experiments.
        previous: the address of the previous page; None on the first.
        next: the address of the next page; None on the last.
    """

    query: Query
    headings: tuple[Heading, ...]
    rows: tuple[Row, ...]
    found: int
    first: int
    statuses: Mapping[str, int]
    duels: int
    previous: str | None
    next: str | None


def overview(figures: Figures, history: History, query: Query) -> Overview:
    """The page for a query.

    Confidence is that of the last update of the history: computing it for a thousand experiments
    would take a second.

    Args:
        figures: the present figures.
        history: past confidence.
        query: what to show.
    """
    views = list(figures.experiments())
    found = sorted(
        (view for view in views if _matches(view, query)),
        key=lambda view: (view.name.casefold(), view.name),
    )
    if query.sort != "name" or query.descending:
        found.sort(key=_order(query.sort, history), reverse=query.descending)
    pages = max(1, -(-len(found) // PAGE_ROWS))
    query = replace(query, page=min(query.page, pages))
    first = (query.page - 1) * PAGE_ROWS
    return Overview(
        query=query,
        headings=tuple(_heading(query, column, text) for column, text in COLUMNS),
        rows=tuple(_row(view, figures, history) for view in found[first : first + PAGE_ROWS]),
        found=len(found),
        first=first + 1,
        statuses=Counter(view.status for view in views),
        duels=sum(view.duels for view in views),
        previous=replace(query, page=query.page - 1).address if query.page > 1 else None,
        next=replace(query, page=query.page + 1).address if query.page < pages else None,
    )


def _matches(view: ExperimentView, query: Query) -> bool:
    if query.status and view.status != query.status:
        return False
    if not query.q:
        return True
    search = query.q.casefold()
    return search in view.name.casefold() or search in view.arms[view.champion].casefold()


def _order(column: str, history: History) -> Callable[[ExperimentView], Any]:
    orders: dict[str, Callable[[ExperimentView], Any]] = {
        "name": lambda view: (view.name.casefold(), view.name),
        "status": lambda view: view.status,
        "champion": lambda view: view.arms[view.champion].casefold(),
        "confidence": lambda view: _confidence(view, history),
        "duels": lambda view: view.duels,
        "policy": lambda view: view.policy,
        "epoch": lambda view: view.epoch,
        "seen": lambda view: -view.last_record_at,
        "dead": lambda view: view.tallies["dead_letter"],
    }
    return orders[column]


def _confidence(view: ExperimentView, history: History) -> float:
    """As of the last update of the history; -1 before the first."""
    newest = history.newest(view.name)
    return newest.confidence if newest is not None else -1.0


def _heading(query: Query, column: str, text: str) -> Heading:
    if query.sort != column:
        descending, order = column in _LARGEST_FIRST, ""
    else:
        descending = not query.descending
        order = "descending" if query.descending else "ascending"
    link = replace(query, sort=column, descending=descending, page=1).address
    return Heading(column, text, order, link)


def _row(view: ExperimentView, figures: Figures, history: History) -> Row:
    confidence = _confidence(view, history)
    return Row(
        name=legible(view.name),
        address=address(view.name),
        status=view.status,
        champion=legible(view.arms[view.champion]),
        confidence=at_least(confidence) if confidence >= 0 else "…",
        confidence_percent=100 * max(0.0, confidence),
        duels=count(view.duels),
        policy=view.policy if view.stage == view.policy else f"{view.policy}, now {view.stage}",
        epoch=count(view.epoch),
        last_record=last_record(view, figures),
        dead_letters=count(view.tallies["dead_letter"]),
    )

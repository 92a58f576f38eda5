"""The overview: a table of experiments, searched, sorted and paged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf, isnan
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from streamduel.monitoring.figures import Figures
from streamduel.monitoring.history import History
from streamduel.monitoring.metrics import STATUSES
from streamduel.monitoring.outlook import Outlook
from streamduel.monitoring.views import ExperimentView

PAGE_ROWS: Final = 50
"""Experiments per page; rendered in some milliseconds."""

MAX_SEARCH_LENGTH: Final = 256
"""No name is longer."""


class Row(NamedTuple):
    """An experiment in the table.

    Attributes:
        confidence: of the champion; None before the history's first update.
        progress: how much of the evidence for a sure champion there is; None as above.
        outlook: when it will be sure.
    """

    view: ExperimentView
    confidence: float | None
    progress: float | None
    outlook: Outlook

    @property
    def decided(self) -> bool | None:
        """As that of the view; None before the first update."""
        if self.progress is None:
            return None
        return self.progress > 0 or self.view.decided  # the verdict on many arms is costly


class Column(NamedTuple):
    """A column of the table: its heading, the order by it, and whether the largest come first."""

    heading: str
    order: Callable[[Row], Any]
    largest_first: bool = False


COLUMNS: Final = {
    "name": Column("Experiment", lambda row: (row.view.name.casefold(), row.view.name)),
    "status": Column("Status", lambda row: row.view.status),
    "champion": Column("Champion", lambda row: row.view.arms[row.view.champion].casefold()),
    "confidence": Column(
        "Confidence",
        lambda row: -1.0 if row.confidence is None else row.confidence,
        largest_first=True,
    ),
    "progress": Column(
        "Progress",
        lambda row: -1.0 if row.progress is None else row.progress,
        largest_first=True,
    ),
    "sure": Column("Sure in", lambda row: inf if isnan(row.outlook.median) else row.outlook.median),
    "duels": Column("Duels", lambda row: row.view.duels, largest_first=True),
    "policy": Column("Policy", lambda row: row.view.policy),
    "epoch": Column("Epoch", lambda row: row.view.epoch, largest_first=True),
    "seen": Column("Last record", lambda row: -row.view.last_record_at),
    "dead": Column("Dead letters", lambda row: row.view.tallies["dead_letter"], largest_first=True),
}


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
        known = column in COLUMNS
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
        return f"/{self._text}"

    @property
    def csv_address(self) -> str:
        """The address of all that match, in this order, as CSV."""
        return f"/api/experiments.csv{replace(self, page=1)._text}"

    @property
    def _text(self) -> str:
        sort = f"{'-' if self.descending else ''}{self.sort}"
        parameters = {
            "q": self.q,
            "status": self.status,
            "sort": sort if sort != "name" else "",
            "page": str(self.page) if self.page > 1 else "",
        }
        text = urlencode({name: value for name, value in parameters.items() if value})
        return f"?{text}" if text else ""


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
    found = matching(figures, history, query)
    pages = max(1, -(-len(found) // PAGE_ROWS))
    query = replace(query, page=min(query.page, pages))
    first = (query.page - 1) * PAGE_ROWS
    return Overview(
        query=query,
        headings=tuple(_heading(query, name, column) for name, column in COLUMNS.items()),
        rows=tuple(found[first : first + PAGE_ROWS]),
        found=len(found),
        first=first + 1,
        statuses=Counter(view.status for view in views),
        duels=sum(view.duels for view in views),
        previous=replace(query, page=query.page - 1).address if query.page > 1 else None,
        next=replace(query, page=query.page + 1).address if query.page < pages else None,
    )


def matching(figures: Figures, history: History, query: Query) -> list[Row]:
    """All experiments that match a query, in its order."""
    views = (view for view in figures.experiments() if _matches(view, query))
    found = [_row(view, figures, history) for view in views]
    found.sort(key=COLUMNS["name"].order)
    if query.sort != "name" or query.descending:
        found.sort(key=COLUMNS[query.sort].order, reverse=query.descending)
    return found


def _matches(view: ExperimentView, query: Query) -> bool:
    if query.status and view.status != query.status:
        return False
    if not query.q:
        return True
    search = query.q.casefold()
    return search in view.name.casefold() or search in view.arms[view.champion].casefold()


def _row(view: ExperimentView, figures: Figures, history: History) -> Row:
    newest, outlook = history.newest(view.name), figures.outlook(view.name)
    if newest is None:
        return Row(view, None, None, outlook)
    return Row(view, newest.confidence, newest.progress, outlook)


def _heading(query: Query, name: str, column: Column) -> Heading:
    if query.sort != name:
        descending, order = column.largest_first, ""
    else:
        descending = not query.descending
        order = "descending" if query.descending else "ascending"
    link = replace(query, sort=name, descending=descending, page=1).address
    return Heading(name, column.heading, order, link)

"""All experiments at a glance: those that are asked for, a page at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from streamduel.monitoring.figures import Figures
from streamduel.monitoring.history import History
from streamduel.monitoring.page.freshness import last_record
from streamduel.monitoring.page.wording import address, at_least, count, legible
from streamduel.monitoring.views import ExperimentView

PAGE_ROWS: Final = 50
"""Experiments on a page: more than one looks through, and drawn in some milliseconds."""

MOST_SOUGHT: Final = 256
"""Characters of what is searched for: no name is longer."""

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
"""What the table can be sorted by, and the headings."""

_LARGEST_FIRST: Final = frozenset({"confidence", "duels", "epoch", "dead"})
"""Columns of which one wants to see the largest first."""


@dataclass(frozen=True)
class Wish:
    """Which experiments somebody wants to see.

    Attributes:
        q: part of the name or of the champion's.
        status: only those; all if empty.
        sort: a column.
        down: the largest first.
        page: from 1.
    """

    q: str = ""
    status: str = ""
    sort: str = "name"
    down: bool = False
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Wish:
        """What the address asks for; what makes no sense is as if it were not there.

        >>> Wish.of({"sort": "-duels", "page": "2", "status": "lost"})
        Wish(q='', status='', sort='duels', down=True, page=2)
        """
        sort, page, status = query.get("sort", ""), query.get("page", ""), query.get("status", "")
        column = sort.removeprefix("-")
        known = column in dict(COLUMNS)
        return cls(
            q=query.get("q", "")[:MOST_SOUGHT],
            status=status if status in STATUSES else "",
            sort=column if known else "name",
            down=known and sort.startswith("-"),
            page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 10 else 1,
        )

    @property
    def address(self) -> str:
        """The address that asks for it."""
        sort = f"{'-' if self.down else ''}{self.sort}"
        asked = {
            "q": self.q,
            "status": self.status,
            "sort": sort if sort != "name" else "",
            "page": str(self.page) if self.page > 1 else "",
        }
        text = urlencode({name: value for name, value in asked.items() if value})
        return f"/?{text}" if text else "/"


class Row(NamedTuple):
    """An experiment in the table."""

    name: str
    address: str
    status: str
    champion: str
    confidence: str
    sureness: float
    duels: str
    policy: str
    epoch: str
    seen: str
    dead: str


class Heading(NamedTuple):
    """A column's heading: its text, which way it is sorted, and the address that sorts by it."""

    column: str
    text: str
    sorted: str
    address: str


@dataclass(frozen=True)
class Overview:
    """What the page shows.

    Attributes:
        wish: what was asked for, with a page that there is.
        headings: of the table.
        rows: of the page.
        found: how many experiments fit the wish.
        first: the number of the first row.
        statuses: how many experiments have which status.
        duels: of all experiments.
        before: the address of the page before; None on the first.
        after: the address of the page after; None on the last.
    """

    wish: Wish
    headings: tuple[Heading, ...]
    rows: tuple[Row, ...]
    found: int
    first: int
    statuses: Mapping[str, int]
    duels: int
    before: str | None
    after: str | None


def overview(figures: Figures, history: History, wish: Wish) -> Overview:
    """The page that is asked for.

    Only what is at hand is shown of each: confidence is that of the last look, since to work it
    out for a thousand experiments would take a second.

    Args:
        figures: what is known.
        history: what was worked out.
        wish: what is asked for.
    """
    views = list(figures.experiments())
    found = sorted(
        (view for view in views if _fits(view, wish)),
        key=lambda view: (view.name.casefold(), view.name),
    )
    if wish.sort != "name" or wish.down:
        found.sort(key=_order(wish.sort, history), reverse=wish.down)
    pages = max(1, -(-len(found) // PAGE_ROWS))
    wish = replace(wish, page=min(wish.page, pages))
    first = (wish.page - 1) * PAGE_ROWS
    return Overview(
        wish=wish,
        headings=tuple(_heading(wish, column, text) for column, text in COLUMNS),
        rows=tuple(_row(view, figures, history) for view in found[first : first + PAGE_ROWS]),
        found=len(found),
        first=first + 1,
        statuses=Counter(view.status for view in views),
        duels=sum(view.duels for view in views),
        before=replace(wish, page=wish.page - 1).address if wish.page > 1 else None,
        after=replace(wish, page=wish.page + 1).address if wish.page < pages else None,
    )


def _fits(view: ExperimentView, wish: Wish) -> bool:
    if wish.status and view.status != wish.status:
        return False
    if not wish.q:
        return True
    sought = wish.q.casefold()
    return sought in view.name.casefold() or sought in view.arms[view.champion].casefold()


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
    """As of the last look; -1 before the first."""
    newest = history.newest(view.name)
    return newest.confidence if newest is not None else -1.0


def _heading(wish: Wish, column: str, text: str) -> Heading:
    if wish.sort != column:
        down, how = column in _LARGEST_FIRST, ""
    else:
        down, how = not wish.down, "descending" if wish.down else "ascending"
    return Heading(column, text, how, replace(wish, sort=column, down=down, page=1).address)


def _row(view: ExperimentView, figures: Figures, history: History) -> Row:
    confidence = _confidence(view, history)
    return Row(
        name=legible(view.name),
        address=address(view.name),
        status=view.status,
        champion=legible(view.arms[view.champion]),
        confidence=at_least(confidence) if confidence >= 0 else "…",
        sureness=100 * max(0.0, confidence),
        duels=count(view.duels),
        policy=view.policy if view.stage == view.policy else f"{view.policy}, now {view.stage}",
        epoch=count(view.epoch),
        seen=last_record(view, figures),
        dead=count(view.tallies["dead_letter"]),
    )

"""The table of experiments as CSV, for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from math import isnan
from typing import Final

from streamduel.monitoring.figures import Figures
from streamduel.monitoring.history import History
from streamduel.monitoring.page.overview import Query, Row, matching
from streamduel.spreadsheets import cell

COLUMNS: Final = (
    "experiment", "status", "champion", "decided", "confidence", "progress", "forecast_seconds",
    "duels", "arms", "policy", "epoch", "accepted", "dead_letters", "owner",
)  # fmt: skip


def experiments_csv(figures: Figures, history: History, query: Query) -> str:
    """All experiments that match a query, in its order, with a line of headings.

    Confidence and progress are those of the last update of the history, and empty before.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in matching(figures, history, query):
        writer.writerow(_cells(row, figures))
    return text.getvalue()


def _cells(row: Row, figures: Figures) -> Iterator[object]:
    view, progress = row.view, row.progress
    forecast = figures.outlook(view.name).median
    yield cell(view.name)
    yield view.status
    yield cell(view.arms[view.champion])
    yield "" if progress is None else str(progress > 0).lower()
    yield "" if row.confidence is None else row.confidence
    yield "" if progress is None else progress
    yield "" if isnan(forecast) else forecast
    yield from (view.duels, len(view.arms), view.policy, view.epoch)
    yield from (view.tallies["accepted"], view.tallies["dead_letter"])
    yield cell((view.configured and view.configured.owner) or "")

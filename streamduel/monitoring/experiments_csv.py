"""The table of experiments as CSV, for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from math import isnan
from typing import Final

from streamduel.monitoring.figures import Figures
from streamduel.monitoring.history import History
from streamduel.monitoring.page.overview import Query, Row, matching
from streamduel.spreadsheets import cell

COLUMNS: Final[dict[str, Callable[[Row], object]]] = {
    "experiment": lambda row: cell(row.view.name),
    "status": lambda row: row.view.status,
    "champion": lambda row: cell(row.view.arms[row.view.champion]),
    "decided": lambda row: None if row.decided is None else str(row.decided).lower(),
    "confidence": lambda row: row.confidence,
    "progress": lambda row: row.progress,
    "forecast_seconds": lambda row: None if isnan(row.outlook.median) else row.outlook.median,
    "duels": lambda row: row.view.duels,
    "arms": lambda row: len(row.view.arms),
    "policy": lambda row: row.view.policy,
    "epoch": lambda row: row.view.epoch,
    "accepted": lambda row: row.view.tallies["accepted"],
    "dead_letters": lambda row: row.view.tallies["dead_letter"],
    "owner": lambda row: cell((row.view.configured and row.view.configured.owner) or ""),
}
"""Each column with what it has of an experiment; None leaves the cell empty."""


def experiments_csv(figures: Figures, history: History, query: Query) -> str:
    """All experiments that match a query, in its order, with a line of headings.

    Confidence and progress are those of the last update of the history, and empty before.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in matching(figures, history, query):
        writer.writerow(read(row) for read in COLUMNS.values())
    return text.getvalue()

"""The pairs of an analysis as CSV, for spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import Final

from streamduel.analysis.report import Analysis
from streamduel.spreadsheets import cell

HEADER: Final = (
    "experiment", "a", "b", "duels", "wins_a", "wins_b", "ties", "win_rate", "low", "high",
)  # fmt: skip


def pairs_csv(analysis: Analysis) -> str:
    """A row for each pair of each experiment."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for name, experiment in analysis.experiments.items():
        for pair in experiment.pairs:
            writer.writerow(
                [cell(name), cell(pair.a), cell(pair.b), pair.duels, pair.wins_a, pair.wins_b,
                 pair.ties, pair.win_rate, *pair.interval]
            )  # fmt: skip
    return text.getvalue()

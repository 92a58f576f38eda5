"""Duels over time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from streamduel.analysis.counting import Rules, that_count
from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.report import Day

DAY_MS: Final = 86_400_000

MAX_PERIODS: Final = 60
"""Rows of the table and points of the plot; longer experiments have periods of several days."""


def days(engine: Engine, experiment: str, leader: int, credit: str, rules: Rules) -> list[Day]:
    """The duels of each day, or of several days together.

    Args:
        engine: with the view `scored`.
        experiment: its name.
        leader: the arm whose win rate is shown.
        credit: the credit function.
        rules: which ties count.
    """
    where = (
        f"experiment = {quoted(experiment)} AND i <> j AND ts IS NOT NULL"
        f" AND {that_count(credit, rules)}"
    )
    first, last = engine.rows(f"SELECT min(ts), max(ts) FROM scored WHERE {where}")[0]
    if first is None:
        return []
    start = first // DAY_MS
    width = -(-(last // DAY_MS - start + 1) // MAX_PERIODS)
    rows = engine.rows(
        f"""
        SELECT (ts // {DAY_MS} - {start}) // {width} AS period, sum(n),
            sum(n) FILTER (i = {leader} OR j = {leader}),
            sum(n * CASE WHEN i = {leader} THEN {credit} ELSE 2 - {credit} END)
                FILTER (i = {leader} OR j = {leader}) / 2
        FROM scored WHERE {where} GROUP BY period ORDER BY period
        """
    )
    return [
        Day(_date(start + period * width), int(n), float(won) / float(own) if own else None)
        for period, n, own, won in rows
    ]


def _date(day: int) -> str:
    """The date of a day since 1970; a log may contain any time.

    >>> _date(20717)
    '2026-09-21'
    """
    try:
        return f"{datetime.fromtimestamp(day * DAY_MS / 1000, UTC):%Y-%m-%d}"
    except (ValueError, OverflowError, OSError):
        return f"day {day}"

"""Duels over time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from streamduel.analysis.counting import Rules, that_count
from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.report import Day
from streamduel.preference.arrays import Floats

DAY_MS: Final = 86_400_000

MAX_PERIODS: Final = 60
"""Rows of the table and points of the plot; longer experiments have periods of several days."""


def most_met(wins: Floats, arm: int) -> int:
    """The opponent with which an arm has most duels."""
    duels = wins[arm] + wins[:, arm]
    duels[arm] = -1
    return int(duels.argmax())


def days(
    engine: Engine, experiment: str, pair: tuple[int, int], credit: str, rules: Rules
) -> list[Day]:
    """The duels of each day, or of several days together.

    Args:
        engine: with the view `scored`.
        experiment: its name.
        pair: the arm whose win rate is shown, and its opponent. A policy chooses ever stronger
            opponents: a rate against all of them would fall, whatever users prefer.
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
    leader, opponent = pair
    own = f"i IN ({leader}, {opponent}) AND j IN ({leader}, {opponent})"
    start = first // DAY_MS
    width = -(-(last // DAY_MS - start + 1) // MAX_PERIODS)
    rows = engine.rows(
        f"""
        SELECT (ts // {DAY_MS} - {start}) // {width} AS period, sum(n),
            sum(n) FILTER ({own}),
            sum(n * CASE WHEN i = {leader} THEN {credit} ELSE 2 - {credit} END) FILTER ({own}) / 2
        FROM scored WHERE {where} GROUP BY period ORDER BY period
        """
    )
    return [
        Day(_date(start + period * width), int(n), float(won) / float(met) if met else None)
        for period, n, met, won in rows
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

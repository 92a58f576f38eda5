"""Which column of lists has the id that their clicks name: other ids may be those of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from streamduel.analysis.engine import Engine
from streamduel.analysis.fields import plain
from streamduel.analysis.names import NAMES

FIRST: Final = 10_000
"""Clicks that are looked at."""


def id_columns(columns: Sequence[str]) -> list[str]:
    """The columns that may have the id of a list, usual names first.

    >>> id_columns(["query", "_id", "query_id"])
    ['_id', 'query_id']
    """
    return [column for word in NAMES["id"] for column in columns if plain(column) == word]


def best_id(
    engine: Engine,
    columns: Sequence[str],
    lists: Callable[[str], str],
    clicks: Callable[[str], str],
) -> str:
    """The column whose values in lists are those that most clicks name; the first one of several.

    Args:
        engine: for reading.
        columns: that may have the ids.
        lists: for a column, the query of its values `x` in lists.
        clicks: for a column, the query of the values `x` that clicks name.
    """

    def matches(column: str) -> int:
        (found,) = engine.rows(
            f"SELECT count(*) FROM (SELECT x FROM ({clicks(column)}) LIMIT {FIRST})"
            f" WHERE x IN (SELECT x FROM ({lists(column)}) WHERE x IS NOT NULL)"
        )[0]
        return int(found)

    return columns[0] if len(columns) == 1 else max(columns, key=matches)

"""Columns that may say how often each row of a table occurred."""

from __future__ import annotations

from typing import Final

from streamduel.analysis.engine import Engine, name
from streamduel.analysis.fields import OF_LISTS, plain
from streamduel.analysis.kinds import Source
from streamduel.errors import ConfigurationError

NAMES: Final = frozenset(
    start + word + end
    for word in ("row", "duel", "comparison", "occurrence", "vote", "judgment", "judgement")
    for start, end in (("", "s"), ("n", "s"), ("num", "s"), ("numberof", "s"), ("", "count"))
) | {"count", "counts", "countstar", "cnt", "n", "num", "freq", "frequency", "times"}  # fmt: skip
"""Names of such columns, in lower case and without separators."""


def check_row_counts(engine: Engine, source: Source) -> None:
    """Refuse a table with such a column; if its rows have ids or clients, let a check warn.

    Rows with ids are single events, and the column is probably about something else.

    Raises:
        ConfigurationError: there is such a column, and no id.
    """
    fields, table = source.columns.fields, source.table
    if "wins_a" in fields or not OF_LISTS & fields.keys():
        return
    used = {*fields.values(), *source.columns.segments}
    found = [each for each in table.columns if plain(each) in NAMES and each not in used]
    found = [each for each in found if "." not in each and _counts(engine, source, each)]
    if not found:
        return
    column = found[0]
    sentence = f"'{column}' of '{table.where}' may be how often each row occurred"
    if {"id", "client"} & fields.keys():
        engine.rows(
            "INSERT INTO readings VALUES ('counts', 'warning', ?)",
            [f"{sentence}, but each counts once."],
        )
        return
    log = "LOG" if table.where == "the query" else table.where
    written = column if column.isidentifier() else name(column)
    raise ConfigurationError(
        f'{sentence}. Repeat each row as often, with --sql "SELECT * EXCLUDE ({written}, range)'
        f" FROM '{log}', range({written})\"; if it is something else, leave it out, with --sql"
        f" \"SELECT * EXCLUDE ({written}) FROM '{log}'\"."
    )


def _counts(engine: Engine, source: Source, column: str) -> bool:
    """Whether all values are whole numbers, but not all of them 1, nor numbers of the rows."""
    (found,) = engine.rows(
        f"SELECT bool_and(coalesce(x >= 0, false)) AND max(x) > 1 AND NOT (count(DISTINCT x) ="
        f" count(*) AND max(x) - min(x) = count(*) - 1 AND count(*) > 2) FROM (SELECT"
        f" whole({source.table.text(column)}) AS x FROM {source.table.relation})"
    )[0]
    return bool(found)

"""Columns with the name of a field that tell nothing: each row has the same word, or none."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamduel.analysis.engine import Engine, name
from streamduel.analysis.fields import Chosen, find_columns, plain
from streamduel.analysis.names import NAMES, RANKERS
from streamduel.analysis.tables import Table

TELLING: Final = frozenset({*NAMES["winner"], *NAMES["teams"]})
"""Names of fields that have at least two values, such as `result`; some logs have it `ok`."""

EITHER: Final = (frozenset({*RANKERS, "team", "source", "origin"}), frozenset(NAMES["action"]))
"""Names for the same thing: if one column has several values, the others tell nothing."""

FIRST: Final = 10_000
"""Rows that are looked at."""


def without_dull(engine: Engine, table: Table, chosen: Chosen) -> Table:
    """The table without the columns that tell nothing and that a field may be looked for in."""
    fields = find_columns(list(table.columns), chosen, typed=False).fields
    kept = {*chosen.wanted, *(fields.get(side, "") for side in ("a", "b"))}
    names = {
        column: plain(column)
        for column in table.columns
        if column not in kept and plain(column) in TELLING.union(*EITHER)
    }
    if not names:
        return table
    rankers = [table.text(fields[side]) for side in ("a", "b") if side in fields]
    values = ", ".join(
        f"count(DISTINCT {table.text(column)}), min({table.text(column)})" for column in names
    )
    arms = f"list_distinct(flatten([{', '.join(f'list({each})' for each in rankers)}]))"
    first = f"(SELECT * FROM {table.relation} LIMIT {FIRST})"
    row = engine.rows(f"SELECT {arms if rankers else '[]'}, {values} FROM {first}")[0]
    found = dict(zip(names, zip(row[1::2], row[2::2], strict=True), strict=True))
    varied = {names[column] for column, (count, _) in found.items() if count > 1}
    dull = [
        column
        for column, (count, value) in found.items()
        if count <= 1
        and (
            any(names[column] in same and same & varied for same in EITHER)
            or (names[column] in TELLING and _tells_nothing(engine, value, row[0]))
        )
    ]
    if not dull:
        return table
    left = {column: kind for column, kind in table.columns.items() if column not in dull}
    outer = [name(column) for column in dull if not table.is_json and "." not in column]
    without = f"(SELECT * EXCLUDE ({', '.join(outer)}) FROM {table.relation})"
    return replace(table, relation=without if outer else table.relation, columns=left)


def _tells_nothing(engine: Engine, value: str | None, arms: list[str]) -> bool:
    """Whether the one value of a column is no side, ranker, tie, number or array."""
    if value is None or value in arms:
        return value is None
    (is_word,) = engine.rows(
        "SELECT len(entries(x)) = 1 AND side_of(x, NULL, NULL, false) = '?' AND flag(x) IS NULL"
        " AND winner_of(x, NULL, NULL, false) IS NULL AND try_cast(x AS DOUBLE) IS NULL"
        " FROM (SELECT ? AS x)",
        [value],
    )[0]
    return bool(is_word)

"""Columns with the name of a field that have the same word, or none, in each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from streamduel.analysis.control_rows import COLUMNS, has_controls
from streamduel.analysis.engine import Engine, name
from streamduel.analysis.fields import Chosen, find_columns, plain
from streamduel.analysis.names import NAMES, RANKERS
from streamduel.analysis.tables import Table

AMBIGUOUS: Final = frozenset(
    {
        "result", "outcome", "choice", "vote", "verdict", "team", "assignment", "assignments",
        "attribution", "interleaving", "sources",
    }
)  # fmt: skip
"""Names of winners and teams that logs also use for other things, such as `result` with `ok`."""

SYNONYMS: Final = (frozenset({*RANKERS, "team", "source", "origin"}), frozenset(NAMES["action"]))
"""Names for the same thing: if one column has several values, constant ones tell nothing."""

FIRST: Final = 10_000
"""Rows whose rankers are looked at."""


def without_constants(engine: Engine, table: Table, chosen: Chosen) -> Table:
    """The table without constant columns that would be taken for a field."""
    fields = find_columns(list(table.columns), chosen, typed=False).fields
    kept = {*chosen.wanted, *(fields.get(side, "") for side in ("a", "b"))}
    if has_controls(engine, table):
        kept.update(COLUMNS)
    names = {
        column: plain(column)
        for column in table.columns
        if column not in kept and plain(column) in AMBIGUOUS.union(*SYNONYMS)
    }
    if not names:
        return table
    values = ", ".join(f"min({table.text(column)}), max({table.text(column)})" for column in names)
    # All rows: clicks may be the last ones.
    total, *row = engine.rows(f"SELECT count(*), {values} FROM {table.relation}")[0]
    if not total:
        return table
    found = dict(zip(names, zip(row[::2], row[1::2], strict=True), strict=True))
    varied = {names[column] for column, (least, most) in found.items() if least != most}
    arms = [table.text(fields[side]) for side in ("a", "b") if side in fields]
    constant = [
        column
        for column, (least, most) in found.items()
        if least == most
        and (
            any(names[column] in same and same & varied for same in SYNONYMS)
            or (names[column] in AMBIGUOUS and _tells_nothing(engine, least, table, arms))
        )
    ]
    if not constant:
        return table
    left = {column: kind for column, kind in table.columns.items() if column not in constant}
    outer = [name(column) for column in constant if not table.is_json and "." not in column]
    without = f"(SELECT * EXCLUDE ({', '.join(outer)}) FROM {table.relation})"
    return replace(table, relation=without if outer else table.relation, columns=left)


def _tells_nothing(engine: Engine, value: str | None, table: Table, arms: Sequence[str]) -> bool:
    """Whether the one value of a column is no side, ranker, tie, number or array."""
    if value is None:
        return True
    if arms:
        lists = ", ".join(f"list(DISTINCT {arm})" for arm in arms)
        first = f"(SELECT * FROM {table.relation} LIMIT {FIRST})"
        (known,) = engine.rows(f"SELECT flatten([{lists}]) FROM {first}")[0]
        if value in known:
            return False
    (is_word,) = engine.rows(
        "SELECT len(entries(x)) = 1 AND side_of(x, NULL, NULL, false) = '?' AND flag(x) IS NULL"
        " AND winner_of(x, NULL, NULL, false) IS NULL AND try_cast(x AS DOUBLE) IS NULL"
        " FROM (SELECT ? AS x)",
        [value],
    )[0]
    return bool(is_word)

"""The column of the teams, where its name does not say that it has them."""

from __future__ import annotations

from typing import Final

from streamduel.analysis.engine import Engine
from streamduel.analysis.fields import Chosen, find_columns
from streamduel.analysis.tables import SAMPLE, Table

MAX_COLUMNS: Final = 100
"""Columns that are looked at."""

SHARE: Final = 0.5
"""Share of the rows with a value whose value has both teams. Rows of clicks have none."""


def with_teams(engine: Engine, table: Table, chosen: Chosen) -> Chosen:
    """The columns chosen, and that of the teams if a column has nothing else.

    Its values name the two sides, or the two rankers of the row, one for each rank. A column of a
    single word, such as `source`, has no teams, whatever it is called.
    """
    found = find_columns(list(table.columns), chosen, typed=False)
    fields = found.fields
    clicks = fields.keys() & {"clicks", "clicked_docs", "rank", "doc"}
    if not clicks or fields.keys() & {"teams", "winner"}:
        return chosen
    used = {*fields.values(), *found.segments}
    columns = [each for each in table.columns if each not in used][:MAX_COLUMNS]
    if not columns:
        return chosen
    a, b = (table.text(fields[side]) if side in fields else "NULL" for side in ("a", "b"))
    docs = table.text(fields["docs"]) if "docs" in fields else "NULL"
    counts = ", ".join(
        f"count(nullif(x{n}, '')), coalesce(sum(has_teams(x{n}, a, b, docs)::INTEGER), 0),"
        f" coalesce(bool_and(are_teams(x{n}, a, b)), false)"
        for n in range(len(columns))
    )
    texts = ", ".join(f"{table.text(column)} AS x{n}" for n, column in enumerate(columns))
    row = engine.rows(
        f"SELECT {counts} FROM (SELECT {texts}, {a} AS a, {b} AS b, {docs} AS docs"
        f" FROM {table.relation} LIMIT {SAMPLE})"
    )[0]
    for column, total, both, only in zip(columns, row[::3], row[1::3], row[2::3], strict=True):
        if only and both > SHARE * total:
            return chosen.plus("teams", column)
    return chosen

"""Columns that may hold the clients of a log, beside the one that is taken for them."""

from __future__ import annotations

from typing import Final

from streamduel.analysis.engine import Engine
from streamduel.analysis.fields import OF_LISTS, plain
from streamduel.analysis.kinds import Source
from streamduel.analysis.names import NAMES, SEGMENTS
from streamduel.analysis.tables import INNER

FIRST: Final = 100_000
"""Rows that are looked at."""

MAX_COLUMNS: Final = 50
"""Columns that are looked at."""

MIN_CLIENTS: Final = 20
"""Different values, from which on a column may hold clients, and no kinds of anything."""

SHARE_OF_REPEATED: Final = 0.1
"""Share of the rows whose value is in an earlier row: almost unique values are ids of the rows."""

IDS: Final = ("id", "key", "hash", "guid", "token", "user", "ip")
"""Ends of names whose numbers may be clients; other numbers are amounts."""

OTHERS: Final = (
    "query", "search", "keyword", "doc", "item", "product", "sku", "categor", "store", "page",
    "url", "referr", "test", "experiment", "model", "ranker", "version", "bucket", "host", "server",
    "request", "list", "click", "score", "time", "date", "price", "brand", "city", "zip", "region",
    "agent", "prompt", "question", "topic",
)  # fmt: skip
"""Parts of names of what is no client."""


def find_other_clients(engine: Engine, source: Source) -> None:
    """Write columns that may hold clients to `other_clients`.

    They have a usual name, if another column with one is taken for the clients; if there is none,
    their values repeat.
    """
    fields, columns = source.columns.fields, source.table.columns
    if not OF_LISTS & fields.keys():
        return
    used = {*fields.values(), *source.columns.segments}
    free = [column for column in columns if column not in used]
    if "client" in fields:
        objects = {each.rsplit(".", 1)[0] for each, kind in columns.items() if kind == INNER}
        inside = f"{fields['client']}."
        found = [
            column
            for column in free
            if plain(column) in NAMES["client"]
            and column not in objects
            and not column.startswith(inside)
        ]
    else:
        known = {*SEGMENTS, *(name for names in NAMES.values() for name in names)}
        unknown = [column for column in free if plain(column) not in known]
        unknown = [each for each in unknown if not any(it in plain(each) for it in OTHERS)]
        found = _repeating(engine, source, unknown[:MAX_COLUMNS])
    for column in found:
        engine.rows("INSERT INTO other_clients VALUES (?)", [column])


def _repeating(engine: Engine, source: Source, columns: list[str]) -> list[str]:
    """The columns whose values are single words that repeat, such as ids of clients."""
    if not columns:
        return []
    values = ", ".join(f"{source.table.text(each)} AS c{i}" for i, each in enumerate(columns))
    parts = ", ".join(
        f"count(c{i}), count(DISTINCT hash(c{i})) FILTER (c{i} IS NOT NULL),"
        f" bool_and(try_cast(c{i} AS DOUBLE) IS NOT NULL),"
        f" bool_and(regexp_full_match(c{i}, '[^\\s\\[{{]{{1,128}}')"
        f" AND try_cast(c{i} AS TIMESTAMP) IS NULL)"
        for i in range(len(columns))
    )
    (row,) = engine.rows(
        f"SELECT {parts} FROM (SELECT {values} FROM {source.table.relation} LIMIT {FIRST})"
    )
    found = []
    for i, column in enumerate(columns):
        rows, different, are_numbers, are_words = row[4 * i : 4 * i + 4]
        if different < MIN_CLIENTS or rows - different < SHARE_OF_REPEATED * rows:
            continue
        if are_words and (not are_numbers or plain(column).endswith(IDS)):
            found.append(column)
    return found

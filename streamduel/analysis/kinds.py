"""Which kind of click log a table is: streamduel's own, that of another program, or neither."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from streamduel.analysis.engine import Engine, name
from streamduel.analysis.fields import Chosen, Columns, find_columns, own_columns, plain
from streamduel.analysis.tables import Table, sample, with_keys
from streamduel.config.section import MAX_ARMS
from streamduel.errors import ConfigurationError
from streamduel.record_rules import TYPES

Kind = Literal["own", "typed", "flat", "ubi", "solr"]

UBI_FIELDS: Final = frozenset(
    {"action_name", "query_response_hit_ids", "query_response_id", "query_attributes",
     "event_attributes", "user_query"}
)  # fmt: skip
"""Fields of the queries and events of UBI; one of them and `query_id` are enough."""

FOREIGN_SHARE: Final = 0.1
"""Share of the first rows that must be of another program; files for the bulk interface have a line
without fields before each row."""

NUMBERS_OF_SIDES: Final = 10_000
"""Rows in which the names of the sides are looked for."""

MAX_UNNAMED: Final = 50
"""Columns in which the names of the rankers are looked for."""

WINNERS: Final = (
    {1.0: "a", 0.0: "t", 2.0: "b"},
    {1.0: "a", 2.0: "b"},
    {1.0: "a", 0.0: "t", -1.0: "b"},
    {1.0: "a", -1.0: "b"},
    {1.0: "a", 0.5: "t", 0.0: "b"},
)
"""What numbers may mean as winners; the last is the outcome of side a."""


@dataclass(frozen=True)
class Source:
    """A table with the meaning of its columns.

    Attributes:
        table: the rows.
        kind: own: streamduel's records; typed: these with other names; flat: one kind of record
            without type; ubi, solr: to be translated.
        columns: where the fields are.
        sample: some of its rows.
        unnamed: the text that rows without an experiment's name have instead.
        sides_only: whether of each list only the clicks of each side are known.
        chosen: the fields whose columns the user has named.
    """

    table: Table
    kind: Kind
    columns: Columns
    sample: Sequence[dict[str, Any]]
    unnamed: str = ""
    sides_only: bool = False
    chosen: frozenset[str] = frozenset()


def source(engine: Engine, table: Table, chosen: Chosen) -> Source:
    """Find out what a table contains.

    Raises:
        ConfigurationError: nothing in it is recognised.
    """
    rows = [row for text in sample(engine, table) if (row := decoded(text)) is not None]
    kind = _foreign(rows)
    if kind is not None:
        return Source(table, kind, Columns({}, []), rows)
    if table.is_json and _typed(rows, chosen.columns.get("type", "type")):
        return Source(table, "own", own_columns(chosen), rows)
    if table.is_json:
        table = with_keys(engine, table)
    if not table.columns:
        raise ConfigurationError(f"'{table.where}' has no JSON object and no column.")
    typed, names = None, list(table.columns)
    columns = find_columns(names, chosen, typed=False)
    if "impression" not in columns.fields:  # no log of clicks alone, with a type of each event
        typed = _type_column(names, rows, chosen)
        columns = find_columns(names, chosen, typed=typed is not None)
    if typed is not None:
        columns.fields["type"] = typed
    else:
        columns.fields.pop("type", None)
    _check(table, columns)
    given = frozenset(chosen.columns)
    return Source(table, "flat" if typed is None else "typed", columns, rows, chosen=given)


def decoded(text: str | bytes) -> dict[str, Any] | None:
    """A row; None if it is no object of JSON, or nested too deeply.

    Tables and Python write NaN and Infinity, which only the slower `json` reads.

    >>> decoded('{"a": NaN}'), decoded('{"a": 1,}')
    ({'a': nan}, None)
    """
    for decode in (msgspec.json.decode, json.loads):
        with contextlib.suppress(ValueError, RecursionError):
            row = decode(text)
            return row if isinstance(row, dict) else None
    return None


def _foreign(rows: Sequence[dict[str, Any]]) -> Literal["ubi", "solr"] | None:
    """The other program whose log this is."""
    found = {"ubi": 0, "solr": 0}
    for row in rows:
        record = row["_source"] if isinstance(row.get("_source"), dict) else row
        own = "a" in record or "impression" in record
        if "query_id" in record and UBI_FIELDS & record.keys() and not own:
            found["ubi"] += 1
        elif record.get("type") in {"response", "click"} and "query_id" in record and not own:
            found["solr"] += 1
    if found["ubi"] > FOREIGN_SHARE * len(rows):
        return "ubi"
    return "solr" if found["solr"] > FOREIGN_SHARE * len(rows) else None


def _typed(rows: Sequence[dict[str, Any]], column: str) -> bool:
    """Whether most rows name a type of streamduel's records."""
    known = sum(str(row.get(column)).lower() in TYPES for row in rows)
    return 0 < len(rows) < 2 * known


def _type_column(
    columns: Sequence[str], rows: Sequence[dict[str, Any]], chosen: Chosen
) -> str | None:
    """The column that names each record's type."""
    if "type" in chosen.columns:
        return chosen.columns["type"] if chosen.columns["type"] in columns else None
    named = [
        each for each in columns
        if plain(each) in {"type", "recordtype", "kind", "eventtype", "event"}
    ]  # fmt: skip
    return next((each for each in named if _typed(rows, each)), None)


def _check(table: Table, columns: Columns) -> None:
    """Refuse a table in which no duel and no click can be found."""
    there = columns.fields.keys()
    duels = (
        {"winner", "teams", "won_a", "won_b"} & there
        or {"wins_a", "wins_b"} <= there
        or {"clicks_a", "clicks_b"} <= there
    )
    clicks = "impression" in there and bool({"rank", "doc"} & there)
    if duels or clicks or "type" in there:
        return
    listed = ", ".join(list(table.columns)[:20])
    raise ConfigurationError(
        f"nothing in '{table.where}' is recognised: it needs a winner, teams and clicks, or wins_a"
        f" and wins_b. Name the columns with --map FIELD=COLUMN, such as --map winner=COLUMN; they"
        f" are {listed}."
    )


def numbers_of_winners(engine: Engine, source: Source, named: str) -> dict[str, str]:
    """What numbers in `winner` mean: a, b or t for a tie; empty if there are none.

    Args:
        engine: with the log.
        source: with a column of winners.
        named: whether a winner is the name of a ranker, in SQL.

    Raises:
        ConfigurationError: the numbers can be read in two ways.
    """
    column = source.columns.fields["winner"]
    rows = engine.rows(
        f"SELECT DISTINCT x FROM (SELECT try_cast({source.table.text(column)} AS DOUBLE) AS x FROM"
        f" (SELECT * FROM {source.table.relation} LIMIT {NUMBERS_OF_SIDES}) WHERE NOT"
        f" coalesce({named}, false)) WHERE x IS NOT NULL ORDER BY x LIMIT 10"
    )
    found = {float(x) for (x,) in rows}
    for meaning in WINNERS:
        if found == meaning.keys():
            return {f"{x:g}": side for x, side in meaning.items()}
    if found and found <= {0.0, 1.0}:
        raise ConfigurationError(
            f"'{column[:80]}' of '{source.table.where}' has the winners 0 and 1, which can be read"
            " in two ways; write 'a' and 'b' instead, in the file or with --sql."
        )
    return {}


def sides(engine: Engine, source: Source) -> tuple[str, str]:
    """The two arms of a log that does not name them in columns: those of `teams` or `winner`.

    Raises:
        ConfigurationError: there are more than two, or they may be in other columns.
    """
    fields, table = source.columns.fields, source.table
    field = "teams" if "teams" in fields else "winner" if "winner" in fields else None
    if field is None:
        if {"wins_a", "won_a", "won_b", "clicks_a"} & fields.keys():
            _check_unnamed(engine, source)
        return "a", "b"
    text = table.text(fields[field])
    values = f"unnest(entries({text}))" if field == "teams" else text
    found = engine.rows(
        f"SELECT DISTINCT x FROM (SELECT {values} AS x FROM (SELECT * FROM {table.relation}"
        f" LIMIT {NUMBERS_OF_SIDES})) WHERE side_of(x, NULL, NULL, false) = '?'"
        " AND winner_of(x, NULL, NULL, false) IS NULL ORDER BY x LIMIT 4"
    )
    names = [str(x) for (x,) in found]
    if not names:
        _check_unnamed(engine, source)
        return "a", "b"
    if len(names) == 2:
        return names[0], names[1]
    raise ConfigurationError(
        f"{name(fields[field])} of '{table.where}' names {', '.join(names)}; with other than two "
        "rankers, name the columns of the two in each row: --map a=COLUMN --map b=COLUMN."
    )


def _check_unnamed(engine: Engine, source: Source) -> None:
    """Refuse to compare the sides of a log if other columns may name the rankers.

    A user who has named the column of the sides wants to compare sides.

    Raises:
        ConfigurationError: there are such columns.
    """
    table, used = source.table, {*source.columns.fields.values(), *source.columns.segments}
    others = [column for column in table.columns if column not in used][:MAX_UNNAMED]
    if not others or source.chosen & {"teams", "winner", "wins_a", "won_a", "won_b", "clicks_a"}:
        return
    values = ", ".join(f"list(DISTINCT {table.text(column)})" for column in others)
    (row,) = engine.rows(
        f"SELECT {values} FROM (SELECT * FROM {table.relation} LIMIT {NUMBERS_OF_SIDES})"
    )
    found = [column for column, each in zip(others, row, strict=True) if _may_be_rankers(each)]
    if found:
        listed = ", ".join(f"'{column[:80]}'" for column in found[:10])
        raise ConfigurationError(
            f"'{table.where}' names only sides in the columns that are recognised. If the rankers"
            f" are in {listed}, name their columns: --map a=COLUMN --map b=COLUMN; to compare"
            " sides, name the column of the winner: --map winner=COLUMN."
        )


def _may_be_rankers(values: Sequence[str] | None) -> bool:
    """Whether the distinct values of a column may be names of rankers."""
    names = [text for text in values or () if text and not _is_number(text) and text[0] != "{"]
    return 2 <= len(names) <= MAX_ARMS


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text.lower() in {"true", "false"}
    return True

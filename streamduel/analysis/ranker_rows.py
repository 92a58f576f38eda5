"""Lists with a row for each of their two rankers: its clicks, its score, or whether it has won."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from streamduel.analysis.engine import Engine, name
from streamduel.analysis.fields import Chosen, find_columns, plain
from streamduel.analysis.list_ids import id_columns
from streamduel.analysis.names import RANKERS
from streamduel.analysis.ranker_objects import NUMBERS, score_of
from streamduel.analysis.tables import Table
from streamduel.errors import ConfigurationError

RANKER: Final = (*(it + end for it in RANKERS for end in ("", "name", "id")), "team")
"""What logs call the column of the ranker."""

SHARE: Final = 0.9
"""Share of the lists that must have two rankers, each with one number."""

FIRST: Final = 200_000
"""Of a table with so many rows, one list in 64 is looked at; its rows may be anywhere."""


class Parts(NamedTuple):
    """The columns of a row for each ranker.

    Attributes:
        id: of the list.
        ranker: of the ranker.
        number: of its clicks or its score.
        field: "clicks" or "score".
    """

    id: str
    ranker: str
    number: str
    field: str


def find_ranker_rows(engine: Engine, table: Table, chosen: Chosen) -> Parts | None:
    """The columns of a row for each ranker; None if the rows are something else.

    Raises:
        ConfigurationError: too many lists lack the number of one of their rankers.
    """
    names = {plain(column): column for column in reversed(table.columns)}
    ids = [each for each in table.columns if each == chosen.columns.get("id")] or id_columns(
        list(table.columns)
    )
    ranker = next((names[each] for each in RANKER if each in names), None)
    numbers = [(field, names[each]) for field, words in NUMBERS for each in words if each in names]
    if not ids or ranker is None or not numbers:
        return None
    used = {*ids, ranker, *(column for _, column in numbers)}
    others = [column for column in table.columns if column not in used]
    told = find_columns(others, chosen, typed=False)
    if told.tell_winners or {"a", "b", "rank", "doc"} & told.fields.keys():
        return None
    # An id may be that of a row, and a number that of the list.
    incomplete = None
    for parts in (Parts(each, ranker, number, field) for field, number in numbers for each in ids):
        share, differ, one_only = _look(engine, table, parts)
        if share >= SHARE and differ and one_only <= 1 - SHARE:
            return parts
        if share >= SHARE and one_only:
            incomplete = incomplete or parts
    if incomplete is not None:
        raise ConfigurationError(
            f"'{incomplete.number[:80]}' of '{table.where}' must have a number for both rankers of"
            " a list (found one, and nothing); write 0 instead of nothing, in the file or with"
            " --sql."
        )
    return None


def _look(engine: Engine, table: Table, parts: Parts) -> tuple[float, bool, float]:
    """The share of lists with two rankers, whether numbers differ, and the share that lacks one."""
    id_, ranker, number = (table.text(each) for each in parts[:3])
    (total,) = engine.rows(f"SELECT count(*) FROM (SELECT 1 FROM {table.relation} LIMIT {FIRST})")[
        0
    ]
    few = f"AND hash({id_}) % 64 = 0" if total == FIRST else ""
    (share, differ, one_only) = engine.rows(
        "SELECT avg((rankers = 2 AND numbers = 2)::INTEGER), bool_or(lowest <> highest),"
        " avg((rankers = 2 AND known = 1)::INTEGER)"
        f" FROM (SELECT count(DISTINCT {ranker}) AS rankers, {_numbers(table, parts)} AS numbers,"
        f" count(DISTINCT {ranker}) FILTER (NOT is_nothing({number})) AS known,"
        f" min({number}) AS lowest, max({number}) AS highest"
        f" FROM {table.relation} WHERE NOT is_nothing({id_}) {few} GROUP BY {id_})"
    )[0]
    return share or 0.0, bool(differ), one_only or 0.0


def pairs_of_rows(engine: Engine, table: Table, parts: Parts) -> Table:
    """The table with a row for each list.

    Lists without two rankers, or with two numbers or none of one of them, get a row that cannot be
    used.
    """
    id_, ranker, number = (table.text(each) for each in parts[:3])
    if parts.field == "score":
        number = score_of(number)
    kept = [column for column in table.columns if column not in parts[1:3]]
    values = {name(column): f"min({table.text(column)})" for column in kept}
    usable = f"count(DISTINCT {ranker}) = 2 AND {_numbers(table, parts)} = 2"
    values |= {
        "a": f"CASE WHEN {usable} THEN min({ranker}) END",
        "b": f"CASE WHEN {usable} THEN max({ranker}) END",
        f"{parts.field}_a": f"arg_min_null({number}, {ranker})",
        f"{parts.field}_b": f"arg_max_null({number}, {ranker})",
    }
    selected = ", ".join(f"{value} AS {column}" for column, value in values.items())
    key = f"CASE WHEN is_nothing({id_}) THEN uuid()::VARCHAR ELSE {id_} END"
    relation = engine.keep(
        f"grouping {table.where} by list",
        f"SELECT {selected} FROM {table.relation} GROUP BY {key}",
    )
    columns = dict.fromkeys([*kept, *list(values)[len(kept) :]], "VARCHAR")
    return replace(table, relation=relation, columns=columns, is_json=False)


def _numbers(table: Table, parts: Parts) -> str:
    """How many numbers of rankers a list has, in SQL; rows that are sent again count once."""
    return f"count(DISTINCT ({table.text(parts.ranker)}, {table.text(parts.number)}))"

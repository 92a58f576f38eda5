"""Lists whose results are an array of objects, each with its team and whether it was clicked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamduel.analysis.engine import name, quoted
from streamduel.analysis.fields import CLICK_COUNTS, NAMES, RANKERS, plain
from streamduel.analysis.tables import OUTER, Table

TEAMS: Final = (
    "team",
    "source",
    *(it + end for it in RANKERS for end in ("", "name", "id")),
    "attribution",
)
"""What they call the team of a result."""

FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "teams": TEAMS,
    "clicks": (*NAMES["clicked"], *CLICK_COUNTS),
    "docs": (*NAMES["doc"], "id"),
    "rank": NAMES["rank"],
}
"""What they call the parts of a result."""


class Results(NamedTuple):
    """A column of arrays of objects.

    Attributes:
        column: its name.
        keys: of the objects, by what they hold: teams, clicks, docs, rank.
    """

    column: str
    keys: dict[str, str]


def find_results(rows: Sequence[Mapping[str, Any]]) -> Results | None:
    """The column whose objects name a team, by the first rows; None if there is none.

    >>> rows = [{"id": "q-1", "items": [{"item_id": "d", "team": "a", "is_clicked": True}]}]
    >>> find_results(rows)
    Results(column='items', keys={'teams': 'team', 'clicks': 'is_clicked', 'docs': 'item_id'})
    """
    for row in rows:
        for column, value in row.items():
            if not isinstance(value, list) or not value or not isinstance(value[0], dict):
                continue
            names = {plain(key): key for key in value[0]}
            found = {
                field: next((names[each] for each in known if each in names), None)
                for field, known in FIELDS.items()
            }
            if found["teams"] is not None:
                return Results(column, {field: key for field, key in found.items() if key})
    return None


def with_lists(table: Table, results: Results) -> Table:
    """The table with the teams, clicks and documents of the results as columns of their own."""
    lists = {field: _list(table, results, field) for field in results.keys if field != "rank"}
    columns = {key: kind for key, kind in table.columns.items() if key != results.column}
    if table.is_json:
        parts = ", ".join(f"{quoted(field)}, {value}" for field, value in lists.items())
        rows = (
            f"(SELECT json_merge_patch(json, json_object({parts})) AS json FROM {table.relation})"
        )
        return Table(rows, {**columns, **dict.fromkeys(lists, OUTER)}, True, table.where)
    excluded = [each for each in table.columns if each in {results.column, *lists}]
    kept = f"* EXCLUDE ({', '.join(map(name, excluded))})"
    added = ", ".join(f"{value}::VARCHAR AS {field}" for field, value in lists.items())
    rows = f"(SELECT {kept}, {added} FROM {table.relation})"
    return Table(rows, {**columns, **dict.fromkeys(lists, "VARCHAR")}, False, table.where)


def _list(table: Table, results: Results, field: str) -> str:
    """One part of all results as JSON, in the order of their ranks, in SQL."""
    found = f"from_json({table.text(results.column)}, '[\"JSON\"]')"
    if rank := results.keys.get("rank"):
        place = f"coalesce(whole({_value(rank)}), 0)"
        ranked = f"list_sort([{{'rank': {place}, 'x': x}} for x in {found}])"
        found = f"[ranked.x for ranked in {ranked}]"
    value = _value(results.keys[field])
    if field == "clicks":
        value = f"coalesce(flag({value}) OR whole({value}) > 0, false)"
    return f"to_json([{value} for x in {found}])"


def _value(key: str) -> str:
    path = '$."' + key.replace('"', '\\"') + '"'
    return f"(x ->> {quoted(path)})"

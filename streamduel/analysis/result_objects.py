"""Lists whose teams are in objects: one for each result, or one with the documents of each team."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from streamduel.analysis.engine import name, quoted
from streamduel.analysis.fields import plain
from streamduel.analysis.names import CLICK_COUNTS, DONE, NAMES, RANKERS, SIDES_A, SIDES_B
from streamduel.analysis.tables import OUTER, Table, path_of

TEAMS: Final = (
    "team",
    *(it + end for it in RANKERS for end in ("", "name", "id")),
    "source",
    *("source" + it for it in RANKERS),
    "attribution",
    "origin",
    "contributor",
)
"""What other programs call the team of a result."""

FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "teams": TEAMS,
    "clicks": (*NAMES["clicked"], *CLICK_COUNTS, *DONE),
    "docs": (*NAMES["doc"], "id"),
    "rank": NAMES["rank"],
}
"""What other programs call the parts of a result."""


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
            if plain(column) in {*NAMES["clicks"], *NAMES["clicked_docs"]}:
                continue  # of a list, these are only some
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
    return with_columns(table, lists, [results.column])


def with_columns(table: Table, added: Mapping[str, str], removed: Sequence[str]) -> Table:
    """The table with columns of JSON, in place of those of the same name and of others."""
    columns = {
        key: kind for key, kind in table.columns.items()
        if not any(key == each or key.startswith(f"{each}.") for each in removed)
    }  # fmt: skip
    if table.is_json:
        parts = ", ".join(f"{quoted(field)}, {value}" for field, value in added.items())
        rows = (
            f"(SELECT json_merge_patch(json, json_object({parts})) AS json FROM {table.relation})"
        )
        return Table(rows, {**columns, **dict.fromkeys(added, OUTER)}, True, table.where)
    excluded = [each for each in table.columns if each in {*removed, *added}]
    kept = f"* EXCLUDE ({', '.join(map(name, excluded))})" if excluded else "*"
    values = ", ".join(f"{value}::VARCHAR AS {field}" for field, value in added.items())
    rows = f"(SELECT {kept}, {values} FROM {table.relation})"
    return Table(rows, {**columns, **dict.fromkeys(added, "VARCHAR")}, False, table.where)


def find_teams(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """The columns of the teams and of the documents, where the documents are grouped by team.

    >>> find_teams([{"ranking": ["d1", "d2"], "teams": {"bm25": ["d2"], "ltr": ["d1"]}}])
    ('teams', 'ranking')
    """
    for row in rows:
        for column, value in row.items():
            if plain(column) not in NAMES["teams"] or not isinstance(value, dict):
                continue
            if len(value) != 2 or not all(isinstance(each, list) for each in value.values()):
                continue
            drawn = {str(doc) for docs in value.values() for doc in docs}
            for other, docs in row.items():
                if isinstance(docs, list) and drawn and drawn <= set(map(str, docs)):
                    return column, other
    return None


def find_team_lists(rows: Sequence[Mapping[str, Any]]) -> tuple[str, str, str] | None:
    """The columns of the documents of each side, and of all, where each team has a column.

    >>> find_team_lists([{"results": ["d1", "d2"], "team_a": ["d2"], "team_b": ["d1"]}])
    ('team_a', 'team_b', 'results')
    """
    for row in rows:
        lists = {plain(key): key for key, value in row.items() if isinstance(value, list)}
        for sides in zip(SIDES_A, SIDES_B, strict=False):
            a, b = (lists.get(f"team{side}", lists.get(f"{side}team")) for side in sides)
            if a is None or b is None:
                continue
            of_a, of_b = ({str(doc) for doc in row[each]} for each in (a, b))
            for other in lists.values():
                shown = set(map(str, row[other]))
                if other not in {a, b} and of_a and not of_a & of_b and of_a | of_b <= shown:
                    return a, b, other
    return None


def by_side(table: Table, a: str, b: str, docs: str) -> Table:
    """The table with the team of each rank in place of the documents of each side."""
    of_a, of_b = (f"list_contains(entries({table.text(each)}), doc)" for each in (a, b))
    value = (
        f"to_json([CASE WHEN {of_a} THEN 'a' WHEN {of_b} THEN 'b' END"
        f" for doc in entries({table.text(docs)})])"
    )
    return with_columns(table, {"teams": value, "docs": table.text(docs)}, [a, b, docs])


def by_rank(table: Table, teams: str, docs: str) -> Table:
    """The table with the team of each rank in place of the documents of each team.

    Teams that are numbered are the sides: 0 is a, and 1 is b.
    """
    objects = f"try_cast({table.text(teams)} AS JSON)"
    drawn = f"map_entries(try_cast({objects} AS MAP(VARCHAR, VARCHAR[])))"
    team = "CASE team.key WHEN '0' THEN 'a' WHEN '1' THEN 'b' ELSE team.key END"
    value = (
        f"to_json([[{team} for team in {drawn} if list_contains(team.value, doc)][1]"
        f" for doc in entries({table.text(docs)})])"
    )
    return with_columns(table, {"teams": value, "docs": table.text(docs)}, [teams, docs])


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
    return f"(x ->> {quoted(path_of(key))})"

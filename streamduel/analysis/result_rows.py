"""Lists with a row for each result: its team, its rank and whether it was clicked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from streamduel.analysis.engine import Engine, name, quoted
from streamduel.analysis.fields import Chosen, find_columns, plain
from streamduel.analysis.names import CLICK_COUNTS, DONE, NAMES, RANKERS
from streamduel.analysis.result_objects import TEAMS, Results, with_lists
from streamduel.analysis.tables import Table

FIELDS: Final[Mapping[str, tuple[Sequence[str], Sequence[str]]]] = {
    "id": (("id", "impression"), (*NAMES["impression"], *NAMES["id"])),
    "rank": (("rank",), (*NAMES["rank"], "place", "index", "idx")),
    "teams": (("teams",), TEAMS),
    "clicks": (("clicked", "clicks"), (*NAMES["clicked"], *CLICK_COUNTS, *DONE)),
    "docs": (("doc", "docs"), NAMES["doc"]),
    "experiment": (("experiment",), NAMES["experiment"]),
    "client": (("client",), NAMES["client"]),
}
"""Of each part of a row: the fields with which users name its column, and what others call it."""

OF_RANKERS: Final = frozenset(
    it + end for it in RANKERS if it != "side" for end in ("", "name", "id")
)
"""Names of columns that have rankers, and not sides."""

KEY: Final = ("id", "experiment", "client")
"""Parts that are equal in all rows of a list; the id alone may be that of a query."""

SHARE: Final = 0.9
"""Share of the rows that are results, and of their groups that are lists: the ranks differ, and
there are at most two teams."""

SHARE_OF_TWO_TEAMS: Final = 0.5
"""Share of the lists that have two: where each user sees the list of one ranker, none has."""

MAX_TEAMS: Final = 4
"""Columns that may have the teams, and are looked at one after the other."""

FIRST: Final = 200_000
"""Rows that are looked at. Of a table with more rows, one list in 64 is looked at."""


def find_rows(engine: Engine, table: Table, chosen: Chosen) -> dict[str, str] | None:
    """The column of each part of a row for each result; None if the rows are something else."""
    names = {plain(column): column for column in reversed(table.columns)}
    found: dict[str, str] = {}
    teams: list[str] = []
    for part, (fields, words) in FIELDS.items():
        given = [chosen.columns[field] for field in fields if field in chosen.columns]
        columns = [*given, *(names[word] for word in words if word in names)]
        free = [each for each in columns if each in table.columns and each not in found.values()]
        found.update([(part, each) for each in free[:1]])
        if part == "teams":
            teams = free[:MAX_TEAMS]
    if not {"id", "rank", "teams", "clicks"} <= found.keys():
        return None
    each_team = ({**found, "teams": column} for column in teams)  # `source` may be where users are
    return next((parts for parts in each_team if _are_lists(engine, table, parts)), None)


def _are_lists(engine: Engine, table: Table, parts: Mapping[str, str]) -> bool:
    rank, team, clicked = (table.text(parts[part]) for part in ("rank", "teams", "clicks"))
    one_team = f"len(entries(replace({team}, ' ', '_'))) = 1"  # names of rankers may have spaces
    total, results = engine.rows(
        f"SELECT count(*), count(*) FILTER (whole({rank}) IS NOT NULL AND {one_team}"
        f" AND (is_flag({clicked}) OR whole({clicked}) IS NOT NULL))"
        f" FROM (SELECT * FROM {table.relation} LIMIT {FIRST})"
    )[0]
    if not total or results < SHARE * total:
        return False
    few = f"WHERE hash({table.text(parts['id'])}) % 64 = 0" if total == FIRST else ""
    lists, contested = engine.rows(
        f"SELECT avg((ranks = results AND teams <= 2)::INTEGER), avg((teams = 2)::INTEGER) FROM"
        f" (SELECT count(DISTINCT {rank}) AS ranks, count(DISTINCT {team}) AS teams,"
        f" count(DISTINCT {_result(table, parts)}) AS results FROM {table.relation} {few}"
        f" GROUP BY {_key(table, parts)})"
    )[0]
    return (lists or 0.0) >= SHARE and contested >= SHARE_OF_TWO_TEAMS


def one_per_list(engine: Engine, table: Table, parts: Mapping[str, str], chosen: Chosen) -> Table:
    """The table with a row for each list, with its teams, clicks and documents as columns.

    If no columns name its two rankers, they are those of its results.

    Rows without an id, and results of a list that have the same rank, become lists that cannot be
    used, so that they are counted.
    """
    taken = {parts[part] for part in parts if part not in KEY}
    kept = [column for column in table.columns if column not in taken and column != "results"]
    values = {column: f"min({table.text(column)})" for column in kept}
    if _name_rankers(engine, table, parts) and not _has_pair(kept, chosen):
        team = _ranker(table, parts)
        values |= {"a": f"min({team})", "b": f"nullif(max({team}), min({team}))"}
    selected = ", ".join(f"{value} AS {name(column)}" for column, value in values.items())
    results = f"list(DISTINCT {_result(table, parts)})"
    usable = (
        f"NOT is_nothing(min({table.text(parts['id'])}))"
        f" AND count(DISTINCT {table.text(parts['rank'])}) = len({results})"
    )
    grouped = (
        f"(SELECT {selected}, CASE WHEN {usable} THEN to_json({results})::VARCHAR END AS results"
        f" FROM {table.relation} GROUP BY {_key(table, parts)})"
    )
    columns = dict.fromkeys([*values, "results"], "VARCHAR")
    keys = {part: part for part in ("rank", "teams", "clicks", "docs") if part in parts}
    lists = with_lists(Table(grouped, columns, False, table.where), Results("results", keys))
    relation = engine.keep(f"grouping {table.where} by list", f"FROM {lists.relation}")
    return replace(lists, relation=relation)


def _name_rankers(engine: Engine, table: Table, parts: Mapping[str, str]) -> bool:
    """Whether the teams are rankers, by the name of their column or their number."""
    if plain(parts["teams"]) in OF_RANKERS:
        return True
    (teams,) = engine.rows(
        f"SELECT count(DISTINCT {_ranker(table, parts)}) FROM (SELECT * FROM {table.relation}"
        f" LIMIT {FIRST})"
    )[0]
    return bool(teams > 2)


def _ranker(table: Table, parts: Mapping[str, str]) -> str:
    """The team of a result, in SQL; NULL if it is of none."""
    team = table.text(parts["teams"])
    return f"CASE WHEN side_of({team}, NULL, NULL, false) <> '-' THEN {team} END"


def _has_pair(columns: Sequence[str], chosen: Chosen) -> bool:
    """Whether a column names a ranker of a list."""
    return bool({"a", "b"} & find_columns(columns, chosen, typed=False).fields.keys())


def _result(table: Table, parts: Mapping[str, str]) -> str:
    """A row's result as a struct, in SQL."""
    values = (
        f"{quoted(part)}: {table.text(column)}"
        for part, column in parts.items() if part not in KEY
    )  # fmt: skip
    return f"{{{', '.join(values)}}}"


def _key(table: Table, parts: Mapping[str, str]) -> str:
    """What the rows of one list have in common, in SQL; a row without an id is a list."""
    own = table.text(parts["id"])
    own = f"CASE WHEN is_nothing({own}) THEN uuid()::VARCHAR ELSE {own} END"
    return ", ".join([own, *(table.text(parts[part]) for part in KEY[1:] if part in parts)])

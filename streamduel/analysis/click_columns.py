"""The ranks of clicks, beside columns that tell whether or how often users clicked."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from streamduel.analysis.engine import Engine
from streamduel.analysis.fields import Chosen, Columns, find_columns, plain
from streamduel.analysis.list_ids import best_id, id_columns
from streamduel.analysis.names import OF_SIDES
from streamduel.analysis.tables import RARE, Table
from streamduel.analysis.team_columns import with_teams
from streamduel.errors import ConfigurationError

RANKED: Final = ("rank", "position", "index", "indices")
"""Parts of names whose numbers are ranks; those of `clicks` and `clicked` may be anything."""

Reading = Literal["ranks", "ranks, where 0 is no click", "flags", "numbers", "numbers with 0"]


class Doubt(NamedTuple):
    """A column of clicks that may not be what its name says.

    Attributes:
        column: its name.
        reading: flags: whether the list was clicked; numbers: ranks or numbers of clicks; numbers
            with 0: ranks from 0 or from 1.
    """

    column: str
    reading: Reading


class Settled(NamedTuple):
    """The columns of a table, without columns of clicks that are in doubt.

    Attributes:
        columns: what is left.
        doubt: the first column in doubt, if there is no other sign of the winner.
        zero_is_no_click: whether a rank of 0 says that nothing was clicked.
    """

    columns: Columns
    doubt: Doubt | None
    zero_is_no_click: bool


def settle(engine: Engine, table: Table, chosen: Chosen) -> Settled:
    """The columns of a table whose rows have no type, with that of the ranks of clicks."""
    names, doubts = list(table.columns), list[Doubt]()
    chosen = _with_click_rows(engine, table, with_teams(engine, table, chosen))
    while True:
        columns = find_columns(names, chosen, typed=False)
        fields = columns.fields
        if not {"teams", "clicks"} <= fields.keys() or "clicks" in chosen.columns:
            reading: Reading = "ranks"
            break
        reading = _reading(engine, table, fields["clicks"], fields["teams"])
        if reading.startswith("ranks"):
            break
        doubts.append(Doubt(fields["clicks"], reading))
        names.remove(fields["clicks"])
    told = OF_SIDES | {"clicks", "clicked_docs", "winner"}
    doubt = doubts[0] if doubts and not told & fields.keys() else None
    return Settled(columns, doubt, reading == "ranks, where 0 is no click")


def _with_click_rows(engine: Engine, table: Table, chosen: Chosen) -> Chosen:
    """The columns chosen, and those of clicks that are rows of their own beside the lists."""
    fields = find_columns(list(table.columns), chosen, typed=False).fields
    for field, of_click in (("clicked_docs", "doc"), ("clicks", "rank")):
        if not {"teams", field} <= fields.keys() or field in chosen.columns:
            continue
        is_click = f"NOT no_click({table.text(fields[field])})"
        no_list = f"is_nothing({table.text(fields['teams'])})"
        some = f"SELECT 1 FROM {table.relation} WHERE {is_click}"
        if engine.rows(f"{some} AND NOT {no_list} LIMIT 1"):
            continue
        if engine.rows(f"{some} AND {no_list} LIMIT 1"):
            chosen = chosen.plus(of_click, fields[field])
            fields = find_columns(list(table.columns), chosen, typed=False).fields
            break
    in_one_table = {"teams", "id"} <= fields.keys() and bool({"rank", "doc"} & fields.keys())
    if not in_one_table or "impression" in fields:
        return chosen
    no_list = f"is_nothing({table.text(fields['teams'])})"

    def lists(column: str) -> str:
        return f"SELECT {table.text(column)} AS x FROM {table.relation} WHERE NOT {no_list}"

    def clicks(column: str) -> str:
        return f"SELECT {table.text(column)} AS x FROM {table.relation} WHERE {no_list}"

    ids = [fields["id"], *id_columns(list(table.columns))]
    return chosen.plus("impression", best_id(engine, ids, lists, clicks))


def _reading(engine: Engine, table: Table, clicks: str, teams: str) -> Reading:
    """What the values of a column of clicks are, in the rows of lists."""
    values = table.values(x=table.text(clicks), teams=table.text(teams))
    others, nothing, words, least, most, beyond = engine.rows(
        "SELECT coalesce(sum(n) FILTER (number IS NULL AND flag(x) IS NULL AND NOT no_click(x))"
        f" > {RARE} * sum(n), false), count(*) FILTER (no_click(x)),"
        " count(*) FILTER (number IS NULL AND flag(x) IS NOT NULL),"
        " min(number), max(number), coalesce(bool_or(number = ranks), false) FROM"
        " (SELECT x, n, CASE WHEN NOT no_click(x) THEN whole(x) END AS number,"
        f" len(entries(teams)) AS ranks FROM {values} WHERE NOT is_nothing(teams))"
    )[0]
    if others or (least is None and not words):
        return "ranks"  # or arrays, objects and documents, which are read as they are
    if words:
        return "flags"
    if not any(word in plain(clicks) for word in RANKED):
        if most <= 1:
            return "flags"
        return "ranks" if nothing and least == 0 else "numbers"  # nobody counts both ways
    if least or nothing:
        return "ranks"
    return "ranks, where 0 is no click" if beyond else "numbers with 0"


def refusal(where: str, doubt: Doubt) -> ConfigurationError:
    """Why a log is refused whose only clicks are those of a column in doubt."""
    column = doubt.column[:80]
    said, advice = {
        "flags": (
            "says for each list whether it was clicked, but not on which rank",
            "Name the column of the ranks, --map clicks=COLUMN, or of the documents, --map"
            f" clicked_docs=COLUMN; if 0 and 1 are ranks, say so: --map clicks={column}.",
        ),
        "numbers": (
            "has one number for each list, which may be a rank or a number of clicks",
            f"If it is the rank, say so: --map clicks={column}; else name the column of the ranks.",
        ),
        "numbers with 0": (
            "has a number for each list, and 0 may be the first rank or no click",
            f"If it is the first rank, say so: --map clicks={column}; if it is no click, leave it"
            " empty, in the file or with --sql.",
        ),
    }[doubt.reading]
    return ConfigurationError(f"'{column}' of '{where}' {said}. {advice}")


def has_click_rows(engine: Engine, table: Table, columns: Columns) -> bool:
    """Whether rows of the table are clicks on lists that other rows have."""
    fields = columns.fields
    if "impression" not in fields or not {"rank", "doc"} & fields.keys():
        return False
    if "teams" not in fields:
        return True
    no_list = f"is_nothing({table.text(fields['teams'])})"
    return bool(engine.rows(f"SELECT 1 FROM {table.relation} WHERE {no_list} LIMIT 1"))

"""Which kind of click log a table is: streamduel's own, that of another program, or neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from streamduel.analysis.click_columns import Doubt, has_click_rows, refusal, settle
from streamduel.analysis.constant_columns import without_constants
from streamduel.analysis.engine import Engine
from streamduel.analysis.fields import Chosen, Columns, find_columns, own_columns, plain
from streamduel.analysis.inner_records import unnested, unwrapped, with_objects
from streamduel.analysis.list_ids import best_id, id_columns
from streamduel.analysis.names import CLICK_COUNTS, NAMES, OF_SIDES, RANKERS
from streamduel.analysis.own_records import are_own, have_own_values, type_column
from streamduel.analysis.ranker_objects import PAIRS, with_rankers
from streamduel.analysis.ranker_rows import find_ranker_rows, pairs_of_rows
from streamduel.analysis.result_objects import (
    by_rank,
    by_side,
    find_results,
    find_team_lists,
    find_teams,
    with_lists,
)
from streamduel.analysis.result_rows import find_rows, one_per_list
from streamduel.analysis.tables import MAX_LEVELS, Table, sample, with_keys
from streamduel.analysis.unrecognised import check_rows, rows_inside, unfit_header, why_empty
from streamduel.errors import ConfigurationError

Kind = Literal["own", "typed", "flat", "ubi", "solr"]

UBI_FIELDS: Final = frozenset(
    {"action_name", "query_response_hit_ids", "query_response_id", "query_attributes",
     "event_attributes", "user_query"}
)  # fmt: skip
"""Fields of the queries and events of UBI; one of them and `query_id` are enough."""

OF_OTHER_TABLES: Final = frozenset(
    name for field in ("rank", "clicked", "winner", "a", "b", *OF_SIDES) for name in NAMES[field]
) | {*RANKERS, *PAIRS, *CLICK_COUNTS}
"""Names of fields that a query of UBI does not have."""

FOREIGN_SHARE: Final = 0.1
"""Share of the first rows that must be of another program; files for the bulk interface have a line
without fields before each row."""


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
        doubt: the column that tells of clicks, but not on which rank.
        zero_is_no_click: whether a rank of 0 says that nothing was clicked.
    """

    table: Table
    kind: Kind
    columns: Columns
    sample: Sequence[dict[str, Any]]
    unnamed: str = ""
    sides_only: bool = False
    chosen: frozenset[str] = frozenset()
    doubt: Doubt | None = None
    zero_is_no_click: bool = False


def source(engine: Engine, table: Table, chosen: Chosen, *, alone: bool) -> Source:
    """Find out what a table contains.

    Args:
        engine: for reading.
        table: the table.
        chosen: the columns that the user has named.
        alone: whether the log is this table only; else it may have clicks on lists of another one.

    Raises:
        ConfigurationError: nothing in it is recognised.
    """
    rows = sample(engine, table)
    if table.is_json:
        check_rows(table.where, rows)

    def is_log(some: Sequence[dict[str, Any]]) -> bool:
        return _foreign(some) is not None or are_own(some, chosen)

    inner = unwrapped(table, rows, is_log)
    if inner is None and (table.is_json or _foreign(rows) is None):
        inner = with_objects(table, rows)  # tables of other programs: when they are translated
    if inner is not None:
        table, rows = inner, sample(engine, inner)
    kind = _foreign(rows)
    if kind is not None:
        return Source(table, kind, Columns({}, []), rows)
    if table.is_json and are_own(rows, chosen):
        return Source(replace(table, is_own=True), "own", own_columns(chosen), rows)
    return _of_another(engine, table, rows, chosen, alone=alone)


def _of_another(
    engine: Engine, table: Table, rows: Sequence[dict[str, Any]], chosen: Chosen, *, alone: bool
) -> Source:
    """A table that streamduel has not written; see `source`."""
    for _ in range(MAX_LEVELS):
        inner = unnested(table, rows, chosen)
        if inner is None:
            break
        table = _materialized(engine, inner)
        rows = sample(engine, table)
    if table.is_json:
        table = with_keys(engine, table)
    if not table.columns:
        raise ConfigurationError(why_empty(engine, table))

    table = without_constants(engine, table, chosen)
    table = _with_lists(engine, table, rows, chosen)
    return _of_columns(engine, table, rows, chosen if alone else _of_clicks(table, chosen))


def _materialized(engine: Engine, table: Table) -> Table:
    """The table with its rows as they are now, which would else be worked out for each field."""
    return replace(
        table, relation=engine.keep(f"unpacking {table.where}", f"FROM {table.relation}")
    )


def _with_lists(
    engine: Engine, table: Table, rows: Sequence[dict[str, Any]], chosen: Chosen
) -> Table:
    """The table with a row for each list, and with columns for its teams or its two rankers."""
    if (results := find_results(rows)) is not None and results.column in table.columns:
        others = [column for column in table.columns if column != results.column]
        if not find_columns(others, chosen, typed=False).tell_winners:
            return _materialized(engine, with_lists(table, results))
    elif (grouped := find_teams(rows)) is not None and set(grouped) <= table.columns.keys():
        return _materialized(engine, by_rank(table, *grouped))
    elif (by_team := find_team_lists(rows)) is not None and set(by_team) <= table.columns.keys():
        return _materialized(engine, by_side(table, *by_team))
    elif (parts := find_rows(engine, table, chosen)) is not None:
        return one_per_list(engine, table, parts, chosen)
    elif (pair := find_ranker_rows(engine, table, chosen)) is not None:
        return pairs_of_rows(engine, table, pair)
    pairs = with_rankers(table, rows, chosen)
    return _materialized(engine, pairs) if pairs is not None else table


def _of_clicks(table: Table, chosen: Chosen) -> Chosen:
    """The columns chosen, with the `id` as that of a list if nothing else is known of clicks."""
    columns = find_columns(list(table.columns), chosen, typed=False)
    fields = columns.fields
    if "impression" in fields or columns.tell_winners or not {"rank", "doc"} & fields.keys():
        return chosen
    return chosen.plus("impression", fields["id"]) if "id" in fields else chosen


def _of_columns(
    engine: Engine, table: Table, rows: Sequence[dict[str, Any]], chosen: Chosen
) -> Source:
    """A table with a row for each list, duel or click, by the names and values of its columns."""
    given, names = frozenset(chosen.columns), list(table.columns)
    if "impression" not in find_columns(names, chosen, typed=False).fields:
        # no log of clicks alone, with a type of each event
        typed = type_column(names, rows, chosen)
        columns = find_columns(names, chosen, typed=True)
        there = columns.fields.keys()
        no_link = "teams" in there and there & {"rank", "doc"} and "impression" not in there
        if typed is not None and have_own_values(rows, columns) and not no_link:
            columns.fields["type"] = typed
            _check(table, columns, rows)
            return Source(table, "typed", columns, rows, chosen=given)
    columns, doubt, zero_is_no_click = settle(engine, table, chosen)
    columns.fields.pop("type", None)
    _check(table, columns, rows)
    return Source(
        table, "flat", columns, rows, chosen=given, doubt=doubt, zero_is_no_click=zero_is_no_click
    )


def check_clicks(engine: Engine, sources: Sequence[Source]) -> None:
    """Refuse lists whose clicks are in doubt, if no table has clicks as rows of their own.

    Raises:
        ConfigurationError: there are such lists.
    """
    doubts = [(each, each.doubt) for each in sources if each.doubt is not None]
    if not doubts or any(
        each.kind != "flat" or has_click_rows(engine, each.table, each.columns) for each in sources
    ):
        return
    source, doubt = doubts[0]
    raise refusal(source.table.where, doubt)


def with_list_ids(engine: Engine, sources: Sequence[Source]) -> list[Source]:
    """The sources, of which those with lists have the ids that clicks of the others name."""
    named = " UNION ALL ".join(
        f"SELECT {each.table.text(each.columns.fields['impression'])} AS x"
        f" FROM {each.table.relation}"
        for each in sources
        if "impression" in each.columns.fields and "teams" not in each.columns.fields
    )
    return [_with_list_id(engine, each, named) if named else each for each in sources]


def _with_list_id(engine: Engine, source: Source, named: str) -> Source:
    """The source with the column of ids of which most are among those that clicks name."""
    fields, table = source.columns.fields, source.table
    has_lists = {"teams", "id"} <= fields.keys() and not {"rank", "doc"} & fields.keys()
    if not has_lists or source.kind != "flat" or "id" in source.chosen:
        return source

    def lists(column: str) -> str:
        return f"SELECT {table.text(column)} AS x FROM {table.relation}"

    ids = [fields["id"], *id_columns(list(table.columns))]
    column = best_id(engine, ids, lists, lambda _: named)
    return replace(source, columns=Columns({**fields, "id": column}, source.columns.segments))


def _foreign(rows: Sequence[dict[str, Any]]) -> Literal["ubi", "solr"] | None:
    """The other program whose log this is."""
    records = [row["_source"] if isinstance(row.get("_source"), dict) else row for row in rows]
    of_query = [
        record for record in records
        if "query_id" in record and not {"a", "impression"} & record.keys()
    ]  # fmt: skip
    if sum(map(_is_ubi, of_query)) > FOREIGN_SHARE * len(rows):
        return "ubi"
    types = {str(record["type"]) for record in records if record.get("type")}
    if types != {"click"} and "response" not in types:
        return None
    solr = sum(record.get("type") in {"response", "click"} for record in of_query)
    return "solr" if solr > FOREIGN_SHARE * len(rows) else None


def _is_ubi(record: Mapping[str, Any]) -> bool:
    """Whether a record with a `query_id` is of UBI; other programs may call a query alike."""
    found = UBI_FIELDS & record.keys()
    if found == {"user_query"}:
        return not any(plain(key) in OF_OTHER_TABLES for key in record)
    return bool(found)


def _check(table: Table, columns: Columns, rows: Sequence[dict[str, Any]]) -> None:
    """Refuse a table in which no duel and no click can be found."""
    there, duels = columns.fields.keys(), columns.tell_winners
    clicks = "impression" in there and bool({"rank", "doc"} & there)
    if duels or clicks or "type" in there:
        return
    if why := unfit_header(table, rows):
        raise ConfigurationError(why)
    listed = ", ".join(list(table.columns)[:20])
    raise ConfigurationError(
        f"nothing in '{table.where}' is recognised: it needs a winner, teams and clicks, or wins,"
        " clicks or scores of both rankers. Name the columns with --map FIELD=COLUMN, such as --map"
        f" winner=COLUMN; they are {listed}.{rows_inside(rows) if table.is_json else ''}"
    )

"""Control records of streamduel in a table of any program, and the markers in place of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.tables import Table, path_of
from streamduel.record_rules import ACTION_FIELDS
from streamduel.records import MARKER

COLUMNS: Final = ("type", "action", "arm")
"""Columns of control records that are those of something else in the logs of other programs."""

UNREADABLE: Final = "settings in a table"
"""The problem of a control record whose settings are no JSON, as where DuckDB writes CSV."""

_TEXTS: Final = ("arm", "actor", "text", "like")


def has_controls(engine: Engine, table: Table) -> bool:
    """Whether a table that streamduel has not written has control records."""
    if not {"type", "action"} <= table.columns.keys():
        return False
    return bool(engine.rows(f"SELECT 1 FROM {table.relation} WHERE {_is_control(table)} LIMIT 1"))


def control_record(table: Table, fields: Mapping[str, str]) -> str:
    """The control record in a row, as JSON in SQL; NULL in other rows.

    Its time is read as in other rows, which may have another unit; and as there, none needs an id
    or an experiment.
    """
    columns: dict[str, str] = {each: each for each in _TEXTS if each in table.columns}
    columns |= {each: fields[each] for each in ("a", "b") if each in fields}
    values = {each: f"nullif({table.text(column)}, '')" for each, column in columns.items()}
    values |= {
        each: f"coalesce(nullif({table.text(fields[each])}, ''), '-')" if each in fields else "'-'"
        for each in ("id", "experiment")
    }
    if "settings" in table.columns:
        values["settings"] = _settings(table)
    parts = ", ".join(f"{quoted(each)}, {value}" for each, value in values.items())
    action = table.text("action")
    return (
        f"CASE WHEN {_is_control(table)}"
        f" THEN json_object('type', 'control', 'action', {action}, {parts})::JSON END"
    )


def field_of(field: str, *, quotes: bool = False) -> str:
    """The text of a field of `control_json`, the control record of a row, as of a table of JSON."""
    arrow = "->" if quotes else "->>"
    return f"nullif((control_json {arrow} {quoted(path_of(field))})::VARCHAR, 'null')"


def problem() -> str:
    """Why `control_json` cannot be used, in SQL."""
    unreadable = (
        f"{field_of('action')} = 'apply' AND json_type(control_json, '$.settings') <> 'OBJECT'"
    )
    return (
        f"CASE WHEN control_json IS NULL THEN NULL WHEN {unreadable} THEN {quoted(UNREADABLE)}"
        " ELSE refused_field(control_json::VARCHAR) END"
    )


def without_markers(engine: Engine, table: Table) -> Table:
    """The table without markers, which are kept in the table `markers`."""
    fields = ("type", "experiment", "id")
    if not table.is_json and not {*fields, "control_offset"} <= table.columns.keys():
        return table
    kind, experiment, id_ = map(table.text, fields)
    is_marker = f"coalesce({kind} = {quoted(MARKER)}, false)"
    # Few rows have the word; the type of the others need not be looked for.
    has_word = f"contains(json::VARCHAR, {quoted(MARKER)}) AND " if table.is_json else ""
    ((found,),) = engine.rows(
        f"INSERT INTO markers SELECT {experiment}, {id_} FROM {table.relation}"
        f" WHERE {has_word}{is_marker}"
    )
    if not found:
        return table
    return replace(table, relation=f"(SELECT * FROM {table.relation} WHERE NOT {is_marker})")


def _settings(table: Table) -> str:
    """The settings: a struct has all keys of all rows, so that its NULL is nothing."""
    text = f"nullif({table.text('settings', quotes=True)}, '')"
    if table.is_json:
        return f"{text}::JSON"
    value = f"CASE WHEN json_valid({text}) THEN {text}::JSON ELSE to_json({text}) END"
    is_struct = table.columns["settings"].startswith("STRUCT(")
    return f"json_merge_patch('{{}}'::JSON, {value})" if is_struct else value


def _is_control(table: Table) -> str:
    actions = ", ".join(map(quoted, ACTION_FIELDS))
    return f"({table.text('type')} = 'control' AND {table.text('action')} IN ({actions}))"

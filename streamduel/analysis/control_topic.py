"""The markers that a click log has in place of the control records of a control topic."""

from __future__ import annotations

from dataclasses import replace

from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.tables import Table
from streamduel.records import MARKER


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

"""Checks of the control records: whether the analysis has all that the service has."""

from __future__ import annotations

from collections.abc import Iterator

from streamduel.analysis.control_rows import UNREADABLE
from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.report import Check
from streamduel.errors import counted


def controls(engine: Engine, experiment: str) -> Iterator[Check]:
    """Whether all control records of an experiment take effect here, too."""
    ((unread,),) = engine.rows(
        f"SELECT count(*) FROM events WHERE problem = {quoted(UNREADABLE)}"
        f" AND experiment = {quoted(experiment)}"
    )
    if unread:
        yield Check(
            "control records", "failed",
            f"{counted(unread, 'control record')} cannot be read from this table, and may have"
            " changed the arms. Write the log as JSON Lines or Parquet.",
        )  # fmt: skip
    named = f"WHERE experiment = {quoted(experiment)}"
    ((missing,),) = engine.rows(
        f"SELECT (SELECT count(DISTINCT id) FROM markers {named})"
        f" - (SELECT count(DISTINCT key) FROM events {named} AND kind = 'control')"
    )
    if missing > 0:
        yield Check(
            "control records", "warning",
            f"The log lacks {counted(missing, 'control record')} of a control topic, and may name"
            " arms that were retired. Name a dump of the control topic, too.",
        )  # fmt: skip

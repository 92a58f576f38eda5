"""The timeline of a log: its control records. What the service alone knows is not in a log."""

from __future__ import annotations

from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.report import Moment
from streamduel.record_rules import ACTION_FIELDS
from streamduel.stream.timeline import MAX_MOMENTS


def timelines(engine: Engine) -> dict[str, list[Moment]]:
    """The newest control records of each experiment, as many as the service keeps; oldest first.

    Args:
        engine: with the tables `events` and `duplicates`.
    """
    actions = ", ".join(map(quoted, ACTION_FIELDS))
    rows = engine.rows(
        f"""
        SELECT experiment, ts, action, detail, actor FROM (
            SELECT *, rowid AS row, row_number() OVER (
                PARTITION BY experiment ORDER BY ts DESC NULLS LAST, rowid DESC
            ) AS place
            FROM events WHERE kind = 'control' AND action IN ({actions}) AND problem IS NULL
              AND rowid NOT IN (SELECT row FROM duplicates)
        ) WHERE place <= {MAX_MOMENTS} ORDER BY experiment, place DESC
        """
    )
    found: dict[str, list[Moment]] = {}
    for experiment, *moment in rows:
        found.setdefault(experiment, []).append(Moment(*moment))
    return found

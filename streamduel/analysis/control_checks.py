"""The check of the control records: whether an analysis counts as the service does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamduel.analysis.control_rows import UNREADABLE
from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.report import Check
from streamduel.diagnosis import Grade
from streamduel.errors import counted, enumerated, listed, readable


def controls(engine: Engine, experiment: str, rules: Mapping[str, str]) -> Iterator[Check]:
    """What control records change, and whether all of them take effect here, too.

    Args:
        engine: with the joined records.
        experiment: its name.
        rules: the options that decide how duels count, by the setting of the service.
    """
    of_this = f"experiment = {quoted(experiment)}"
    found = [
        *_unreadable(engine, of_this),
        *_missing(engine, of_this),
        *_recounted(engine, of_this, rules),
        *_retired(engine, of_this),
    ]
    if found:  # the worst is the first
        yield Check("control records", found[0][0], " ".join(sentence for _, sentence in found))


def _unreadable(engine: Engine, of_this: str) -> Iterator[tuple[Grade, str]]:
    ((unread,),) = engine.rows(
        f"SELECT count(*) FROM events WHERE problem = {quoted(UNREADABLE)} AND {of_this}"
    )
    if unread:
        yield (
            "failed",
            f"{counted(unread, 'control record')} cannot be read from this table, and may have"
            " changed the arms. Write the log as JSON Lines or Parquet.",
        )


def _missing(engine: Engine, of_this: str) -> Iterator[tuple[Grade, str]]:
    ((missing,),) = engine.rows(
        f"SELECT (SELECT count(DISTINCT id) FROM markers WHERE {of_this})"
        f" - (SELECT count(DISTINCT key) FROM events WHERE {of_this} AND kind = 'control')"
    )
    if missing > 0:
        yield (
            "warning",
            f"The log lacks {counted(missing, 'control record')} of a control topic, and may name"
            " arms that were retired. Name a dump of the control topic, too.",
        )


def _recounted(
    engine: Engine, of_this: str, rules: Mapping[str, str]
) -> Iterator[tuple[Grade, str]]:
    changed = engine.rows(
        "SELECT setting, strftime(make_timestamp(1000 * max(ts)), ' at %Y-%m-%d %H:%M UTC')"
        f" FROM recounted WHERE {of_this} GROUP BY setting ORDER BY setting"
    )
    if changed:
        settings = enumerated([f"{setting}{moment or ''}" for setting, moment in changed])
        options = enumerated([rules[setting] for setting, _ in changed])
        yield "warning", f"The service changed {settings}; all duels here are counted by {options}."


def _retired(engine: Engine, of_this: str) -> Iterator[tuple[Grade, str]]:
    retired = engine.rows(f"SELECT arm FROM rosters WHERE is_retired AND {of_this} ORDER BY arm")
    if retired:
        names = listed([readable(arm, 80) for (arm,) in retired])
        yield "fine", f"Retired, and left out with their duels: {names}."

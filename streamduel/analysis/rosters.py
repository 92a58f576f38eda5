"""The arms that compete: misspelt names, and what control records change, as the service decides.

Control records are applied, in the order of their times, to experiments that learn nothing and are
thrown away. The configuration is not in the log, so the arms at the start are those with records
before a control record could have added them, and other settings have their defaults.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

import msgspec

from streamduel.analysis.engine import Engine
from streamduel.analysis.service_rules import LIMITS
from streamduel.config.experiment import JOIN_WINDOW_MS, MIN_ARMS, ExperimentSettings
from streamduel.records import MAX_TIME, Control, Rejected
from streamduel.section import MAX_ARMS
from streamduel.stream import control
from streamduel.stream.experiment import Experiment
from streamduel.stream.partition_context import PartitionContext

COUNTING: Final = ("ties", "credit", "no_click")
"""Settings that decide how a duel counts, which here hold for the whole log."""

RARE: Final = 100
RARE_SHARE: Final = 0.001
"""An arm or an experiment with fewer records than both is misspelt, or a test: a policy gives even
a bad arm more."""

READ_AT_ONCE: Final = 100
"""Control records in memory; each may have 1 MiB."""

_SCHEMA: Final = """
CREATE TABLE rosters (experiment VARCHAR, arm VARCHAR, is_retired BOOLEAN);
CREATE TABLE refused (row BIGINT, problem VARCHAR); -- control records without effect
CREATE TABLE recounted (experiment VARCHAR, ts BIGINT, setting VARCHAR) -- changes of COUNTING
"""

_decode: Final = msgspec.json.Decoder(Control).decode


@dataclass(slots=True)
class _Arm:
    """An arm of the log: its first record, and whether a control record names or may add it."""

    is_rare: bool
    first: tuple[int, int]
    is_named: bool = False
    is_added: bool = False


@dataclass(slots=True)
class _Applied:
    """The effects of an experiment's control records."""

    refused: list[tuple[int, str]] = field(default_factory=list)
    recounted: list[tuple[int | None, str]] = field(default_factory=list)


def choose_arms(engine: Engine, wanted: str, window_ms: int) -> None:
    """Make the tables `rosters`, `refused`, `recounted`, `unknown_arms` and `rare_experiments`.

    Args:
        engine: with the tables `events` and `duplicates`.
        wanted: which events count, in SQL.
        window_ms: the join window.
    """
    _count_arms(engine, wanted)
    engine.rows(_SCHEMA)
    controls = f"""
        SELECT experiment, e.ts, e.rowid, control FROM events AS e
        WHERE control IS NOT NULL AND problem IS NULL AND {wanted}
          AND e.rowid NOT IN (SELECT row FROM duplicates)
        ORDER BY experiment, coalesce(e.ts, 0), e.rowid
    """
    named = _named(engine, controls)
    for name, records in _by_experiment(engine, controls):
        if start := _start(named.get(name, {})):
            _apply(engine, name, start, window_ms, records)
    engine.run(
        "looking for misspelt arms",
        """
        CREATE TABLE unknown_arms AS
        SELECT experiment, arm, is_rare FROM arm_duels
        WHERE (experiment, arm) NOT IN (SELECT (experiment, arm) FROM rosters)
          AND (is_rare OR experiment IN (SELECT experiment FROM rosters))
        """,
    )


def _count_arms(engine: Engine, wanted: str) -> None:
    """Make the tables `arm_duels` and `rare_experiments`."""
    rare = f"duels < {RARE} AND duels < {RARE_SHARE} * total"
    engine.run(
        "counting arms",
        f"""
        CREATE TABLE arm_duels AS
        WITH of_pairs AS (
            SELECT experiment, a, b, min(e.ts) AS ts, min(e.rowid) AS row, sum(
                CASE WHEN kind = 'duels' THEN greatest(wins_a + wins_b + ties, 1) ELSE 1 END
            ) AS n FROM events AS e
            WHERE kind NOT IN ('click', 'control') AND problem IS NULL AND {wanted}
              AND e.rowid NOT IN (SELECT row FROM duplicates)
            GROUP BY experiment, a, b
        ), of_arms AS (
            SELECT experiment, unnest(CASE WHEN a = b THEN [a] ELSE [a, b] END) AS arm, n, ts, row,
                sum(n) OVER (PARTITION BY experiment) AS total
            FROM of_pairs
        )
        SELECT *, {rare} AS is_rare FROM (
            SELECT experiment, arm, sum(n)::HUGEINT AS duels, total::HUGEINT AS total,
                coalesce(min(ts), 0) AS ts, min(row) AS row
            FROM of_arms GROUP BY experiment, arm, total
        )
        """,
    )
    engine.run(
        "looking for misspelt experiments",
        f"""
        CREATE TABLE rare_experiments AS
        SELECT experiment FROM (
            SELECT experiment, duels, sum(duels) OVER () AS total FROM (
                SELECT experiment, max(total) AS duels FROM arm_duels GROUP BY experiment
            )
        ) WHERE {rare}
        """,
    )


def _by_experiment(
    engine: Engine, controls: str
) -> Iterator[tuple[str, Iterator[tuple[int | None, int, Control]]]]:
    rows = (row for batch in engine.batches(controls, READ_AT_ONCE) for row in batch)
    for name, records in groupby(rows, key=lambda row: str(row[0])):
        yield name, ((ts, row, _decode(text)) for _, ts, row, text in records)


def _named(engine: Engine, controls: str) -> dict[str, dict[str, _Arm]]:
    """The arms of each experiment that has control records, with what these say about them."""
    found: dict[str, dict[str, _Arm]] = {}
    for name, records in _by_experiment(engine, controls):
        found[name] = arms = {
            arm: _Arm(is_rare, (ts, row))
            for arm, is_rare, ts, row in engine.rows(
                "SELECT arm, is_rare, ts, row FROM arm_duels WHERE experiment = ? ORDER BY arm",
                [name],
            )
        }
        for ts, row, record in records:
            listed = _listed(record)
            for arm in {record.arm, record.a, record.b, *listed} & arms.keys():
                arms[arm].is_named = True
            for arm in {*listed, *([record.arm] if record.action == "add_arm" else [])}:
                if arm in arms and (ts or 0, row) < arms[arm].first:
                    arms[arm].is_added = True
    return found


def _listed(record: Control) -> list[str]:
    """The arms that an `apply` lists."""
    if record.action == "apply" and record.settings and "arms" in record.settings:
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(record.settings["arms"], type=list[str])
    return []


def _start(arms: dict[str, _Arm]) -> list[str]:
    """The arms that an experiment begins with; none if it could not have as many.

    A named arm is no misspelt one. If fewer than two had records before they could be added, the
    log begins later than the experiment.
    """
    real = [arm for arm, each in arms.items() if each.is_named or not each.is_rare]
    first = [arm for arm in real if not arms[arm].is_added]
    start = first if len(first) >= MIN_ARMS else real
    return start if MIN_ARMS <= len(start) <= MAX_ARMS else []


def _apply(
    engine: Engine,
    name: str,
    start: Sequence[str],
    window_ms: int,
    records: Iterator[tuple[int | None, int, Control]],
) -> None:
    """Apply an experiment's control records, and keep what they did."""
    context = PartitionContext.detached(0, MAX_TIME, LIMITS)
    own_window = None if window_ms == JOIN_WINDOW_MS else window_ms
    settings = ExperimentSettings(arms=list(start), join_window_ms=own_window)
    experiment, done = Experiment(name, settings, context, 0, 0), _Applied()
    for ts, row, record in records:
        try:
            control.apply(record, experiment, row)
        except Rejected:
            done.refused.append((row, "settings" if record.action == "apply" else "arm"))
            continue
        if record.action == "apply":
            done.recounted += [(ts, key) for key in COUNTING if key in (record.settings or {})]
    roster = experiment.roster
    _insert(engine, "rosters", [(name, arm, False) for arm in roster.arms])
    _insert(engine, "rosters", [(name, arm, True) for arm in roster.state()["retired"]])
    _insert(engine, "refused", done.refused)
    _insert(engine, "recounted", [(name, *each) for each in done.recounted])


def _insert(engine: Engine, table: str, rows: Collection[Sequence[object]]) -> None:
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        engine.rows(
            f"INSERT INTO {table} SELECT {', '.join('unnest(?)' for _ in columns)}", columns
        )

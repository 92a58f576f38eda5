"""Examples: lists of the leading pair that users decided, for people to look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.report import Example, ExperimentAnalysis
from streamduel.config.experiment import MAX_EXAMPLES
from streamduel.errors import shortened
from streamduel.preference.evidence import closest_challenger
from streamduel.records import Side
from streamduel.stream.examples import MAX_DOC, MAX_QUERY, MAX_RANKS

_SIDES: Final[Mapping[str, Side]] = {"a": "a", "b": "b"}


def examples(
    engine: Engine, found: Mapping[str, ExperimentAnalysis], credit: str, limit: int = MAX_EXAMPLES
) -> dict[str, list[Example]]:
    """Draw lists of the leader and its closest challenger, by the hash of their ids.

    Args:
        engine: with all tables.
        found: what the experiments say, by name.
        credit: the credit function.
        limit: the most lists of an experiment.
    """
    pairs = {name: pair for name, each in found.items() if (pair := _leading(each))}
    if not limit or not pairs or not engine.rows("SELECT 1 FROM events WHERE query <> '' LIMIT 1"):
        return {}
    drawn: dict[str, list[Example]] = {}
    for experiment, a, b, won, query, docs, teams, clicks in _draw(engine, pairs, credit, limit):
        drawn.setdefault(experiment, []).append(
            Example(
                a=a,
                b=b,
                winner="a" if won == 2 else "b",
                query=shortened(query, MAX_QUERY),
                docs=[shortened(doc or "", MAX_DOC) for doc in docs[:MAX_RANKS]],
                teams=[_SIDES.get(team) for team in teams[:MAX_RANKS]],
                ranks=len(teams),
                clicks=sorted(set(clicks))[:MAX_RANKS],
            )
        )
    return drawn


def _draw(
    engine: Engine, pairs: Mapping[str, tuple[str, str]], credit: str, limit: int
) -> list[tuple[Any, ...]]:
    """The drawn lists of the pair of each experiment, as rows of the columns selected last."""
    values = ", ".join(
        f"({quoted(name)}, {quoted(first)}, {quoted(second)})"
        for name, (first, second) in pairs.items()
    )
    engine.run(
        "drawing examples",
        f"""
        CREATE TABLE drawn AS
        SELECT row, place, {credit} AS won FROM (
            SELECT l.row, c.{credit}, row_number() OVER (
                PARTITION BY l.experiment
                ORDER BY
                    coalesce(k.key, md5_number(json_array(k.query, k.ts, k.docs)::VARCHAR)), l.row
            ) AS place
            FROM lists AS l
            JOIN (VALUES {values}) AS p (experiment, x, y) ON p.experiment = l.experiment
            JOIN kept AS k ON k.row = l.row
            JOIN patterns AS t ON t.pattern = pattern_of(l.teams, l.clicks, l.chances)
            JOIN credited AS c ON c.id = t.id
            WHERE ((l.a = x AND l.b = y) OR (l.a = y AND l.b = x))
              AND k.query <> '' AND len(k.docs) = len(l.teams) AND c.{credit} <> 1
              AND contains(l.teams, 'a') AND contains(l.teams, 'b')
              AND NOT l.is_outside AND NOT l.is_sides
        ) WHERE place <= {limit}
        """,
    )
    return engine.rows(
        """
        SELECT l.experiment, l.a, l.b, d.won, k.query, k.docs, l.teams,
            [c.rank for c in l.clicks] AS ranks
        FROM drawn AS d JOIN lists AS l USING (row) JOIN kept AS k USING (row)
        ORDER BY l.experiment, d.place
        """
    )


def _leading(found: ExperimentAnalysis) -> tuple[str, str] | None:
    if found.leader is None:
        return None
    leader = found.arms.index(found.leader)
    challenger = closest_challenger(np.array(found.wins), leader, found.seeks)
    return found.leader, found.arms[challenger]

"""From events to duels: without duplicates, clicks joined to their lists, whatever the order.

The service folds a log in its order; here every record is at its own time. Of records with one id,
the earliest counts. A click belongs to the impression that it names if their times are at most one
join window apart; rows without a time are joined at any distance. A `reset` forgets the records
with an earlier time, apart from the lists whose join window was open, which the service counts when
it closes. The duels of an arm that is retired at the end are removed.
"""

from __future__ import annotations

from typing import Final

from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.first_rank import first_rank
from streamduel.analysis.rosters import choose_arms

OUTCOMES: Final = ("accepted", "duplicate", "dead_letter", "late", "unjoined")
"""Outcomes of records, as `streamduel inspect` names them."""

GROUPED_AT_ONCE: Final = 500_000
"""Clicks that are put into lists in one statement, in some hundred megabytes."""


def join(engine: Engine, experiment: str | None, window_ms: int) -> None:
    """Make the tables `outcomes`, of records by outcome, and `duels`, from `events`.

    Args:
        engine: with the table `events`.
        experiment: the only one that counts; None: all.
        window_ms: the join window.
    """
    _leave_out(engine, experiment, window_ms)
    _join_clicks(engine, window_ms)
    first = first_rank(engine)
    _complete_lists(engine, first)
    _number_arms(engine)
    _collect_duels(engine)
    _count_outcomes(engine, experiment)


def _leave_out(engine: Engine, experiment: str | None, window_ms: int) -> None:
    """Leave out what the service refuses, duplicates, and what a reset forgets: the view `kept`.

    The view `of_all_time` has what was forgotten, too.
    """
    wanted = "true"
    if experiment is not None:
        wanted = f"(experiment = {quoted(experiment)} OR (kind = 'click' AND experiment IS NULL))"
    _find_duplicates(engine)
    choose_arms(engine, wanted, window_ms)
    _refuse(engine)
    engine.rows(
        """
        CREATE VIEW resets AS
        SELECT experiment, max(ts) AS ts, max(rowid) AS row FROM events
        WHERE kind = 'control' AND action = 'reset' AND problem IS NULL
          AND rowid NOT IN (SELECT row FROM duplicates) GROUP BY experiment
        """
    )
    counted_at = f"CASE e.kind WHEN 'impression' THEN e.ts + {window_ms} ELSE e.ts END"
    engine.run(
        "leaving out duplicates",
        f"""
        CREATE VIEW of_all_time AS
        SELECT e.rowid AS row, e.*,
            r.row IS NOT NULL AND coalesce({counted_at} < r.ts, e.rowid < r.row) AS forgotten
        FROM events AS e LEFT JOIN resets AS r USING (experiment)
        WHERE problem IS NULL AND e.rowid NOT IN (SELECT row FROM duplicates) AND {wanted};
        CREATE VIEW kept AS SELECT * FROM of_all_time WHERE NOT forgotten
        """,
    )


def _find_duplicates(engine: Engine) -> None:
    """Make the table `duplicates`."""
    engine.run(
        "looking for duplicates",
        """
        CREATE OR REPLACE TABLE duplicates AS
        WITH several AS (
            SELECT experiment, key FROM events WHERE key IS NOT NULL AND problem IS NULL
            GROUP BY experiment, key HAVING count(*) > 1
        )
        SELECT row, first FROM (
            SELECT e.rowid AS row, first_value(e.rowid) OVER same_id AS first
            FROM events AS e JOIN several AS s
              ON e.key = s.key AND e.experiment IS NOT DISTINCT FROM s.experiment
            WHERE e.problem IS NULL
            WINDOW same_id AS (
                PARTITION BY e.experiment, e.key ORDER BY e.ts NULLS LAST, e.rowid
            )
        ) WHERE row <> first
        """,
    )


def _refuse(engine: Engine) -> None:
    """Give records of unknown arms, and control records that cannot take effect, a problem.

    Only the `id` of the latter is remembered, so a correction of the former is no duplicate.
    """
    unknown = "(SELECT (experiment, arm) FROM unknown_arms)"
    if engine.rows("SELECT 1 FROM unknown_arms LIMIT 1"):
        engine.run(
            "leaving out unknown arms",
            f"""
            UPDATE events SET problem = 'arm', unusable = NULL
            WHERE problem IS NULL AND kind NOT IN ('click', 'control')
              AND ((experiment, a) IN {unknown} OR (experiment, b) IN {unknown})
            """,
        )
        if engine.rows(
            "SELECT 1 FROM duplicates AS d JOIN events AS e ON e.rowid IN (d.row, d.first)"
            " WHERE e.problem IS NOT NULL LIMIT 1"
        ):
            _find_duplicates(engine)
    engine.rows(
        "UPDATE events SET problem = r.problem FROM refused AS r WHERE events.rowid = r.row"
    )


def _join_clicks(engine: Engine, window_ms: int) -> None:
    """Join clicks with their lists; a click that names no experiment has that of its list.

    A click before a reset is forgotten, unless its list is kept; one afterwards may be late.
    """
    engine.run(
        "joining clicks",
        f"""
        CREATE TABLE clicks AS
        SELECT c.row, i.row AS list, coalesce(c.experiment, i.experiment) AS experiment,
            coalesce(c.rank, list_position(i.docs, c.doc) - 1) AS rank,
            c.action, c.ts, c.clicked_at, c.is_numbered, i.teams,
            CASE WHEN i.row IS NULL OR c.ts < i.ts - {window_ms}
                   OR (i.kind <> 'impression' AND c.ts < i.ts) THEN 'unjoined'
                 WHEN i.kind <> 'impression' OR c.ts > i.ts + {window_ms} THEN 'late'
                 WHEN coalesce(c.rank, list_position(i.docs, c.doc)) IS NULL THEN 'dead_letter'
                 ELSE 'accepted' END AS outcome
        FROM of_all_time AS c LEFT JOIN of_all_time AS i
          ON i.key = c.impression AND (c.experiment IS NULL OR c.experiment = i.experiment)
        WHERE c.kind = 'click' AND NOT (c.forgotten AND coalesce(i.forgotten, true))
          AND NOT coalesce(i.forgotten AND coalesce(c.ts <= i.ts + {window_ms}, true), false)
        ORDER BY list, c.row
        """,
    )


def _complete_lists(engine: Engine, first: int) -> None:
    """Make the table `lists`, each list with its clicks, and mark clicks outside of their list."""
    if first:
        engine.run("numbering ranks", f"UPDATE clicks SET rank = rank - {first} WHERE is_numbered")
    engine.run(
        "checking ranks",
        "UPDATE clicks SET outcome = 'dead_letter' WHERE outcome = 'accepted'"
        " AND (rank < 0 OR rank >= len(teams))",
    )
    shifted = "clicks"
    if first:
        moved = f"[click_of(c.rank - {first}, c.action, c.ts) for c in clicks]"
        shifted = f"CASE WHEN is_numbered THEN {moved} ELSE clicks END"
    _group_clicks(engine)
    engine.run(
        "putting clicks into lists",
        f"""
        CREATE TABLE lists AS
        WITH complete AS (
            SELECT * EXCLUDE (clicks), {shifted} AS clicks FROM kept WHERE kind = 'interleaving'
            UNION ALL BY NAME
            SELECT k.* EXCLUDE (clicks), coalesce(g.clicks, []) AS clicks
            FROM kept AS k LEFT JOIN grouped AS g ON g.list = k.row WHERE k.kind = 'impression'
        )
        SELECT row, experiment, a, b, teams, clicks, chances, ts, client, segment, is_sides,
            is_flat AND is_sides AS is_counted,
            len([1 for c in clicks if c.rank < 0 OR c.rank >= len(teams)]) > 0 AS is_outside
        FROM complete
        """,
    )


def _group_clicks(engine: Engine) -> None:
    """Make the table `grouped`, the clicks of each list, some lists at a time.

    DuckDB has all arrays that it makes in one statement in memory. The clicks are in the order of
    their lists, so that a range of lists is read without the others.
    """
    engine.rows("CREATE TABLE grouped AS SELECT row AS list, clicks FROM kept WHERE false")
    clicks, first, last = engine.rows(
        "SELECT count(*), min(list), max(list) FROM clicks WHERE outcome = 'accepted'"
    )[0]
    if not clicks:
        return
    parts = -(-clicks // GROUPED_AT_ONCE)
    width = -(-(last - first + 1) // parts)
    for start in range(first, last + 1, width):
        engine.done("grouping clicks", (start - first) / (last - first + 1))
        engine.rows(
            f"""
            INSERT INTO grouped
            SELECT list, list(click_of(rank, action, clicked_at) ORDER BY ts NULLS LAST, row)
            FROM clicks
            WHERE outcome = 'accepted' AND list >= {start} AND list < {start + width} GROUP BY list
            """
        )


def _number_arms(engine: Engine) -> None:
    """Make the table `arms`: those that compete in the end, of experiments with duels."""
    engine.run(
        "numbering arms",
        """
        CREATE TABLE arms AS
        SELECT experiment, arm, row_number() OVER (PARTITION BY experiment ORDER BY arm) - 1 AS i
        FROM (
            SELECT experiment, arm FROM rosters WHERE NOT is_retired
            UNION ALL
            SELECT experiment, arm FROM arm_duels
            WHERE NOT is_rare AND experiment NOT IN (SELECT experiment FROM rosters)
        )
        WHERE experiment NOT IN (SELECT experiment FROM rare_experiments)
          AND experiment IN (SELECT experiment FROM kept WHERE kind NOT IN ('click', 'control'))
        """,
    )


def _collect_duels(engine: Engine) -> None:
    """Make the table `duels`: pairs, what decides who won them, and how often.

    An experiment with one arm has nothing to compare.
    """
    engine.run(
        "collecting duels",
        """
        CREATE VIEW raw AS
        SELECT experiment, a, b, pattern_of(teams, clicks, chances) AS pattern, 1::BIGINT AS n,
            ts, client, segment, NOT is_sides AS is_interleaved
        FROM lists WHERE NOT is_outside
        UNION ALL
        SELECT experiment, a, b, '=' || CASE WHEN a = b THEN 'n' ELSE winner END, 1, ts, client,
            segment, false
        FROM kept WHERE kind = 'duel'
        UNION ALL
        SELECT * FROM (
            SELECT experiment, a, b, unnest(['=a', '=b', '=t']),
                unnest([wins_a, wins_b, ties]) AS n, ts, client, segment, false
            FROM kept WHERE kind = 'duels'
        ) WHERE n > 0
        """,
    )
    engine.run(
        "numbering patterns",
        "CREATE TABLE patterns AS SELECT row_number() OVER (ORDER BY pattern) - 1 AS id, pattern"
        " FROM (SELECT DISTINCT pattern FROM raw)",
    )
    engine.run(
        "numbering duels",
        """
        CREATE TABLE duels AS
        SELECT r.experiment, least(x.i, y.i)::SMALLINT AS i, greatest(x.i, y.i)::SMALLINT AS j,
            x.i > y.i AS flipped, p.id::INTEGER AS pattern, r.n, r.ts, r.client, r.segment,
            r.is_interleaved
        FROM raw AS r
        JOIN patterns AS p ON p.pattern = r.pattern
        JOIN arms AS x ON x.experiment = r.experiment AND x.arm = r.a
        JOIN arms AS y ON y.experiment = r.experiment AND y.arm = r.b
        WHERE r.experiment IN (
            SELECT experiment FROM arms GROUP BY experiment HAVING count(*) > 1
        )
        """,
    )


def _count_outcomes(engine: Engine, wanted: str | None) -> None:
    """Make the table `outcomes`: how many records of each experiment had which outcome."""
    engine.run(
        "counting records",
        f"""
        CREATE TABLE outcomes AS
        WITH repeated AS ( -- a click that names no experiment has that of the first with its id
            SELECT coalesce(e.experiment, c.experiment) AS experiment
            FROM duplicates AS d JOIN events AS e ON e.rowid = d.row
            LEFT JOIN clicks AS c ON c.row = d.first
        ), refused AS (
            SELECT experiment, problem FROM events WHERE problem IS NOT NULL
            UNION ALL
            SELECT experiment, CASE WHEN is_outside THEN 'clicks' END FROM lists
            UNION ALL
            SELECT experiment, NULL FROM kept WHERE kind IN ('duel', 'duels', 'control')
        )
        SELECT coalesce(experiment, {_only(wanted)}) AS experiment, outcome, problem,
            count(*) AS records
        FROM (
            SELECT experiment, problem,
                CASE WHEN problem IS NULL THEN 'accepted' ELSE 'dead_letter' END AS outcome
            FROM refused
            UNION ALL
            SELECT experiment, NULL, 'duplicate' FROM repeated
            UNION ALL
            SELECT experiment, CASE WHEN outcome = 'dead_letter' THEN 'click' END, outcome
            FROM clicks
        ) GROUP BY ALL
        """,
    )


def _only(wanted: str | None) -> str:
    """The only experiment of the log, in SQL, to which all clicks belong; else NULL."""
    others = "false" if wanted is None else f"experiment <> {quoted(wanted)}"
    return f"""(
        SELECT any_value(experiment) FROM arms
        HAVING count(DISTINCT experiment) = 1 AND NOT EXISTS (SELECT 1 FROM events WHERE {others})
    )"""

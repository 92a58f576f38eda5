"""Rows of any log as events with the same columns, in the table `events`.

A row that cannot be used has a `problem` and stays in the table, so that it is counted. Ids are
kept as 128 bits of MD5: DuckDB's own `hash` has collisions already among some thousand similar ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Final

from streamduel.analysis.client_columns import find_other_clients
from streamduel.analysis.control_rows import (
    control_record,
    field_of,
    has_controls,
    problem,
    without_markers,
)
from streamduel.analysis.engine import Engine, quoted
from streamduel.analysis.fields import plain, segment_name
from streamduel.analysis.foreign_values import read_foreign_values
from streamduel.analysis.kinds import Source
from streamduel.analysis.meanings import is_mirrored
from streamduel.analysis.names import SHOWN
from streamduel.analysis.row_counts import check_row_counts
from streamduel.analysis.service_rules import LIMITS
from streamduel.analysis.tables import TIMES, Table
from streamduel.analysis.unnamed_sides import sides
from streamduel.record_rules import ACTION_FIELDS, TYPES
from streamduel.records import MAX_COUNT, MAX_NAME, MAX_NOTE, MAX_QUERY

_FIRST_TIMES: Final = {1e11: 1.0, 1e8: 1000.0, 1e14: 1e-3, 1e17: 1e-6}
"""The smallest number that is a time in a unit, in 1973, and milliseconds per unit; the largest, in
5138, is a thousand times as large. Of two units with equally many times the first is taken."""

MAX_RANKS: Final = LIMITS.max_ranks
"""Ranks of a list and clicks on it."""

SCHEMA: Final = """
CREATE TABLE events (
    kind VARCHAR, problem VARCHAR, is_flat BOOLEAN, is_sides BOOLEAN, is_numbered BOOLEAN,
    experiment VARCHAR, key UHUGEINT,
    a VARCHAR, b VARCHAR, winner VARCHAR, wins_a BIGINT, wins_b BIGINT, ties BIGINT,
    teams VARCHAR, clicks STRUCT(rank BIGINT, action VARCHAR, ts BIGINT)[], chances DOUBLE[],
    docs VARCHAR[], impression UHUGEINT, rank BIGINT, doc VARCHAR, action VARCHAR, arm VARCHAR,
    ts BIGINT, clicked_at BIGINT, -- of a click: its own, not the broker's time
    client UHUGEINT, segment VARCHAR, query VARCHAR,
    detail VARCHAR, actor VARCHAR, control VARCHAR, unusable VARCHAR
);
CREATE TABLE half_winners (col VARCHAR); -- columns that tell of one side alone whether it has won
CREATE TABLE other_clients (col VARCHAR); -- columns that may hold the clients
CREATE TABLE markers (experiment VARCHAR, id VARCHAR); -- of the records of a control topic
CREATE TABLE places (col VARCHAR); -- columns of the rankers that were shown on the first side
CREATE TABLE readings (name VARCHAR, verdict VARCHAR, sentence VARCHAR) -- what numbers mean
"""

_TEXTS: Final = (
    "type", "experiment", "a", "b", "winner", "wins_a", "wins_b", "ties", "teams", "clicks",
    "clicks_a", "clicks_b", "clicked_docs", "docs", "chances", "impression", "rank", "doc",
    "action", "arm", "id", "ts", "own_ts", "client", "query",
)  # fmt: skip

_MAY_BE_NOTHING: Final = frozenset({"id", "client", "impression", "teams", "rank", "doc", "ts"})
"""Fields of other programs in which words such as NULL are nothing."""

_ARRAYS: Final = ("teams", "clicks", "docs", "chances")
"""Of streamduel's own records: a string is no array."""


def load(engine: Engine, source: Source, experiment: str) -> Counter[str]:
    """Append the rows of a source to `events`.

    Args:
        engine: with the table `events`.
        source: the rows.
        experiment: the name of an experiment that rows do not name; clicks have that of their
            list.

    Returns:
        Rows of another program that are no clicks, by the reason.
    """
    source = replace(source, table=without_markers(engine, source.table))
    own = source.kind != "flat"
    time = source.columns.fields.get("ts")
    factor = 1.0
    is_date = source.table.columns.get(time or "", "").startswith(TIMES)
    if not own and time is not None and not is_date:
        factor = _time_factor(engine, source.table, source.table.text(time))
    texts = _texts(engine, source, factor)
    ignored = _ignored(source)
    if source.kind == "flat":
        check_row_counts(engine, source)
        find_other_clients(engine, source)
    if source.kind == "flat" and is_mirrored(engine, source, texts):
        ignored["a comparison from its other side"] = f"{texts['a']} > {texts['b']}"
    counts = ", ".join(f"count(*) FILTER ({condition})" for condition in ignored.values())
    row = engine.rows(f"SELECT {counts} FROM {source.table.relation}")[0] if counts else ()
    kind = _typed_kind() if own else _flat_kind(set(texts))
    clicked_at = f"milliseconds(own_ts, {factor})" if "own_ts" in texts else "ts"
    sides_only = "true" if source.sides_only else "is_counted"
    engine.run(
        f"reading {source.table.where}",
        f"INSERT INTO events SELECT kind, {_problem(own)}, {not own}, {sides_only} AS is_sides,"
        " coalesce(is_numbered, false),"
        " experiment, key, a, b, winner, wins_a, wins_b, ties, teams, clicks, chances, docs,"
        f" impression, rank, doc, action, arm, ts, CASE WHEN kind = 'click' THEN {clicked_at} END,"
        " client, segment, query,"
        " detail, actor, control,"
        " left(CASE WHEN problem IS NULL AND ts IS NULL THEN ts_text WHEN problem IS"
        " NOT NULL THEN coalesce(rejected, CASE problem WHEN 'winner' THEN winner_text WHEN 'teams'"
        " THEN teams_text WHEN 'clicks' THEN clicks_text WHEN 'counts' THEN counts_text END) END,"
        " 100)"
        f" FROM ({_values(kind, own, factor, experiment)} FROM"
        f" ({_rows(source, texts, ignored.values())}))",
    )
    return Counter({reason: n for reason, n in zip(ignored, row, strict=True) if n})


def _ignored(source: Source) -> dict[str, str]:
    """Conditions in SQL of rows that are no clicks, in a log of clicks, by their reason."""
    fields, text = source.columns.fields, source.table.text
    if source.kind != "flat" or "impression" not in fields:
        return {}
    found = {}
    if "clicked" in fields:
        flag = text(fields["clicked"])
        found[f"'{fields['clicked'][:80]}' is not true"] = (
            f"is_flag({flag}) AND flag({flag}) IS DISTINCT FROM true"  # it may be a time
        )
    if "action" in fields:
        shown = ", ".join(map(quoted, SHOWN))
        action = f"coalesce(plain({text(fields['action'])}) IN ({shown}), false)"
        found[f"'{fields['action'][:80]}' is no click"] = action
    if "teams" in fields:  # lists and clicks in one table
        is_click = f"is_nothing({text(fields['teams'])})"
        found = {reason: f"{is_click} AND {condition}" for reason, condition in found.items()}
    return found


def _texts(engine: Engine, source: Source, factor: float) -> dict[str, str]:
    """For each field that the rows have, the SQL expression of its text."""
    fields, table = source.columns.fields, source.table
    arrays = _ARRAYS if source.kind == "own" else ()
    texts: dict[str, str] = {
        field: table.text(fields[field], quotes=field in arrays)
        for field in _TEXTS
        if field in fields
    }
    if source.kind != "own" and has_controls(engine, table):
        texts["control"] = control_record(table, fields)
        texts |= {each: table.text(each) for each in ("action", "arm") if each in table.columns}
    if source.kind == "own" and table.has_broker_time and fields["ts"] == "ts":
        # The time of the service on Kafka; a negative one is none.
        factor = _time_factor(engine, table, "broker_time")
        time = f"milliseconds(broker_time, {factor})"
        texts["own_ts"] = texts["ts"]
        texts["ts"] = f"coalesce(CASE WHEN {time} >= 0 THEN {time}::VARCHAR END, {texts['ts']})"
    if source.unnamed:
        texts["experiment"] = f"nullif({texts['experiment']}, {quoted(source.unnamed)})"
    if source.kind == "flat":
        if not {"a", "b"} <= fields.keys():
            texts["a"], texts["b"] = sides(engine, source)
        elif any(place in plain(fields["a"]) for place in ("left", "first", "top")):
            engine.rows(f"INSERT INTO places VALUES ({quoted(fields['a'])})")
        read_foreign_values(engine, source, texts, factor)
    return texts


def _without_nothing(source: Source, rows: str) -> str:
    """The rows with NULL in place of words for nothing, in a query around that of the rows.

    There each value is read once. A ranker may be named `none`, but a click names no ranker.
    """
    zero = " OR whole(clicks) = 0" if source.zero_is_no_click else ""
    nothing = {field: f"is_nothing({field})" for field in sorted(_MAY_BE_NOTHING)}
    if {"teams", "impression"} <= source.columns.fields.keys():
        nothing |= {side: f"is_nothing(teams) AND is_nothing({side})" for side in ("a", "b")}
    nothing |= {"clicks": f"no_click(clicks){zero}", "clicked_docs": "no_click(clicked_docs)"}
    replaced = ", ".join(
        f"CASE WHEN NOT coalesce({each}, false) THEN {field} END AS {field}"
        for field, each in nothing.items()
    )
    return f"SELECT * REPLACE ({replaced}) FROM ({rows})"


def _rows(source: Source, texts: Mapping[str, str], ignored: Collection[str]) -> str:
    """The query of the rows, with the same columns for every source.

    Args:
        source: the rows.
        texts: of each field.
        ignored: conditions of rows to leave out.
    """
    own = source.kind == "own"
    columns = [f"nullif({texts[field]}, '') AS {field}" if field in texts
               else f"NULL::VARCHAR AS {field}" for field in _TEXTS]  # fmt: skip
    columns.append(f"{_segment(source)} AS segment")
    columns.append(_control(source, texts))
    unread = "CASE WHEN json IS NULL THEN 'JSON or size' END" if source.table.is_json else "NULL"
    relation = source.table.relation
    if "control" in texts:
        unread = f"coalesce({unread}, {problem()})"
        relation = f"(SELECT *, {texts['control']} AS control_json FROM {relation})"
        columns.append("control_json")
    translated = source.table.text("rejected") if source.unnamed else "NULL::VARCHAR"
    columns.append(f"{translated} AS rejected")
    columns.append(f"{'refused_field(json::VARCHAR)' if own else unread} AS misfit")
    rows = f"SELECT {', '.join(columns)} FROM {relation}"
    if ignored:
        rows += f" WHERE NOT ({' OR '.join(ignored)})"
    return _without_nothing(source, rows) if source.kind == "flat" else rows


def _values(kind: str, own: bool, factor: float, default: str) -> str:
    """The values of the texts."""
    has_clicks = (
        "clicks_of(clicks)"
        if own
        else "coalesce(clicks_in(coalesce(clicked_docs, clicks), clicked_docs IS NOT NULL, docs),"
        " CASE WHEN clicks IS NULL AND clicked_docs IS NULL THEN [] END)"
    )
    side_clicks = (
        "[click_of(0, NULL, NULL) for _ in range(count_of(clicks_a))]"
        " || [click_of(1, NULL, NULL) for _ in range(count_of(clicks_b))]"
    )
    counted = (
        "clicks_a IS NOT NULL AND clicks_b IS NOT NULL AND (teams IS NULL OR"
        " (clicks IS NULL AND clicked_docs IS NULL))"
    )
    numbers = (
        f"NOT ({counted}) AND (clicked_docs IS NULL OR docs IS NULL)"
        " AND are_ranks(coalesce(clicked_docs, clicks), docs)"
    )
    of_list = "CASE WHEN kind = 'impression' THEN impression END"
    few = (
        f"count_of(clicks_a) BETWEEN 0 AND {MAX_RANKS}"
        f" AND count_of(clicks_b) BETWEEN 0 AND {MAX_RANKS}"
    )
    return f"""
    SELECT {kind} AS kind, {counted} AS is_counted,
      CASE WHEN kind = 'click' THEN experiment ELSE coalesce(experiment, {quoted(default)}) END
        AS experiment,
      md5_number(coalesce({"id, " if own else ""}{of_list}, id)) AS key,
      a, b,
      winner_of(winner, a, b, {own}) AS winner,
      count_of(wins_a) AS wins_a, count_of(wins_b) AS wins_b,
      CASE WHEN lower(wins_a) = 'false' AND lower(wins_b) = 'false' THEN 1
           ELSE coalesce(count_of(ties), 0) END AS ties,
      CASE WHEN {counted} THEN 'ab' ELSE teams_of(teams, a, b, {own}) END AS teams,
      CASE WHEN {counted} THEN CASE WHEN {few} THEN {side_clicks} END ELSE {has_clicks}
      END AS clicks,
      [nullif(x, 'nan'::DOUBLE) FOR x IN
        try_cast(CASE WHEN chances IS NOT NULL THEN entries(chances) END AS DOUBLE[])] AS chances,
      CASE WHEN NOT ({counted}) THEN entries(docs) END AS docs,
      md5_number(impression) AS impression,
      whole(rank) AS rank, doc,
      {not own} AND CASE WHEN kind = 'click' THEN rank IS NOT NULL ELSE {numbers} END
        AS is_numbered,
      left(action, 64) AS action, arm, milliseconds(ts, {factor}) AS ts,
      md5_number(client) AS client, segment,
      CASE WHEN docs IS NOT NULL THEN left(query, {MAX_QUERY}) END AS query,
      detail, actor, control, misfit, rejected, own_ts,
      winner AS winner_text, teams AS teams_text, ts AS ts_text,
      concat_ws(' / ', wins_a, wins_b, ties) AS counts_text,
      coalesce(clicked_docs, clicks) AS clicks_text"""


def _typed_kind() -> str:
    known = ", ".join(quoted(kind) for kind in TYPES)
    return f"CASE WHEN lower(type) IN ({known}) THEN lower(type) END"


def _flat_kind(there: set[str]) -> str:
    """The kind of a row without a type, by the fields that it has."""
    cases = ["WHEN control_json IS NOT NULL THEN 'control'"] if "control" in there else []
    cases.append("WHEN a = b THEN 'duel'")
    if {"wins_a", "wins_b"} <= there:
        cases.append("WHEN wins_a IS NOT NULL THEN 'duels'")
    if "teams" in there and {"clicks", "clicked_docs"} & there:
        cases.append("WHEN teams IS NOT NULL THEN 'interleaving'")
    if {"clicks_a", "clicks_b"} <= there:
        cases.append("WHEN clicks_a IS NOT NULL AND clicks_b IS NOT NULL THEN 'interleaving'")
    if "winner" in there:
        # Where clicks are on lists of their own, a list without a winner is no tie.
        is_duel = "winner IS NOT NULL" if {"teams", "impression"} <= there else "a IS NOT NULL"
        cases.append(f"WHEN {is_duel} THEN 'duel'")
    if "teams" in there:
        cases.append("WHEN teams IS NOT NULL THEN 'impression'")
    if "impression" in there:
        cases.append("WHEN impression IS NOT NULL THEN 'click'")
    return f"CASE {' '.join(cases)} END"


def _problem(own: bool) -> str:
    """What keeps a row from being used; NULL if nothing does."""
    spare = 0 if own else 1  # the ranks of other programs may begin with 1
    return f"""coalesce(CASE
      WHEN rejected IS NOT NULL THEN 'fields'
      WHEN kind IS NULL THEN coalesce(misfit, 'type')
      WHEN kind = 'control' THEN NULL
      WHEN kind = 'click' THEN CASE
        WHEN impression IS NULL OR (rank IS NULL AND doc IS NULL) OR rank < 0 THEN 'click' END
      WHEN a IS NULL OR b IS NULL OR len(a) > 256 OR len(b) > 256 THEN 'arms'
      WHEN kind = 'duel' THEN CASE WHEN a <> b AND winner IS NULL THEN 'winner' END
      WHEN a = b THEN 'arms'
      WHEN kind = 'duels' THEN CASE
        WHEN wins_a IS NULL OR wins_b IS NULL OR least(wins_a, wins_b, ties) < 0
          OR greatest(wins_a, wins_b, ties) > {MAX_COUNT} OR wins_a + wins_b + ties < 1
          THEN 'counts' END
      WHEN teams IS NULL OR contains(teams, '?') OR len(teams) > {MAX_RANKS} THEN 'teams'
      WHEN len(chances) <> len(teams) OR list_min(chances) < 0
        OR list_max(chances) > {1 if own else 1 + 1e-9} THEN 'chances'
      WHEN len(docs) <> len(teams) AND (kind = 'impression' OR {not own}) THEN 'docs'
      WHEN kind = 'interleaving' AND (
        clicks IS NULL OR len(clicks) > {MAX_RANKS}
        OR len([1 for c in clicks
                if c.rank IS NULL OR c.rank < 0 OR c.rank >= len(teams) + {spare}]) > 0)
        THEN 'clicks'
    END, misfit) AS problem"""


def _segment(source: Source) -> str:
    """The column `segment` as it is; others as an object by their names."""
    table, columns = source.table, source.columns.segments
    if not columns:
        return "NULL::VARCHAR"
    if len(columns) == 1 and segment_name(columns[0]) == "segment":
        text = table.text(columns[0])
        if table.is_json:
            return text
        # What DuckDB writes to CSV where other rows have objects.
        is_quoted = f"starts_with({text}, '\"') AND json_valid({text})"
        return f"CASE WHEN {is_quoted} THEN {text}::JSON ->> '$' ELSE {text} END"
    parts = ", ".join(f"{quoted(segment_name(column))}, {table.text(column)}" for column in columns)
    if len(columns) == 1:
        text = table.text(columns[0])
        single = f"json_object({parts})::VARCHAR"
        return f"CASE WHEN starts_with({text}, '{{') THEN {text} ELSE {single} END"
    return f"json_object({parts})::VARCHAR"


def _control(source: Source, texts: Mapping[str, str]) -> str:
    """What a control record changes, who acts, and its JSON."""
    if source.kind != "own" and "control" not in texts:
        return ", ".join(f"NULL::VARCHAR AS {each}" for each in ("detail", "actor", "control"))
    text = source.table.text if source.kind == "own" else field_of
    record = "json" if source.kind == "own" else "control_json"
    details = {
        "text": text("text"),
        "arm": text("arm"),
        "b": f"{text('a')} || ' / ' || {text('b')}",
        "settings": f"array_to_string(list_sort(json_keys({text('settings', quotes=True)})), ', ')",
    }
    cases = " ".join(
        f"WHEN {quoted(action)} THEN left({details[fields[-1]]}, {MAX_NOTE})"
        for action, fields in ACTION_FIELDS.items()
        if fields
    )
    detail = f"CASE {text('action')} {cases} END"
    is_control = f"{text('type')} = 'control'"
    return (
        f"CASE WHEN {is_control} THEN {detail} END AS detail,"
        f" CASE WHEN {is_control} THEN left({text('actor')}, {MAX_NAME}) END AS actor,"
        f" CASE WHEN {is_control} THEN {record}::VARCHAR END AS control"
    )


def _time_factor(engine: Engine, table: Table, text: str) -> float:
    """Milliseconds per unit of the numbers in a column of times: the unit in which most are times.

    All rows count, because they may be in any order; NaN and infinity are in no range. Numbers that
    are too small for any unit are milliseconds since some other moment, as in examples.
    """
    small = f" OR t > 0 AND t < {min(_FIRST_TIMES)}"
    ranges = ", ".join(
        f"count(*) FILTER (t >= {first} AND t < {1000 * first}{small if factor == 1.0 else ''})"
        for first, factor in _FIRST_TIMES.items()
    )
    counted = engine.keep(
        f"looking at the times of {table.where}",
        f"SELECT {ranges} FROM (SELECT try_cast({text} AS DOUBLE) AS t FROM {table.relation})",
    )
    (numbers,) = engine.rows(f"FROM {counted}")
    return max(zip(numbers, _FIRST_TIMES.values(), strict=True), key=itemgetter(0))[1]

"""Logs whose records are in a column: dumps of topics, and tables with JSON as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from streamduel.analysis.analyze import Request, analyze
from tests.unit.analysis.exports import (
    OPTIONS,
    ROWS,
    START,
    Row,
    check,
    iso,
    json_lines,
    only,
    winner,
    written,
)

OWN: list[Row] = [
    record
    for row in ROWS
    for record in [
        {"type": "impression", "id": row["id"], "experiment": "search", "a": row["a"],
         "b": row["b"], "teams": row["teams"], "ts": row["ts"], "client": row["client"]},
        *({"type": "click", "id": f"{row['id']}/c", "impression": row["id"], "experiment": "search",
           "rank": rank, "ts": row["ts"] + 500} for rank in row["clicks"]),
    ]
]  # fmt: skip


def dumped(column: str, *, as_text: bool) -> list[Row]:
    """The records as a program that copies a topic writes them."""
    return [
        {"topic": "clicks", "partition": 0, "offset": offset, "timestamp": record["ts"] + 90,
         "key": "search", column: json.dumps(record) if as_text else record}
        for offset, record in enumerate(OWN)
    ]  # fmt: skip


@pytest.mark.parametrize("column", ["payload", "value", "line"])
@pytest.mark.parametrize("as_text", [True, False])
def test_a_dump_of_a_topic_is_its_records(column: str, as_text: bool, tmp_path: Path) -> None:
    found = only(json_lines(tmp_path / "dump.jsonl", dumped(column, as_text=as_text)))
    check(found)
    assert found.tallies["accepted"] == len(OWN)


@pytest.mark.parametrize("suffix", OPTIONS)
def test_a_table_of_records_as_text_is_its_records(suffix: str, tmp_path: Path) -> None:
    rows = dumped("message", as_text=True)
    check(only(written(tmp_path / f"dump.{suffix}", rows, OPTIONS[suffix])))


def test_records_may_be_binary(tmp_path: Path) -> None:
    text = written(tmp_path / "text.parquet", dumped("value", as_text=True), "FORMAT parquet")
    query = f"SELECT encode(value) AS value, encode(key) AS key, \"offset\" FROM '{text}'"
    (found,) = analyze(Request([], sql=query)).experiments.values()
    check(found)


def late_by_broker(time: Callable[[int], object], **record: object) -> list[Row]:
    """A dump in whose broker's times half of the clicks are too late; in the records none is."""
    rows: list[Row] = []
    for n in range(40):
        at, click = START + 1000 * n, START + 1000 * n + (700_000 if n % 2 else 5000)
        common = {"experiment": "search", **record}
        shown: Row = {"type": "impression", "id": f"i{n}", "a": "x", "b": "y", "teams": ["a", "b"]}
        clicked: Row = {"type": "click", "id": f"c{n}", "impression": f"i{n}", "rank": 0}
        rows += [
            {"partition": 0, "offset": len(rows) + more, "timestamp": time(moment),
             "value": json.dumps({**each, **common})}
            for more, (each, moment) in enumerate([(shown, at), (clicked, click)])
        ]  # fmt: skip
    return rows


@pytest.mark.parametrize(
    "time",
    [
        pytest.param(lambda ms: ms, id="milliseconds"),
        pytest.param(lambda ms: ms * 1000, id="microseconds"),
        pytest.param(lambda ms: f"{ms}", id="text"),
        pytest.param(lambda ms: datetime.fromtimestamp(ms / 1000, UTC).isoformat(), id="ISO 8601"),
    ],
)
@pytest.mark.parametrize(
    ("suffix", "column"), [("json", "ts"), ("csv", "timestamp"), ("parquet", "timestamp")]
)
def test_the_time_of_the_broker_counts(
    suffix: str, column: str, time: Callable[[int], object], tmp_path: Path
) -> None:
    rows = [
        {column if key == "timestamp" else key: value for key, value in row.items()}
        for row in late_by_broker(time, ts=START)
    ]
    found = only(written(tmp_path / f"dump.{suffix}", rows, OPTIONS[suffix]))
    assert (found.tallies["late"], found.tallies["accepted"]) == (20, 60)


@pytest.mark.parametrize("none", [-1, None])
def test_a_record_without_a_time_of_the_broker_has_its_own(
    none: int | None, tmp_path: Path
) -> None:
    rows = late_by_broker(lambda _: none, ts=START)
    found = only(json_lines(tmp_path / "dump.jsonl", rows))
    assert [day.duels for day in found.days] == [40]
    assert found.tallies["late"] == 0


def in_objects(row: Row) -> Row:
    return {"query_id": row["id"], "clicks": {row[side]: winner(row) == side for side in "ab"}}


def in_results(row: Row) -> Row:
    results = [
        {"doc": f"d{rank}", "origin": row[team], "clicked": rank in row["clicks"]}
        for rank, team in enumerate(row["teams"])
    ]
    return {"id": row["id"], "ranker_a": row["a"], "ranker_b": row["b"], "results": results}


def in_arrays(row: Row) -> Row:
    place = {"a": 0, "b": 1, "tie": None}[winner(row)]
    return {"id": row["id"], "models": [row["a"], row["b"]], "winner_index": place}


def of_events(row: Row) -> Row:
    events = [{"index": rank, "ts": row["ts"] + 5} for rank in row["clicks"]]
    return {"id": row["id"], "teams": [row[team] for team in row["teams"]], "events": events}


@pytest.mark.parametrize("record", [in_objects, in_results, in_arrays, of_events])
@pytest.mark.parametrize("around", ["event", "a dump", "text"])
@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_a_record_of_another_program_may_be_in_an_object(
    suffix: str, around: str, record: Callable[[Row], Row], tmp_path: Path
) -> None:
    rows: list[Row] = []
    for number, row in enumerate(ROWS):
        event = {"id": f"e-{number}", "source": "/search", "data": record(row)}
        if around == "event":
            rows.append(event)
        else:
            value = {"payload": event}
            rows.append(
                {"offset": number, "value": json.dumps(value) if around == "text" else value}
            )
    check(only(written(tmp_path / f"x.{suffix}", rows, f"FORMAT {suffix}")))


def test_an_object_beside_the_record_does_not_count(tmp_path: Path) -> None:
    rows = [{**in_results(row), "context": {"id": "phone", "locale": "de"}} for row in ROWS]
    check(only(json_lines(tmp_path / "x.jsonl", rows)))


def test_a_field_of_an_object_may_be_named(tmp_path: Path) -> None:
    rows = [
        {"id": row["id"], "data": {"x": row["a"], "y": row["b"], "z": row.get(winner(row))}}
        for row in ROWS
    ]
    log = json_lines(tmp_path / "x.jsonl", rows)
    check(only(log, columns=["a=data.x", "b=data.y", "winner=data.z"]))


def test_a_dump_of_a_topic_may_be_of_another_program(tmp_path: Path) -> None:
    rows: list[Row] = []
    for row in ROWS:
        docs = [f"{row['id']}/{rank}" for rank in range(10)]
        attributes = {"a": row["a"], "b": row["b"], "teams": row["teams"]}
        rows.append({"query_id": row["id"], "query_response_hit_ids": docs, "timestamp": iso(row),
                     "query_attributes": attributes})  # fmt: skip
        rows += [
            {"query_id": row["id"], "action_name": "click", "timestamp": iso(row),
             "event_attributes": {"object": {"object_id": docs[rank]}}}
            for rank in row["clicks"]
        ]  # fmt: skip
    dump = [{"offset": offset, "value": row} for offset, row in enumerate(rows)]
    check(only(json_lines(tmp_path / "ubi.jsonl", dump)))


def events(**more: object) -> list[Row]:
    """Rows with what all events have, and the rest as text of JSON."""
    return [
        {"created_at": iso(row), "user_id": row["client"], "properties": json.dumps(
            {"search_id": row["id"], "left": row["a"], "right": row["b"], "winner": winner(row),
             **more})}
        for row in ROWS
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", OPTIONS)
def test_text_of_json_is_an_object(suffix: str, tmp_path: Path) -> None:
    found = only(written(tmp_path / f"x.{suffix}", events(), OPTIONS[suffix]))
    check(found)
    assert found.clients.clients == len({row["client"] for row in ROWS})
    assert len(found.days) == 1


def test_a_field_inside_of_text_can_be_named(tmp_path: Path) -> None:
    rows = [{"event": row["properties"], "n": n} for n, row in enumerate(events(best="x"))]
    log = written(tmp_path / "x.csv", rows, "FORMAT csv")
    check(only(log, columns=["winner=event.winner", "id=n"]))


def test_results_may_be_text_of_json(tmp_path: Path) -> None:
    rows = [
        {"search_id": row["id"], "results": json.dumps(
            [{"doc": f"d{rank}", "ranker": row[team], "clicked": rank in row["clicks"]}
             for rank, team in enumerate(row["teams"])])}
        for row in ROWS
    ]  # fmt: skip
    check(only(written(tmp_path / "x.csv", rows, "FORMAT csv")))


def test_text_that_is_cut_off_costs_its_row_only(tmp_path: Path) -> None:
    rows = events()
    cut = [{**row, "properties": row["properties"][:-5]} for row in rows[:9]]
    found = only(json_lines(tmp_path / "x.jsonl", cut + rows))
    check(found)
    assert found.tallies["dead_letter"] == len(cut)


def test_text_that_is_often_no_json_stays_text(tmp_path: Path) -> None:
    rows = [
        {"left": row["a"], "right": row["b"], "winner": winner(row),
         "note": '{"winner": "left"}' if number % 4 else "{left}"}
        for number, row in enumerate(ROWS)
    ]  # fmt: skip
    check(only(json_lines(tmp_path / "x.jsonl", rows)))

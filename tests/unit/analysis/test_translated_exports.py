"""Exports of UBI and Solr, whose rows several records are made of."""

from __future__ import annotations

from pathlib import Path

import duckdb

from tests.unit.analysis.exports import (
    ROWS,
    WINS,
    Row,
    check,
    iso,
    json_lines,
    only,
    written,
)


def ubi(rows: list[Row], *, by_event: bool = False) -> tuple[list[Row], list[Row]]:
    """Queries and events."""
    queries, events = [], []
    for row in rows:
        docs = [f"{row['id']}-{rank}" for rank in range(10)]
        teams = [row[team] for team in row["teams"]]
        attributes = {} if by_event else {"a": row["a"], "b": row["b"], "teams": teams}
        common = {"query_id": row["id"], "client_id": row["client"], "timestamp": iso(row)}
        queries.append({**common, "user_query": "shoes", "query_response_hit_ids": docs,
                        "query_attributes": attributes})  # fmt: skip
        for rank in row["clicks"]:
            side = {"search_config": teams[rank]} if by_event else {}
            clicked = {"object_id": docs[rank], "object_id_field": "sku"}
            event = {"object": clicked, "position": {"ordinal": rank + 1}, **side}
            events.append({**common, "action_name": "click", "event_attributes": event})
    return queries, events


def test_infinite_numbers_of_a_translated_table_are_null(tmp_path: Path) -> None:
    queries, events = ubi(ROWS)
    source, path = json_lines(tmp_path / "x.jsonl", queries), tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT *, 'nan'::DOUBLE AS score, ['inf'::FLOAT] AS scores FROM read_json("
            f"'{source}')) TO '{path}' (FORMAT parquet)"
        )
    check(only(path, json_lines(tmp_path / "events.json", events)))


def test_events_of_ubi_may_come_after_all_queries(tmp_path: Path) -> None:
    queries, events = ubi(ROWS)
    check(only(json_lines(tmp_path / "ubi.ndjson", [*queries, *events])))


def test_queries_and_events_of_ubi_may_be_apart_and_be_tables(tmp_path: Path) -> None:
    queries, events = ubi(ROWS)
    check(only(
        written(tmp_path / "events.parquet", events, "FORMAT parquet"),
        json_lines(tmp_path / "queries.json", queries),
    ))  # fmt: skip


def test_events_of_ubi_may_name_the_sides(tmp_path: Path) -> None:
    queries, events = ubi(ROWS, by_event=True)
    found = only(json_lines(tmp_path / "ubi.ndjson", [*events, *queries]))

    assert found.champion == "ltr"
    (pair,) = found.pairs
    assert (pair.wins_a, pair.wins_b, pair.ties) == (WINS["bm25"], WINS["ltr"], 0)
    assert "position_debiased" not in found.credits  # ranks are not known


def test_responses_of_solr_are_read(tmp_path: Path) -> None:
    lines: list[Row] = []
    for row in ROWS:
        docs = [{"id": f"d{rank}", "[interleaving]": row[team]}
                for rank, team in enumerate(row["teams"])]  # fmt: skip
        lines += [
            {"type": "click", "query_id": row["id"], "doc": f"d{rank}", "ts": row["ts"] + 9}
            for rank in row["clicks"]
        ]
        lines.append({"type": "response", "query_id": row["id"], "ts": row["ts"], "docs": docs})
    check(only(json_lines(tmp_path / "solr.json", lines)))

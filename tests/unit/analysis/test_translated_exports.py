"""Exports of UBI and Solr, whose rows several records are made of."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from streamduel.analysis import translating
from streamduel.analysis.analyze import Request, analyze
from streamduel.errors import StreamduelError
from streamduel.formats import FORMATS, Ignored, SolrSettings
from streamduel.records import InputEvent
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


class OtherSettings(SolrSettings):
    """Ignores all records."""

    def translate(self, value: bytes) -> list[InputEvent]:
        raise Ignored("other")


def test_an_export_is_translated_by_its_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translating, "FORMATS", {**FORMATS, "solr": OtherSettings})
    clicks = [{"type": "click", "query_id": f"q{n}", "doc": "d1"} for n in range(9)]
    with pytest.raises(StreamduelError, match="9 other"):
        only(json_lines(tmp_path / "solr.jsonl", clicks))


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


def test_text_in_tables_of_ubi_may_be_json(tmp_path: Path) -> None:
    """Objects and arrays; in a table also if the first thousand rows have no such text."""
    queries, events = ubi(ROWS)
    columns = dict.fromkeys(key for row in [*queries, *events] for key in row)
    rows = [
        {key: json.dumps(row[key]) if isinstance(row.get(key), dict | list) else row.get(key)
         for key in columns}
        for row in [*queries, *events]
    ]  # fmt: skip
    check(only(written(tmp_path / "ubi.csv", rows, "FORMAT csv")))
    check(
        only(json_lines(tmp_path / "ubi.jsonl", sorted(rows, key=lambda row: str(row["query_id"]))))
    )


def test_ubi_may_be_flat_as_in_csv_of_opensearch_dashboards(tmp_path: Path) -> None:
    queries, events = ubi(ROWS)
    rows = []
    for row in [*queries, *events]:
        time = datetime.fromisoformat(row["timestamp"]).strftime("%b %-d, %Y @ %H:%M:%S.%f")[:-3]
        attributes = row.get("query_attributes", {})
        clicked = row.get("event_attributes", {"object": {}, "position": {}})
        rows.append({
            "timestamp": time, "query_id": row["query_id"], "client_id": row["client_id"],
            "query_response_hit_ids": ", ".join(row.get("query_response_hit_ids", [])),
            "query_attributes.a": attributes.get("a"), "query_attributes.b": attributes.get("b"),
            "query_attributes.teams": ", ".join(attributes.get("teams", [])),
            "action_name": row.get("action_name"),
            "event_attributes.object.object_id": clicked["object"].get("object_id"),
            "event_attributes.position.ordinal": clicked["position"].get("ordinal"),
        })  # fmt: skip
    found = only(written(tmp_path / "ubi.csv", rows, "FORMAT csv"))
    check(found)
    assert [day.start for day in found.days] == ["2026-09-21"]
    assert found.clients.clients == len({row["client"] for row in ROWS})


def test_events_of_ubi_may_name_the_sides(tmp_path: Path) -> None:
    queries, events = ubi(ROWS, by_event=True)
    found = only(json_lines(tmp_path / "ubi.ndjson", [*events, *queries]))

    assert found.champion == "ltr"
    (pair,) = found.pairs
    assert (pair.wins_a, pair.wins_b, pair.ties) == (WINS["bm25"], WINS["ltr"], 0)
    assert "position_debiased" not in found.credits  # ranks are not known
    assert "first_click" in found.credits  # the order is


@pytest.mark.parametrize("times", [1, 2])
def test_events_that_open_their_impression_again_repeat_no_id(tmp_path: Path, times: int) -> None:
    _, events = ubi(ROWS, by_event=True)
    shown = [{**event, "action_name": "impression"} for event in events]
    found = only(json_lines(tmp_path / "ubi.ndjson", [*shown, *events * times]))

    n = len(events)
    assert (found.tallies["accepted"], found.tallies["duplicate"]) == (2 * n, (2 * times - 1) * n)
    (check,) = [each for each in found.checks if each.name == "duplicates"]
    assert check.verdict == ("fine" if times == 1 else "warning")
    repeated, total = (times - 1) * n, (times + 1) * n
    assert check.sentence.startswith(f"{repeated:,} of {total:,} records repeat an id")


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


WEIGHTED = {"credit": "weighted", "weights": {"click": 1, "cart": 3}}


def test_events_of_ubi_with_a_weighted_action_are_clicks(tmp_path: Path) -> None:
    queries, events = ubi(ROWS)
    carts = [{**event, "action_name": "cart"} for event in events]
    found = only(json_lines(tmp_path / "x.ndjson", [*queries, *carts]), **WEIGHTED)
    check(found)
    (told,) = [each for each in found.checks if each.name == "weights"]
    assert told.verdict == "warning"
    assert told.sentence == "Of the actions of --weight, no click has 'click'; clicks have 'cart'."

    both = only(json_lines(tmp_path / "y.ndjson", [*queries, *events, *carts]), **WEIGHTED)
    check(both)
    assert both.tallies["accepted"] == len([*queries, *events, *carts])
    assert not [each for each in both.checks if each.name == "weights"]


def test_clicks_of_solr_with_a_weighted_action_count(tmp_path: Path) -> None:
    lines: list[Row] = []
    for row in ROWS:
        docs = [{"id": f"d{rank}", "[interleaving]": row[team]}
                for rank, team in enumerate(row["teams"])]  # fmt: skip
        lines.append({"type": "response", "query_id": row["id"], "ts": row["ts"], "docs": docs})
        lines += [
            {"type": "click", "action": "cart", "query_id": row["id"], "doc": f"d{rank}",
             "ts": row["ts"] + 9} for rank in row["clicks"]
        ]  # fmt: skip
    check(only(json_lines(tmp_path / "solr.json", lines), **WEIGHTED))


def by_ordinal(rows: list[Row], first: int) -> list[Row]:
    """An export of UBI whose clicks name their documents by ordinals from `first`."""
    queries, events = ubi(rows)
    for event in events:
        attributes = event["event_attributes"]
        ordinal = attributes["position"]["ordinal"] - 1 + first
        event["event_attributes"] = {"position": {"ordinal": ordinal}}
    return [*queries, *events]


@pytest.mark.parametrize("first", [0, 1])
def test_ordinals_may_begin_with_0_or_1(tmp_path: Path, first: int) -> None:
    found = only(json_lines(tmp_path / "ubi.ndjson", by_ordinal(ROWS, first)))
    check(found)
    assert found.tallies["dead_letter"] == 0
    told = [each.sentence for each in found.checks if each.name == "ranks"]
    assert len(told) == 1 - first
    assert all("have the ordinal 0" in sentence for sentence in told)


def test_rows_that_cannot_be_translated_are_told_with_the_reason(tmp_path: Path) -> None:
    rows = by_ordinal(ROWS, 1)
    rows[-1]["event_attributes"]["position"]["ordinal"] = 0
    found = only(json_lines(tmp_path / "ubi.ndjson", rows))
    (usable,) = [each for each in found.checks if each.name == "usable records"]
    assert (
        "1 because of their fields (such as 'event_attributes.position.ordinal must be an"
        " integer from 1 (found 0).')" in usable.sentence
    )


def test_repeated_events_are_duplicates_of_the_experiment_of_their_list(tmp_path: Path) -> None:
    queries, events = ubi(ROWS)
    for row in queries[::2]:
        row["query_attributes"]["experiment"] = "shop"
    log = json_lines(tmp_path / "ubi.ndjson", [*queries, *events, *events])
    both = analyze(Request([str(log)]))
    tallies = [each.tallies for each in both.experiments.values()]
    assert sum(each["duplicate"] for each in tallies) == len(events)
    assert all(each["duplicate"] for each in tallies)
    assert not both.unread

"""Logs that streamduel has never seen: other formats, columns, orders and encodings."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from streamduel.analysis import joining, tables
from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.engine import Engine
from streamduel.analysis.report import ExperimentAnalysis
from streamduel.analysis.wording import verdict
from streamduel.errors import ConfigurationError, StreamduelError
from tests.unit.analysis.exports import Row, json_lines, lists, winner, written

ROWS = lists(2500)
WINS = {
    "ltr": sum(r["a" if winner(r) == "a" else "b"] == "ltr" for r in ROWS if winner(r) != "tie")
}
TIES = sum(winner(row) == "tie" for row in ROWS)
WINS["bm25"] = len(ROWS) - TIES - WINS["ltr"]


def only(*logs: Path, **settings: object) -> ExperimentAnalysis:
    found = analyze(Request([str(log) for log in logs], **settings)).experiments  # type: ignore[arg-type]
    (experiment,) = found.values()
    return experiment


def check(found: ExperimentAnalysis) -> None:
    """The analysis has the counts of `ROWS`, and its champion."""
    assert found.champion == "ltr"
    (pair,) = found.pairs
    assert (pair.a, pair.b, pair.ties) == ("bm25", "ltr", TIES)
    assert (pair.wins_a, pair.wins_b) == (WINS["bm25"], WINS["ltr"])


def named(**names: Callable[[Row], object]) -> list[Row]:
    """The rows with other columns."""
    return [{name: value(row) for name, value in names.items()} for row in ROWS]


def iso(row: Row) -> str:
    return datetime.fromtimestamp(row["ts"] / 1000, UTC).isoformat()


SHAPES: dict[str, list[Row]] = {
    "winner by name": named(
        query_id=lambda r: r["id"], left_ranker=lambda r: r["a"], right_ranker=lambda r: r["b"],
        winner=lambda r: "" if winner(r) == "tie" else r[winner(r)], timestamp=iso,
    ),
    "winner by side": named(
        RankerA=lambda r: r["a"], RankerB=lambda r: r["b"], time=lambda r: r["ts"] / 1000,
        Outcome=lambda r: {"a": "left", "b": "right", "tie": "draw"}[winner(r)],
    ),
    "teams and clicks": named(
        qid=lambda r: r["id"], model_a=lambda r: r["a"], model_b=lambda r: r["b"],
        teams=lambda r: r["teams"], clicked_ranks=lambda r: r["clicks"],
    ),
    "teams as text": named(
        qid=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"],
        teams=lambda r: "".join(r["teams"]).upper().translate({65: "L", 66: "R"}),
        clicks=lambda r: ",".join(map(str, r["clicks"])),
    ),
    "teams by name": named(
        qid=lambda r: r["id"], teams=lambda r: [r[team] for team in r["teams"]],
        clicks=lambda r: r["clicks"],
    ),
    "ranks from one": named(
        qid=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        clicks=lambda r: [rank + 1 for rank in r["clicks"]],
    ),
    "ranks from one in long lists": named(
        qid=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"],
        teams=lambda r: [*r["teams"], *"abab"], clicks=lambda r: [rank + 1 for rank in r["clicks"]],
    ),
    "flags": named(
        qid=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        clicks=lambda r: [rank in r["clicks"] for rank in range(10)],
    ),
    "clicks of each side": named(
        a=lambda r: r["a"], b=lambda r: r["b"], clicks_a=lambda r: int(winner(r) == "a"),
        clicks_b=lambda r: int(winner(r) == "b"),
    ),
    "counts": named(
        a=lambda r: r["a"], b=lambda r: r["b"], wins_a=lambda r: int(winner(r) == "a"),
        wins_b=lambda r: int(winner(r) == "b"), ties=lambda r: int(winner(r) == "tie"),
    ),
    "winner by number": named(
        ranker_1=lambda r: r["a"], ranker_2=lambda r: r["b"],
        winner=lambda r: {"a": 1, "b": 2, "tie": 0}[winner(r)],
    ),
    "winner by sign": named(
        a=lambda r: r["a"], b=lambda r: r["b"],
        outcome=lambda r: {"a": 1, "b": -1, "tie": 0}[winner(r)],
    ),
    "winner by column": named(
        control=lambda _: "bm25", treatment=lambda _: "ltr",
        winner=lambda r: {"bm25": "control", "ltr": "treatment", None: None}[r.get(winner(r))],
    ),
    "one click": named(
        qid=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"],
        teams=lambda r: "|".join(r["teams"]),
        clicked_rank=lambda r: r["clicks"][0] if r["clicks"] else -1,
    ),
    "clicks as objects": named(
        qid=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        clicks=lambda r: [{"position": rank, "ts": 5} for rank in r["clicks"]],
    ),
    "a repeated query": named(
        query_id=lambda r: f"query {len(r['id'])}", session_id=lambda r: r["id"],
        a=lambda r: r["a"], b=lambda r: r["b"], winner=winner,
    ),
    "words in the other order": named(
        system_left=lambda r: r["a"], system_right=lambda r: r["b"], outcome=winner,
    ),
    "whether one side won": named(
        request_uuid=lambda r: r["id"], left=lambda r: r["a"], right=lambda r: r["b"],
        left_won=lambda r: {"a": True, "b": False, "tie": None}[winner(r)],
    ),
    "whether each side won": named(
        id=lambda r: r["id"], first_model=lambda r: r["a"], second_model=lambda r: r["b"],
        first_model_won=lambda r: int(winner(r) == "a"),
        second_model_won=lambda r: int(winner(r) == "b"),
    ),
    "wins that are true or false": named(
        ranker_a=lambda r: r["a"], ranker_b=lambda r: r["b"],
        wins_a=lambda r: winner(r) == "a", wins_b=lambda r: winner(r) == "b",
    ),
    "winner by the name of its column": named(
        left_system_name=lambda r: r["a"], right_system_name=lambda r: r["b"],
        outcome=lambda r: {"a": "left_system_name", "b": "right_system_name"}.get(winner(r)),
    ),
    "winner with a verb": named(
        left=lambda r: r["a"], right=lambda r: r["b"],
        outcome=lambda r: {"a": "left_won", "b": "Right wins", "tie": "no_winner"}[winner(r)],
    ),
    "counts of clicks": named(
        control=lambda _: "bm25", treatment=lambda _: "ltr",
        control_clicks=lambda r: int(r.get(winner(r)) == "bm25"),
        treatment_clicks=lambda r: int(r.get(winner(r)) == "ltr"),
    ),
    "clicks on documents": named(
        id=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        docs=lambda r: [f"{r['id']}/{rank}" for rank in range(10)],
        clicks=lambda r: [f"{r['id']}/{rank}" for rank in r["clicks"]],
    ),
    "0 or 1 for each rank": named(
        id=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        clicks=lambda r: [int(rank in r["clicks"]) for rank in range(10)],
    ),
    "clicks on documents with numbers": named(
        id=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        doc_ids=lambda _: list(range(9, -1, -1)),
        clicked_doc_ids=lambda r: " ".join(str(9 - rank) for rank in r["clicks"]),
    ),
    "typed, with other names": named(
        record_type=lambda _: "interleaving", impression_id=lambda r: r["id"],
        arm_a=lambda r: r["a"], arm_b=lambda r: r["b"], teams=lambda r: r["teams"],
        clicks=lambda r: r["clicks"],
    ),
}  # fmt: skip

OPTIONS = {
    "json": "FORMAT json", "json.gz": "FORMAT json, COMPRESSION gzip", "csv": "FORMAT csv",
    "tsv.gz": "FORMAT csv, COMPRESSION gzip, DELIMITER '\t'",
    "parquet": "FORMAT parquet, COMPRESSION gzip", "zst": "FORMAT json, COMPRESSION zstd",
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_columns_are_found_in_every_format(shape: str, suffix: str, tmp_path: Path) -> None:
    check(only(written(tmp_path / f"export.{suffix}", SHAPES[shape], OPTIONS[suffix])))


@pytest.mark.parametrize("suffix", ["json.gz", "tsv.gz", "zst"])
def test_compressed_text_is_read(suffix: str, tmp_path: Path) -> None:
    check(only(written(tmp_path / f"x.{suffix}", SHAPES["teams and clicks"], OPTIONS[suffix])))


def test_rankers_in_columns_that_nobody_has_named_are_not_taken_for_two_sides(
    tmp_path: Path,
) -> None:
    rows = named(
        top=lambda r: r["a"], other=lambda r: r["b"], shown=lambda r: f"{r['ts'] % 2}",
        counted=lambda r: f"{r['ts'] % 2}", outcome=winner,
    )  # fmt: skip
    path = written(tmp_path / "x.csv", rows, "FORMAT csv")
    with pytest.raises(ConfigurationError, match=r"in 'top', 'other', .* --map a=COLUMN"):
        only(path)
    check(only(path, columns=["a=top", "b=other"]))
    found = only(path, columns=["winner=outcome"])
    assert found.arms == ["a", "b"]
    assert found.checks[0].sentence == "The log names no rankers; sides are compared."


def test_one_column_of_text_may_name_both_rankers(tmp_path: Path) -> None:
    rows = named(x=lambda r: f"{r['a']} and {r['b']}", outcome=winner)
    with pytest.raises(ConfigurationError, match="rankers are in 'x'"):
        only(json_lines(tmp_path / "x.jsonl", rows))


def test_a_winner_is_recognised_in_upper_case(tmp_path: Path) -> None:
    rows = [{"a": "Left", "b": "ltr", "winner": each} for each in ("left", "LTR", "R", "l")]
    (pair,) = only(json_lines(tmp_path / "x.jsonl", rows)).pairs
    assert (pair.wins_a, pair.wins_b) == (2, 2)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1,"])
def test_values_that_are_no_json_do_not_matter_where_nothing_reads_them(
    value: str, tmp_path: Path
) -> None:
    path = json_lines(tmp_path / "x.jsonl", SHAPES["winner by name"])
    with path.open("a") as file:
        file.write(f'{{"query_id": "last", "score": {value}}}\n')
    check(only(path))


def test_infinite_numbers_of_a_table_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    source = json_lines(tmp_path / "x.jsonl", SHAPES["winner by name"])
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT *, 'nan'::DOUBLE AS score, ['inf'::DOUBLE] AS scores"
            f" FROM read_json('{source}')) TO '{path}' (FORMAT parquet)"
        )
    check(only(path))


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", SHAPES["winner by name"], "FORMAT parquet")
    check(only(path.rename(tmp_path / "export")))
    whole = tmp_path / "export.bin"
    whole.write_bytes(gzip.compress((tmp_path / "export").read_bytes()))
    check(only(whole))


def test_a_json_array_is_read(tmp_path: Path) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(SHAPES["winner by name"], indent=2))
    check(only(path))


def test_folders_and_patterns_are_read_as_one_log(tmp_path: Path) -> None:
    rows = SHAPES["teams and clicks"]
    for part in range(3):
        folder = tmp_path / f"day={part}"
        folder.mkdir()
        written(folder / "part.parquet", rows[part::3], "FORMAT parquet")
    (tmp_path / "_SUCCESS").touch()
    check(only(tmp_path))
    check(only(tmp_path / "*" / "*.parquet"))


def test_lists_and_clicks_may_be_apart(tmp_path: Path) -> None:
    shown = [{"impression_id": r["id"], "a": r["a"], "b": r["b"], "team_draft": r["teams"],
              "shown_at": iso(r)} for r in ROWS]  # fmt: skip
    clicks = [{"impression_id": r["id"], "position": rank, "clicked_at": iso(r)}
              for r in ROWS for rank in r["clicks"]]  # fmt: skip
    found = only(
        written(tmp_path / "clicks.csv", clicks, "FORMAT csv"),
        written(tmp_path / "lists.parquet", shown, "FORMAT parquet"),
    )
    check(found)
    assert found.tallies["accepted"] == len(shown) + len(clicks)


@pytest.mark.parametrize("types", [("serp", "click"), ("impression", "view", "click")])
def test_events_that_are_no_clicks_are_ignored(types: tuple[str, ...], tmp_path: Path) -> None:
    shown = [{"search_id": r["id"], "a": r["a"], "b": r["b"], "teams": r["teams"]} for r in ROWS]
    events = [{"search_id": r["id"], "position": rank + 1, "event_type": each}
              for r in ROWS for rank in r["clicks"] for each in types]  # fmt: skip
    logs = json_lines(tmp_path / "lists", shown), json_lines(tmp_path / "events", events)
    found = analyze(Request([str(log) for log in logs]))
    check(found.experiments["experiment"])
    assert found.ignored == {"'event_type' is no click": (len(types) - 1) * (len(ROWS) - TIES)}


def test_ranks_that_are_not_clicked_are_ignored(tmp_path: Path) -> None:
    shown = [{"search_id": r["id"], "a": r["a"], "b": r["b"], "teams": r["teams"]} for r in ROWS]
    ranks = [{"search_id": r["id"], "rank": rank, "clicked": rank in r["clicks"]}
             for r in ROWS for rank in range(10)]  # fmt: skip
    check(only(json_lines(tmp_path / "lists", shown), json_lines(tmp_path / "ranks", ranks)))


def test_lists_and_clicks_may_be_rows_of_one_table(tmp_path: Path) -> None:
    shown = [{"event": "serp", "event_id": f"s{r['id']}", "search_id": r["id"], "left": r["a"],
              "right": r["b"], "teams": r["teams"]} for r in ROWS]  # fmt: skip
    clicks = [{"event": "click", "event_id": f"c{r['id']}", "search_id": r["id"], "position": rank}
              for r in ROWS for rank in r["clicks"]]  # fmt: skip
    check(only(written(tmp_path / "x.csv", [*clicks, *shown], "FORMAT csv")))


def test_a_column_of_one_side_may_mean_ties_by_false(tmp_path: Path) -> None:
    rows = named(control=lambda _: "bm25", treatment=lambda _: "ltr",
                 control_won=lambda r: r.get(winner(r)) == "bm25",
                 tie=lambda r: winner(r) == "tie")  # fmt: skip
    check(only(json_lines(tmp_path / "x.json", rows)))
    for row in rows:
        del row["tie"]
    assert "If 'control_won' is false for ties too" in sentence(
        only(json_lines(tmp_path / "x.json", rows)), "ties"
    )


def test_numbers_of_sides_are_not_names_of_rankers(tmp_path: Path) -> None:
    rows = [{"left": "B", "right": "A", "winner": each} for each in (1, 1, 2, 0)]
    (pair,) = only(json_lines(tmp_path / "x.json", rows)).pairs
    assert (pair.a, pair.wins_a, pair.wins_b, pair.ties) == ("A", 1, 2, 1)


@pytest.mark.parametrize("ids", [(1, 2), (2, 1), (0, 1)])
@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_rankers_may_have_numbers(ids: tuple[int, int], suffix: str, tmp_path: Path) -> None:
    number = dict(zip(("bm25", "ltr"), ids, strict=True))
    rows = named(
        left=lambda r: number[r["a"]], right=lambda r: number[r["b"]],
        winner=lambda r: float(number[r[winner(r)]]) if winner(r) in r else None,
    )  # fmt: skip
    (pair,) = only(written(tmp_path / f"x.{suffix}", rows, OPTIONS[suffix])).pairs
    wins = {pair.a: pair.wins_a, pair.b: pair.wins_b}
    assert wins == {str(number[arm]): n for arm, n in WINS.items()}


def test_fields_of_structs_are_columns(tmp_path: Path) -> None:
    rows = named(request=lambda r: {"id": r["id"], "at": iso(r)}, clicks=lambda r: r["clicks"],
                 test=lambda r: {"left": r["a"], "right": r["b"], "teams": r["teams"]})  # fmt: skip
    check(only(written(tmp_path / "x.parquet", rows, "FORMAT parquet")))


def test_lines_of_json_in_another_encoding_are_told(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    row = b'{"a": "bm25", "b": "ltr", "winner": "b", "query": "ok"}\n'
    path.write_bytes(90 * row + 10 * row.replace(b"ok", b"\xf6k"))
    why = sentence(only(path), "usable records")
    assert why.startswith("10 of 100 records cannot be used: 10 because of their JSON or size")


def test_the_meaning_of_numbers_is_told(tmp_path: Path) -> None:
    found = only(json_lines(tmp_path / "x.json", SHAPES["winner by sign"]))
    (told,) = [check.sentence for check in found.checks if check.name == "winner"]
    assert told == "In 'outcome', 1 is taken as a victory of 'a', -1 of 'b', and 0 a tie."


@pytest.mark.parametrize("most", [1, 64])
def test_rows_of_csv_that_cannot_be_read_are_told(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_SINGLE", most)
    row = b"bm25,ltr,ltr,ok\n"
    rows = 4500 * row + 500 * row.replace(b"ok", b"\xf6k")
    for name in ("x.csv", "y.csv"):
        (tmp_path / name).write_bytes(b"a,b,winner,query\n" + rows)
    why = sentence(only(tmp_path), "usable records")
    assert why.startswith("1,000 of 10,000 records cannot be used: 1,000 because of their invalid")


def test_clicks_are_put_into_some_lists_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "GROUPED_AT_ONCE", 600)
    shown = [{"list_id": r["id"], "a": r["a"], "b": r["b"], "teams": r["teams"]} for r in ROWS]
    clicks = [{"list_id": r["id"], "rank": rank} for r in ROWS for rank in r["clicks"]]
    check(only(json_lines(tmp_path / "x", shown), json_lines(tmp_path / "y", clicks)))


def test_columns_with_any_name_are_mapped(tmp_path: Path) -> None:
    rows = [{"k": r["id"], "meta": {"x": r["a"], "y": r["b"]}, "z": winner(r)} for r in ROWS]
    columns = ["id=k", "a=meta.x", "b=meta.y", "winner=z"]
    for suffix in ("json", "parquet"):
        path = written(tmp_path / f"x.{suffix}", rows, OPTIONS[suffix])
        check(only(path, columns=columns, experiment="mine"))


def test_winners_that_can_be_read_in_two_ways_are_refused(tmp_path: Path) -> None:
    rows = [{"a": r["a"], "b": r["b"], "winner": int(winner(r) == "a")} for r in ROWS]
    with pytest.raises(ConfigurationError, match="has the winners 0 and 1"):
        only(json_lines(tmp_path / "x.json", rows))


def test_repeated_ids_count_once(tmp_path: Path) -> None:
    rows = SHAPES["winner by name"]
    found = only(json_lines(tmp_path / "x.json", [*rows, *rows[:700]]))
    check(found)
    assert found.tallies["duplicate"] == 700


def test_a_moment_is_the_same_in_csv_and_parquet(tmp_path: Path) -> None:
    rows = SHAPES["winner by name"]
    table = written(tmp_path / "x.csv", rows, "FORMAT csv"), tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT * REPLACE (timestamp::TIMESTAMPTZ AS timestamp) FROM '{table[0]}')"
            f" TO '{table[1]}' (FORMAT parquet)"
        )
    found = only(*table)
    check(found)
    assert found.tallies["duplicate"] == len(ROWS)


def test_spaces_after_separators_are_not_part_of_names(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id , a , b , winner\n1, bm25, ltr, ltr\n")
    assert only(tmp_path / "x.csv").arms == ["bm25", "ltr"]


def test_infinite_numbers_of_a_translated_table_are_null(tmp_path: Path) -> None:
    queries, events = ubi(ROWS)
    source, path = json_lines(tmp_path / "x.jsonl", queries), tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT *, 'nan'::DOUBLE AS score, ['inf'::FLOAT] AS scores FROM read_json("
            f"'{source}')) TO '{path}' (FORMAT parquet)"
        )
    check(only(path, json_lines(tmp_path / "events.json", events)))


def test_a_query_may_have_statements_before_it(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", SHAPES["winner by name"], "FORMAT parquet")
    sql = f"CREATE VIEW log AS FROM '{path}'; SELECT * FROM log WHERE timestamp IS NOT NULL"
    check(only(sql=sql))


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


def test_seconds_and_nanoseconds_are_times(tmp_path: Path) -> None:
    for factor in (1e-3, 1e3, 1e6):
        rows = [{**row, "ts": row["ts"] * factor} for row in ROWS]
        assert only(json_lines(tmp_path / "x.json", rows)).days[0].start == "2026-09-21", factor


def test_temporary_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    only(json_lines(tmp_path / "x.json", SHAPES["winner by name"]))
    assert list((tmp_path / "temporary").iterdir()) == []


def counts(folder: Path, *beats: tuple[str, str]) -> Path:
    """A log of counts in which the first arm of each pair wins 90 of 100 duels."""
    log = folder / "counts.csv"
    log.write_text("a,b,wins_a,wins_b\n" + "".join(f"{i},{j},90,10\n" for i, j in beats))
    return log


def test_a_cycle_has_no_champion(tmp_path: Path) -> None:
    below = [("a", "d"), ("b", "d"), ("c", "d")]
    found = only(counts(tmp_path, ("a", "b"), ("b", "c"), ("c", "a"), *below))
    assert found.champion is None
    assert found.no_winner
    assert verdict(found).startswith("no ranker beats all others")


def test_a_copeland_winner_is_no_condorcet_winner(tmp_path: Path) -> None:
    # a loses to b alone; each other ranker loses to at least two.
    beats = [("a", "c"), ("a", "d"), ("a", "e"), ("b", "a"), ("b", "e"), ("c", "b"), ("c", "e"),
             ("d", "b"), ("d", "c"), ("e", "d")]  # fmt: skip
    found = only(counts(tmp_path, *beats))
    assert (found.champion, found.seeks) == ("a", "copeland")
    assert "none beats all" in verdict(found)


@pytest.mark.parametrize(
    ("text", "a", "b", "teams"),
    [
        ("abba", "bm25", "ltr", "abba"),
        ("abba", "b", "a", "baab"),
        ("abba", "bm25", "a", "bbbb"),
        ("abba", "a", "b", "abba"),
        ('["a","b"]', "bm25", "ltr", "ab"),
        ('["a","b"]', "b", "a", "ba"),
        ('["a",null,"x"]', "bm25", "ltr", "a-?"),
    ],
)
def test_letters_are_sides_unless_a_ranker_has_their_name(
    text: str, a: str, b: str, teams: str
) -> None:
    with Engine() as engine:
        found = engine.rows("SELECT teams_of(?, ?, ?, false)", [text, a, b])
    assert found == [(teams,)]


def sentence(found: ExperimentAnalysis, name: str) -> str:
    """The sentence of a check that is not fine."""
    (check,) = [check for check in found.checks if check.name == name]
    assert check.verdict in {"warning", "failed"}
    return check.sentence


def test_lists_without_any_click_are_no_tie_that_is_fine(tmp_path: Path) -> None:
    rows = named(
        id=lambda r: r["id"], a=lambda r: r["a"], b=lambda r: r["b"], teams=lambda r: r["teams"],
        chosen=lambda r: r["clicks"],
    )[:200]  # fmt: skip
    path = json_lines(tmp_path / "x.json", rows)
    why = sentence(only(path), "clicks joined")
    assert why.startswith("None of 200 lists has a click. Name the column")
    (joined,) = [c for c in only(path, columns=["clicks=chosen"]).checks if c.name[:6] == "clicks"]
    assert joined.verdict == "fine"


def test_clicks_of_no_list_are_those_of_the_only_experiment(tmp_path: Path) -> None:
    shown = [{"list_id": r["id"], "a": r["a"], "b": r["b"], "teams": r["teams"]} for r in ROWS[:50]]
    clicks = [{"list_id": f"no {n}", "rank": n} for n in range(9)]
    lists, others = json_lines(tmp_path / "x", shown), json_lines(tmp_path / "y", clicks)
    found = only(lists, others)
    assert found.tallies["unjoined"] == 9
    assert "9 name no list of the log" in sentence(found, "clicks joined")
    named_one = analyze(Request([str(lists), str(others)], experiment="shop"))
    assert named_one.unread == {"clicks without a list": 9}
    with pytest.raises(StreamduelError, match=r"in 9 records; 9 are clicks whose list is not"):
        only(others)


def test_times_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"a": "bm25", "b": "ltr", "winner": "b", "time": time}
        for time in ("21.09.2026 14:13", "2026-09-21 14:13", None)
    ]
    found = only(json_lines(tmp_path / "x.json", rows))
    assert sentence(found, "times").startswith(
        "1 time cannot be read, such as '21.09.2026 14:13', and left out;"
    )
    assert "times" not in {c.name for c in only(json_lines(tmp_path / "x.json", rows[1:])).checks}


def test_values_that_cannot_be_used_are_shown(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"a": "bm25", "b": "ltr", "teams": "ab", "clicks": "0"},
        {"a": "bm25", "b": "ltr", "teams": "ab", "clicks": "doc-5"},
    ]
    why = sentence(only(json_lines(tmp_path / "x.json", rows)), "usable records")
    assert "1 because of their clicks (such as 'doc-5')" in why


def test_columns_and_words_of_winners_are_known(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"model_a": "bm25", "model_b": "ltr", "winning_model": winner}
        for winner in ("ltr", "ltr", "bm25", "No preference", "no winner", "NA")
    ]
    (pair,) = only(json_lines(tmp_path / "x.json", rows)).pairs
    assert (pair.wins_a, pair.wins_b, pair.ties) == (1, 2, 3)


def test_an_error_names_the_file_and_not_its_decompressed_copy(tmp_path: Path) -> None:
    table = written(tmp_path / "x.parquet", [{"x": 1}], "FORMAT parquet")
    whole = tmp_path / "x.parquet.gz"
    whole.write_bytes(gzip.compress(table.read_bytes()))
    with pytest.raises(ConfigurationError, match=f"nothing in '{re.escape(str(whole))}'"):
        only(whole)


def test_fields_that_no_path_can_name_do_not_matter(tmp_path: Path) -> None:
    odd = {'x"y': {"a": 1}, "": {"b": 1}, "x\\y": {"c": 1}, "note": "{", "empty": {}}
    rows = [{"k": r["id"], "meta": {"a": r["a"], "b": r["b"]}, "winner": winner(r)} for r in ROWS]
    check(only(json_lines(tmp_path / "x.json", [{**rows[0], **odd}, *rows[1:]])))

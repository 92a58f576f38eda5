"""Logs that streamduel has never seen: other formats, columns, orders and encodings."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import duckdb
import pytest

from streamduel.analysis import tables
from streamduel.analysis.engine import Engine
from streamduel.errors import ConfigurationError
from tests.unit.analysis.exports import (
    OPTIONS,
    ROWS,
    SHAPES,
    Row,
    check,
    iso,
    json_lines,
    named,
    only,
    sentence,
    winner,
    written,
)


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


def test_fields_of_structs_are_columns(tmp_path: Path) -> None:
    rows = named(request=lambda r: {"id": r["id"], "at": iso(r)}, clicks=lambda r: r["clicks"],
                 test=lambda r: {"left": r["a"], "right": r["b"], "teams": r["teams"]})  # fmt: skip
    check(only(written(tmp_path / "x.parquet", rows, "FORMAT parquet")))


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_the_name_of_an_object_says_whose_id_it_has(suffix: str, tmp_path: Path) -> None:
    rows = named(
        user=lambda r: {"id": r["client"]}, device=lambda r: {"type": "phone", "id": 7},
        request=lambda r: {"id": r["id"], "time": iso(r)}, query=lambda _: {"id": 1, "text": "bag"},
        experiment=lambda _: {"id": 3, "name": "home"},
        left=lambda r: {"name": r["a"]}, right=lambda r: {"name": r["b"]},
        winner=lambda r: {"name": r.get(winner(r))},
    )  # fmt: skip
    found = only(written(tmp_path / f"x.{suffix}", rows, OPTIONS[suffix]))
    check(found)
    assert found.tallies["duplicate"] == 0
    assert found.clients is not None
    assert set(found.segments) == {"device.type"}


@pytest.mark.parametrize(
    "nested",
    [
        named(left=lambda r: {"ranker": r["a"]}, right=lambda r: {"ranker": r["b"]},
              winner=lambda r: {"a": "left", "b": "right", "tie": None}[winner(r)]),
        named(rankers=lambda r: {side: r[side] for side in "ab"},
              clicks=lambda r: {side: int(side == winner(r)) for side in "ab"}),
        named(arm_a=lambda r: {"name": r["a"]}, arm_b=lambda r: {"name": r["b"]},
              scores=lambda r: {side: float(side == winner(r)) for side in "ab"}),
    ],
    ids=["rankers of sides", "sides of rankers", "scores"],
)  # fmt: skip
def test_the_sides_may_be_objects_or_in_objects(nested: list[Row], tmp_path: Path) -> None:
    check(only(json_lines(tmp_path / "x.jsonl", nested)))


def test_lines_of_json_in_another_encoding_are_told(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    row = b'{"a": "bm25", "b": "ltr", "winner": "b", "query": "ok"}\n'
    path.write_bytes(90 * row + 10 * row.replace(b"ok", b"\xf6k"))
    why = sentence(only(path), "usable records")
    assert why.startswith("10 of 100 records cannot be used: 10 because of their JSON or size")


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


def test_columns_with_any_name_are_mapped(tmp_path: Path) -> None:
    rows = [{"k": r["id"], "meta": {"x": r["a"], "y": r["b"]}, "z": winner(r)} for r in ROWS]
    columns = ["id=k", "a=meta.x", "b=meta.y", "winner=z"]
    for suffix in ("json", "parquet"):
        path = written(tmp_path / f"x.{suffix}", rows, OPTIONS[suffix])
        check(only(path, columns=columns, experiment="mine"))


def test_repeated_ids_count_once(tmp_path: Path) -> None:
    rows = SHAPES["winner by name"]
    found = only(json_lines(tmp_path / "x.json", [*rows, *rows[:700]]))
    check(found)
    assert found.tallies["duplicate"] == 700
    told = sentence(found, "duplicates")
    assert "(21.9%); each counts once. Check" in told  # all say the same as the first


def test_records_that_are_lost_by_the_id_of_a_user_are_told(tmp_path: Path) -> None:
    rows = named(id=lambda r: r["client"], a=lambda r: r["a"], b=lambda r: r["b"], winner=winner)
    found = only(json_lines(tmp_path / "x.json", rows))
    (told,) = [each for each in found.checks if each.name == "duplicates"]
    assert told.verdict == "failed"
    assert "of them say something else than the first, and are lost. Check whether" in told.sentence


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


def test_a_query_may_have_statements_before_it(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", SHAPES["winner by name"], "FORMAT parquet")
    sql = f"CREATE VIEW log AS FROM '{path}'; SELECT * FROM log WHERE timestamp IS NOT NULL"
    check(only(sql=sql))


def test_columns_may_be_in_a_map(tmp_path: Path) -> None:
    source, path = json_lines(tmp_path / "x.jsonl", SHAPES["winner by name"]), tmp_path / "x.pq"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT map {'left_ranker': left_ranker, 'right_ranker': right_ranker, 'winner':"
            f" winner}} AS attributes FROM read_json('{source}')) TO '{path}' (FORMAT parquet)"
        )
    check(only(path))


def test_seconds_and_nanoseconds_are_times(tmp_path: Path) -> None:
    for factor in (1e-3, 1e3, 1e6):
        rows = [{**row, "ts": row["ts"] * factor} for row in ROWS]
        assert only(json_lines(tmp_path / "x.json", rows)).days[0].start == "2026-09-21", factor


def test_temporary_files_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    only(json_lines(tmp_path / "x.json", SHAPES["winner by name"]))
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    "time",
    [
        "2026-09-21 07:13:20.250 -0700",  # Snowflake
        "2026-09-21 14:13:20.250 +0000",  # Ruby
        "2026-09-21 14:13:20.250 UTC",  # BigQuery
        "2026-09-21T14:13:20,250Z",
        "2026-09-21T14:13:20.250Z[UTC]",  # Java
        "Sep 21, 2026 @ 14:13:20.250",  # OpenSearch Dashboards
        "21/Sep/2026:14:13:20 +0000",  # web servers
        "Mon, 21 Sep 2026 14:13:20 GMT",  # JavaScript
        "Mon, 21 Sep 2026 16:13:20 +0200",
        "20260921T141320Z",
    ],
)
def test_times_as_programs_write_them(time: str, tmp_path: Path) -> None:
    with Engine() as engine:
        ((found,),) = engine.rows("SELECT milliseconds(?, 1)", [time])
    assert found // 1000 == 1_790_000_000
    rows: list[Row] = [{"a": "bm25", "b": "ltr", "winner": "b", "time": time}]
    assert [day.start for day in only(json_lines(tmp_path / "x", rows)).days] == ["2026-09-21"]


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


@pytest.mark.parametrize("odd", [0, 1_790_000_000, 1_790_000_000_000_000_000])
def test_mixed_units_of_time_are_told(odd: int, tmp_path: Path) -> None:
    rows: list[Row] = [
        {"a": "bm25", "b": "ltr", "winner": "b", "time": time}
        for time in (odd, 1_790_000_000_000, 1_790_000_060_000)
    ]
    assert sentence(only(json_lines(tmp_path / "x.json", rows)), "times").startswith(
        "1 of 3 times are before 1973 or after 5138:"
    )
    assert "times" not in {c.name for c in only(json_lines(tmp_path / "y.json", rows[1:])).checks}


def test_values_that_cannot_be_used_are_shown(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"a": "bm25", "b": "ltr", "teams": "ab", "clicks": "0"},
        {"a": "bm25", "b": "ltr", "teams": "ab", "clicks": "doc-5"},
    ]
    why = sentence(only(json_lines(tmp_path / "x.json", rows)), "usable records")
    assert "1 because of their clicks (such as 'doc-5')" in why


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


@pytest.mark.parametrize("column", ["{}_clicks", "{}_won", "wins_{}"])
def test_the_names_of_columns_name_the_sides(tmp_path: Path, column: str) -> None:
    names = column.format("treatment"), column.format("control")
    lines = [",".join(names), *("1,0" for _ in range(70)), *("0,1" for _ in range(30))]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(lines) + "\n")
    found = only(path)
    assert found.arms == ["control", "treatment"]
    assert (found.champion, found.pairs[0].wins_a, found.pairs[0].wins_b) == ("treatment", 30, 70)
    assert "rankers" not in {check.name for check in found.checks}


def test_an_export_that_has_the_log_twice_is_found(tmp_path: Path) -> None:
    rows = [f"{1_790_000_000_000 + 7 * n},old,new,{'b' if n % 3 else 'a'}" for n in range(300)]
    for copies in (1, 2):
        text = "\n".join(["ts,a,b,winner", *rows * copies])
        (tmp_path / f"{copies}.csv").write_text(text + "\n")
    (once,) = [it for it in only(tmp_path / "1.csv").checks if it.name == "duplicates"]
    assert once.verdict == "unknown"
    assert sentence(only(tmp_path / "2.csv"), "duplicates") == (
        "Nearly all records without an id are there 2 times, at the same moment: leave out the rows"
        " that repeat others."
    )


def test_clicks_may_name_products(tmp_path: Path) -> None:
    lists = [
        {"list_id": f"l{n}", "a": "old", "b": "new", "teams": ["a", "b"],
         "docs": [f"p{n}", f"q{n}"], "ts": 1_790_000_000_000 + n}
        for n in range(50)
    ]  # fmt: skip
    for name in ("product_id", "sku"):
        clicks = [
            {"list_id": f"l{n}", name: f"q{n}", "event": "click", "ts": 1_790_000_001_000 + n}
            for n in range(50)
        ]
        folder = tmp_path / name
        folder.mkdir()
        for file, rows in (("lists", lists), ("clicks", clicks)):
            (folder / f"{file}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
        found = only(folder)
        assert (found.pairs[0].a, found.pairs[0].wins_a) == ("new", 50)


@pytest.mark.parametrize(("fixed", "verdict"), [(True, "warning"), (False, "fine")])
def test_a_ranker_that_is_always_on_one_side_is_found(
    tmp_path: Path, fixed: bool, verdict: str
) -> None:
    sides = [("old", "new") if fixed or n % 2 else ("new", "old") for n in range(300)]
    rows = [
        f"{left},{right},{'left' if n % 3 else 'right'}" for n, (left, right) in enumerate(sides)
    ]
    (tmp_path / "x.csv").write_text("\n".join(["left,right,winner", *rows]) + "\n")
    (found,) = [it for it in only(tmp_path / "x.csv").checks if it.name == "sides"]
    assert found.verdict == verdict
    if fixed:
        assert found.sentence.startswith(
            "new is on the side other than 'left' in 100.0% of its duels"
        )

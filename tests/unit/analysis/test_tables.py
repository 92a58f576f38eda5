"""Files as tables: a table of each file, or of all of a kind where there are many."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import pytest

from streamduel.analysis import tables
from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.engine import Engine
from streamduel.analysis.inputs import find

CSV = "id,a,b,winner\n{},x,y,a\n"
OTHER_CSV = "winner,id,a,b\na,{},x,y\n"
ROW = {"id": "", "a": "x", "b": "y", "winner": "a"}

FILES = {
    "a.csv": CSV.format(1) + "too,short\n",
    "b.csv": CSV.format(2),
    "c.csv": OTHER_CSV.format(3),
    "d.csv.gz": CSV.format(4),
    "e.csv.zst": CSV.format(5),
    "f.csv.zst": OTHER_CSV.format(6),
    "g.jsonl": json.dumps({**ROW, "id": 7}),
    "h.json.gz": json.dumps({**ROW, "id": 8}),
    "i.json": json.dumps([{**ROW, "id": 9}]),
    "j.parquet": CSV.format(10),
    "k.parquet": "device,winner,id,a,b\nphone,a,11,x,y\n",
}
"""In some, the columns are in another order, or there is one more."""

TOGETHER = [("a.csv", 2), ("c.csv", 1), ("d.csv.gz", 1), ("e.csv.zst", 2), ("g.jsonl", 1),
            ("h.json.gz", 1), ("i.json", 1), ("j.parquet", 2)]  # fmt: skip


def write(folder: Path) -> None:
    for name, content in FILES.items():
        path = folder / name
        if name.endswith(".gz"):
            path.write_bytes(gzip.compress(content.encode()))
        elif name.endswith((".zst", ".parquet")):
            (folder / "source").write_text(content)
            options = "FORMAT parquet" if "parquet" in name else "FORMAT csv, COMPRESSION zstd"
            with duckdb.connect() as connection:
                table = f"read_csv('{folder / 'source'}', header = true, all_varchar = true)"
                connection.execute(f"COPY (FROM {table}) TO '{path}' ({options})")
            (folder / "source").unlink()
        else:
            path.write_text(content)


@pytest.mark.parametrize(
    ("most", "parts"),
    [(len(FILES), [(name, 1) for name in FILES]), (len(FILES) - 1, TOGETHER)],
    ids=["one by one", "together"],
)
def test_many_files_of_a_kind_are_one_table(
    most: int, parts: list[tuple[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_SINGLE", most)
    write(tmp_path)
    with Engine() as engine:
        files, _ = find([str(tmp_path)], engine.folder)
        found = tables.tables(engine, files)
        assert [table.where for table in found] == [
            f"{tmp_path / first}{' and 1 more' if n == 2 else ''}" for first, n in parts
        ]
        rows = [
            engine.rows(f"SELECT {each.text('id')}, {each.text('winner')} FROM {each.relation}")
            for each in found
        ]
        assert [len(each) for each in rows] == [n for _, n in parts]
        assert sorted(row for each in rows for row in each) == sorted(
            (str(number), "a") for number in range(1, len(FILES) + 1)
        )
        assert tables.rejects(engine) == {"missing columns in CSV": 1}


@pytest.mark.parametrize(("most", "end"), [(11, ""), (10, " (at least so many)")])
def test_rows_that_duckdb_no_longer_counts_are_told(
    most: int, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_REJECTS", most)
    path = tmp_path / "x.csv"
    duels = "".join(f"{n},x,y,{'xy'[n % 2]}\n" for n in range(1000))
    path.write_text(f"id,a,b,winner\n{duels}" + "too,short\n" * 5)  # two errors each
    found = analyze(Request([str(path)]))
    reason = f"missing columns in CSV{end}"
    assert found.unread == {reason: 5}
    (check,) = [x for x in found.experiments["experiment"].checks if x.name == "usable records"]
    assert check.verdict == ("failed" if end else "fine")
    assert f"5 because of their {reason}." in check.sentence


@pytest.mark.parametrize("column", ["row", "json", "t", "x"])
def test_a_row_has_all_its_columns_whatever_their_names(column: str) -> None:
    with Engine() as engine:
        table = tables.query_table(engine, f"SELECT 1 AS {column}, 'bm25' AS a")
        row = {column: 1, "a": "bm25"}
        assert tables.sample(engine, table) == [row]
        ((text,),) = engine.rows(f"SELECT json::VARCHAR FROM {tables.rows_as_json(table)}")
        assert json.loads(text) == row


@pytest.mark.parametrize(
    "end", ["", ";", " ; ;", "; -- done; é", "\n-- all rows", " /* é; */ ; -- done\n"]
)
def test_a_query_may_end_with_a_comment(end: str) -> None:
    with Engine() as engine:
        table = tables.query_table(engine, f"CREATE TABLE t AS SELECT ';é' AS a; FROM t{end}")
        assert engine.rows(f"SELECT a FROM {table.relation}") == [(";é",)]

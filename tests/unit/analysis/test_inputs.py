"""The files that the arguments of `analyze` name."""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import json
import lzma
import os
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamduel.analysis import inputs
from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.inputs import HEAD, find, paths
from streamduel.errors import ConfigurationError, StreamduelError
from tests.unit.analysis.exports import Row, only, written


def winners(path: Path, winner: str, n: int = 200) -> Path:
    """A table in which one ranker wins all duels."""
    path.write_text("left,right,winner\n" + f"x,y,{winner}\n" * n)
    return path


def test_a_name_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    winners(tmp_path / "log.csv", "x")
    path = tmp_path / os.fsdecode(b"caf\xe9.csv")
    winners(path, "y")
    for log in (path, tmp_path):
        with pytest.raises(ConfigurationError, match=r"must be UTF-8 \(found '.*caf\\udce9.csv'"):
            analyze(Request([str(log)]))


@pytest.mark.parametrize(
    ("name", "other"),
    [("log[1].csv", "log1.csv"), ("s*r.csv", "star.csv"), ("lo?.csv", "log.csv")],
)
def test_a_name_with_signs_of_a_pattern_is_that_file_only(
    tmp_path: Path, name: str, other: str
) -> None:
    winners(tmp_path / other, "right")
    found = only(winners(tmp_path / name, "left"))
    assert (found.champion, found.duels) == ("x", 200)


def test_a_pattern_that_names_no_file_names_those_that_match(tmp_path: Path) -> None:
    for name in ("log1.csv", "log[2].csv"):
        winners(tmp_path / name, "left", 50)
    assert only(tmp_path / "log*.csv").duels == 100
    assert only(tmp_path / "log[12].csv").duels == 50


def test_a_name_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    winners(tmp_path / "~log.csv", "left", 50)
    monkeypatch.chdir(tmp_path)
    assert only(Path("~log.csv")).duels == 50


def test_an_empty_path_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="found ''"):
        paths("")
    with pytest.raises(ConfigurationError, match="LOG must be a file"):
        analyze(Request([""]))


def test_a_directory_may_be_named_like_a_file(tmp_path: Path) -> None:
    """As those that Spark writes."""
    (tmp_path / "duels.csv").mkdir()
    winners(tmp_path / "duels.csv" / "part-0.csv", "left", 50)
    winners(tmp_path / "duels.csv" / "_part-0.csv", "right", 50)
    (tmp_path / "_temporary").mkdir()
    winners(tmp_path / "_temporary" / "part-1.csv", "right", 50)
    found = analyze(Request([str(tmp_path)]))
    assert found.experiments["experiment"].duels == 50


def test_a_directory_inside_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    winners(tmp_path / "x.csv", "left")
    locked = tmp_path / "locked"
    locked.mkdir()
    scandir = os.scandir

    def refusing(path: str) -> Any:
        if Path(path) == locked:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(ConfigurationError, match=f"'{locked}' cannot be read: Permission denied"):
        paths(str(tmp_path))


ROWS: list[Row] = [{"left": "x", "right": "y", "winner": "left", "n": n} for n in range(30_000)]


@pytest.mark.parametrize("indent", [None, 1], ids=["one line", "many lines"])
@pytest.mark.parametrize(
    "log", [{"data": ROWS}, {"hits": {"hits": [{"_source": row} for row in ROWS]}}]
)
def test_an_object_that_is_too_large_is_told(tmp_path: Path, log: Row, indent: int | None) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(log, indent=indent))
    size = len(json.dumps(log, indent=indent))
    with pytest.raises(ConfigurationError, match="of at most 1,048,576") as refused:
        only(path)
    assert f"'{path}' has a JSON object of {size:,} bytes" in str(refused.value)


@pytest.mark.parametrize(
    ("log", "path"),
    [
        ({"took": 5, "hits": {"total": 2, "hits": [{"_source": row} for row in ROWS[:2]]}},
         ".hits.hits[]"),
        ({"meta": [{"name": "id"}, {"name": "w"}], "data": ROWS[:3], "rows": 3}, ".data[]"),
        ({"a b": [{"y": 1}], "response": {"docs": ROWS[:3], "facets": {"x": [{"y": 1}]}}},
         ".response.docs[]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("indent", [None, 1], ids=["one line", "many lines"])
def test_records_inside_of_one_object_are_told(
    tmp_path: Path, log: Row, path: str, indent: int | None
) -> None:
    file = tmp_path / "x.json"
    file.write_text(json.dumps(log, indent=indent))
    with pytest.raises(ConfigurationError, match="is recognised") as refused:
        only(file)
    assert f"such as with jq -c '{path}'." in str(refused.value)


@pytest.mark.parametrize("row", [{"x": 1, "tags": ["a"]}, {"a b": [{"c": 1}]}])
def test_an_object_without_records_inside_gets_no_such_advice(tmp_path: Path, row: Row) -> None:
    file = tmp_path / "x.json"
    file.write_text(json.dumps(row))
    with pytest.raises(ConfigurationError, match="is recognised") as refused:
        only(file)
    assert "jq" not in str(refused.value)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("https://x.org/Log.CSV.gz?at=5.parquet", ("csv", "gzip")),
        ("hf://datasets/x/log.tsv", ("csv", "none")),
        ("s3://logs/x.jsonl.zst", ("json", "zstd")),
        ("az://logs/day=5*/part", ("json", "none")),
        ("gs://logs/x.parquet", ("parquet", "none")),
        ("http://x.org/x.pq", ("parquet", "none")),
    ],
)
def test_the_name_of_an_address_tells_what_it_contains(
    address: str, kind: tuple[str, str], tmp_path: Path
) -> None:
    (file,), empty = find([address], tmp_path)
    assert (file.format, file.compression) == kind
    assert (file.path, file.pattern, empty) == (address, address, [])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("x.CSV.zst", "csv"), ("x.tsv.zstd", "csv"), ("x.jsonl.zst", "json"), ("csv", "json")],
)
def test_the_name_of_a_zstandard_file_tells_what_it_contains(
    name: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(b"\x28\xb5\x2f\xfd" + bytes(90))
    ((file,), _) = find([str(tmp_path / name)], tmp_path)
    assert (file.format, file.compression) == (expected, "zstd")


def test_hidden_files_and_those_with_other_endings_are_no_part_of_a_directory(
    tmp_path: Path,
) -> None:
    names = [
        ".x.csv",
        "._x/y.csv",
        ".git/y.csv",
        "_SUCCESS",
        "b.CSV",
        "a/z.jsonl",
        "c.md",
        "_d.csv",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert paths(str(tmp_path)) == [tmp_path / "a/z.jsonl", tmp_path / "b.CSV"]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path) -> None:
    path = winners(tmp_path / "x.csv", "left", 5)
    files, _ = find([str(path), str(tmp_path)], tmp_path)
    assert [file.path for file in files] == [str(path)]


def test_a_pattern_that_names_directories_only_is_refused(tmp_path: Path) -> None:
    (tmp_path / "logs1").mkdir()
    with pytest.raises(ConfigurationError, match=r"no file matches '.*logs\?'"):
        paths(str(tmp_path / "logs?"))


def test_a_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(
        ConfigurationError, match=r"^'x{100,200}…' cannot be read: File name too long"
    ):
        paths("x" * 300)


@pytest.mark.parametrize("packed", [bz2.compress, lzma.compress])
def test_files_that_are_compressed_otherwise_are_unpacked(
    packed: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    log, folder = tmp_path / "x", tmp_path / "copies"
    folder.mkdir()
    for number in range(2):
        log.write_bytes(packed(b"left,right,winner\n"))
        ((file,), _) = find([str(log)], folder)
        assert (file.original, file.format) == (str(log), "csv")
        assert Path(file.path) == folder / f"decompressed-{number}"
        assert Path(file.path).read_bytes() == b"left,right,winner\n"


@pytest.mark.parametrize("packed", [bz2.compress, lzma.compress, gzip.compress])
def test_damaged_compression_is_told(packed: Callable[[bytes], bytes], tmp_path: Path) -> None:
    log, whole = tmp_path / "x", packed(b"left,right,winner\n" * 99)
    log.write_bytes(whole[:12] + bytes(20) + whole[32:])
    with pytest.raises(StreamduelError, match=f"'{log}' cannot be decompressed"):
        find([str(log)], tmp_path)


def test_a_pattern_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.csv", "a.csv", "c.txt"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert paths("[a-c].csv") == [Path("a.csv"), Path("b.csv")]
    assert paths(f"{tmp_path}/?.csv") == [tmp_path / "a.csv", tmp_path / "b.csv"]


def test_the_number_of_files_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MAX_FILES", 2)
    logs = [str(winners(tmp_path / f"{n}.csv", "left", 5)) for n in range(3)]
    assert len(find(logs[:2], tmp_path)[0]) == 2
    with pytest.raises(ConfigurationError, match=r"at most 2 files \(found more\)"):
        find(logs, tmp_path)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("\ufeff\n[{", ("json", "array")),
        ("\ufeff" + "{\n", ("json", "unstructured")),
        ("once\n" * 19 + "{}\n", ("json", "newline_delimited")),
        ("once\n" * 20 + "{}\n", ("csv", "newline_delimited")),
        ("x" * (HEAD - 1) + "é", ("csv", "newline_delimited")),  # both bytes are not in the head
    ],
    ids=["array", "object", "line 20", "line 21", "half a letter"],
)
def test_the_first_lines_tell_what_a_file_contains(
    content: str, kind: tuple[str, str], tmp_path: Path
) -> None:
    path = tmp_path / "x"
    path.write_text(content, encoding="utf-8")
    ((file,), _) = find([str(path)], tmp_path)
    assert (file.format, file.layout) == kind


EMPTY: dict[str, bytes] = {
    "a.csv": b"", "b.csv": b"\n \n", "c.json": b"[\n]\n", "d.csv.gz": gzip.compress(b""),
    "e.log": bz2.compress(b""),
}  # fmt: skip


def test_empty_files_among_others_are_left_out(tmp_path: Path) -> None:
    """An export with an hour without traffic writes one."""
    for name, content in EMPTY.items():
        (tmp_path / name).write_bytes(content)
    winners(tmp_path / "f.csv", "left", 50)
    found = analyze(Request([str(tmp_path)]))
    assert found.experiments["experiment"].duels == 50
    assert found.empty_files == [str(tmp_path / name) for name in EMPTY]


@pytest.mark.parametrize("name", EMPTY)
def test_a_log_of_empty_files_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(EMPTY[name])
    (tmp_path / "z.csv").touch()
    says = "is empty|has blank lines only|has an empty array only"
    with pytest.raises(ConfigurationError, match=f"^'{tmp_path / name}' ({says})"):
        analyze(Request([str(tmp_path)]))


def test_an_object_of_many_megabytes_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"data": [{"winner": "left", "query": "x" * 1000}] * 20_000}))
    with pytest.raises(StreamduelError, match="write each record as a line of its own"):
        only(path)


@pytest.mark.parametrize(
    ("before", "first", "line"),
    [
        ("sep=;\n", "sep=;", 2),
        ("Results of the test\nof May\n\n", "Results of the test", 4),
        ("Exported,on Monday\n", "Exported,on Monday", 2),
    ],
)
def test_lines_before_the_header_are_told(
    tmp_path: Path, before: str, first: str, line: int
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(before + "left;right;winner\nx;y;left\n")
    with pytest.raises(ConfigurationError) as refused:
        only(path)
    assert f"must be its first line (found '{first}'); line {line} looks" in str(refused.value)


def test_a_file_without_a_header_is_told(tmp_path: Path) -> None:
    log = tmp_path / "x.csv"
    log.write_text("q1,bm25,ltr,ltr\nq2,ltr,bm25,ltr\n")
    with pytest.raises(ConfigurationError, match=r"must be a header .*'q1,bm25,ltr,ltr'"):
        only(log)


def test_keys_before_the_records_are_told(tmp_path: Path) -> None:
    log = tmp_path / "x.txt"
    log.write_text('CreateTime:5\tsearch\t{"type": "duel", "a": "x", "b": "y"}\n' * 3)
    with pytest.raises(ConfigurationError, match=r"each line of .* must be a record .*cut -f3-"):
        only(log)


def test_words_of_a_row_are_no_header(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,who\n1,winner\n2,left\n")
    with pytest.raises(ConfigurationError, match="they are id, who"):
        only(path)


def test_a_file_without_a_table_is_refused_for_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("\n \n\n")
    with pytest.raises(ConfigurationError, match="has blank lines only"):
        only(path)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("x.csv", "left,right,winner\n")
    with pytest.raises(StreamduelError, match="is a ZIP archive"):
        only(tmp_path / "x.zip")
    with contextlib.closing(sqlite3.connect(tmp_path / "x.db")) as database:
        database.execute("CREATE TABLE duels (a, b, winner)")
    with pytest.raises(StreamduelError, match=r"is an SQLite database; read it with --sql"):
        only(tmp_path / "x.db")
    (tmp_path / "x.avro").write_bytes(b"Obj\x01\x04\x14avro.codec")
    with pytest.raises(StreamduelError, match=r"is Avro; read it with --sql"):
        only(tmp_path / "x.avro")
    (tmp_path / "x.arrow").write_bytes(b"ARROW1\0\0" + bytes(90))
    with pytest.raises(StreamduelError, match="is Arrow; convert it to Parquet"):
        only(tmp_path / "x.arrow")
    (tmp_path / "x.duckdb").write_bytes(bytes(8) + b"DUCK" + bytes(90))
    with pytest.raises(StreamduelError, match=r"is a DuckDB database; read it with --sql"):
        only(tmp_path / "x.duckdb")


@pytest.mark.parametrize("of_column", [list, lambda values: dict(enumerate(values))])
def test_an_object_of_columns_is_told(
    of_column: Callable[[list[Any]], object], tmp_path: Path
) -> None:
    columns = {"left": ["x", "y"], "right": ["y", "x"], "winner": ["x", "x"]}
    path = tmp_path / "x.json"
    path.write_text(json.dumps({name: of_column(values) for name, values in columns.items()}))
    with pytest.raises(ConfigurationError, match="one JSON object with the values of each column"):
        only(path)


def test_damaged_parquet_in_a_directory_is_named(tmp_path: Path) -> None:
    rows = [{**row, "n": str(row["n"] * 7919)} for row in ROWS]
    for name in ("good.parquet", "bad.parquet"):
        path = written(tmp_path / name, rows, "FORMAT parquet, COMPRESSION gzip")
    data = bytearray(path.read_bytes())
    data[100:3000] = bytes(2900)
    path.write_bytes(data)
    with pytest.raises(StreamduelError, match=r"DuckDB cannot do this: .*bad\.parquet"):
        analyze(Request([str(tmp_path)]))

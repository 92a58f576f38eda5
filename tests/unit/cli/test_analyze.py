"""`streamduel analyze`."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.analysis.exports import json_lines, lists
from tests.unit.cli.commands import COMMAND, SECONDS, Streamduel, into_closed_pipe


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return json_lines(tmp_path / "log.json", lists(1500))


def test_the_result_is_a_sentence_and_tables(streamduel: Streamduel, log: Path) -> None:
    result = streamduel("analyze", log)

    assert result.status == 0
    assert result.out.startswith("experiment: ltr wins with 9")
    assert "ltr against bm25" in result.out
    assert "If clicks were credited otherwise" in result.out
    assert "team fairness" in result.out


def test_a_log_of_winners_has_one_row_for_every_credit_function(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    rows = [
        {"id": f"q{n}", "ts": 1000 * n, "a": "ltr", "b": "bm25", "winner": "ab"[n % 2]}
        for n in range(200)
    ]
    result = streamduel("analyze", json_lines(tmp_path / "log.json", rows))

    assert result.status == 0
    assert "every function" in result.out
    assert "first_click" not in result.out


def test_events_that_are_no_clicks_are_told(streamduel: Streamduel, tmp_path: Path) -> None:
    shown = [{each: row[each] for each in ("id", "a", "b", "teams")} for row in lists(200)]
    events = [
        {"list_id": row["id"], "rank": 0, "event": event, "clicked": "2026-09-21T14:13:20Z"}
        for row in shown for event in ("view", "click")
    ]  # fmt: skip
    paths = json_lines(tmp_path / "lists", shown), json_lines(tmp_path / "events", events)
    out = streamduel("analyze", *paths).out
    assert "200 rows ignored: 'event' is no click" in out
    assert "400 accepted" in out


def test_long_names_stay_different_in_tables(streamduel: Streamduel, tmp_path: Path) -> None:
    rows = lists(200, arms=[f"{'ranker' * 6}-{n}" for n in (1, 2)])
    out = streamduel("analyze", json_lines(tmp_path / "log.json", rows)).out
    table = out[out.index("┏") : out.index("└")].replace(" ", "")
    assert "-1" in table
    assert "-2" in table


def test_the_result_is_written_as_json_and_csv(
    streamduel: Streamduel, log: Path, tmp_path: Path
) -> None:
    result = streamduel(
        "analyze", log, "--json", tmp_path / "x.json", "--csv", tmp_path / "x.csv",
        "--experiment", "shop",
    )  # fmt: skip

    assert result.status == 0
    found = json.loads((tmp_path / "x.json").read_text())["experiments"]["shop"]
    assert found["champion"] == "ltr"
    assert set(found) >= {
        "champion", "confidence", "arms", "wins", "duels", "pairs", "credits", "segments",
        "checks", "tallies",
    }  # fmt: skip
    pair = found["pairs"][0]
    with (tmp_path / "x.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["experiment"], row["a"], row["b"]) == ("shop", pair["a"], pair["b"])
    assert [float(row["low"]), float(row["high"])] == pair["interval"]


def test_weights_of_actions_are_compared_with_the_other_credit_functions(
    streamduel: Streamduel, log: Path, tmp_path: Path
) -> None:
    options = ["--credit", "weighted", "--weight", "click=1", "--weight", "cart=3"]
    result = streamduel("analyze", log, *options, "--json", tmp_path / "x.json")

    assert result.status == 0
    found = json.loads((tmp_path / "x.json").read_text())["experiments"]["experiment"]
    assert found["credit"] == "weighted"
    assert found["credits"]["weighted"]["rules"] == found["credits"]["click_count"]["rules"]


def test_empty_files_of_a_directory_are_left_out_with_a_warning(
    streamduel: Streamduel, log: Path, tmp_path: Path
) -> None:
    (tmp_path / "hour-3.jsonl").touch()
    result = streamduel("analyze", log, tmp_path / "hour-3.jsonl", "--report", tmp_path / "x.html")
    assert result.status == 0
    assert "warning: 1 empty file left out, such as " in result.out
    assert "<dt>empty files left out</dt><dd>1</dd>" in (tmp_path / "x.html").read_text()


MISTAKES = {
    "no log": ([], "analyze needs a LOG or --sql QUERY (found neither)."),
    "no file": (["nowhere.json"], "there is no file 'nowhere.json'."),
    "one --map for two columns": (
        ["{log}", "--map", "a=lft", "b=rgt"],
        "there is no file 'b=rgt'; --map takes one value each time: write --map b=rgt.",
    ),
    "no match": (["{folder}/*.parquet"], "no file matches '{folder}/*.parquet'."),
    "an empty file": (["{folder}/empty"], "'{folder}/empty' is empty."),
    "an empty folder": (
        ["{folder}/sub"], "the directory '{folder}/sub' has no file that ends with",
    ),
    "no equals sign": (["{log}", "--map", "a"], "--map must be FIELD=COLUMN, such as"),
    "no such field": (["{log}", "--map", "wniner=x"], "did you mean 'winner'?"),
    "no such column": (["{log}", "--map", "a=lft"], "--map names the column 'lft', which the log"),
    "twice": (["{log}", "--map", "a=x", "--map", "a=y"], "--map must name a column once for 'a'"),
    "one column for both": (
        ["{log}", "--map", "a=x", "--map", "b=x"], "different columns for a and b (found 'x'",
    ),
    "no such credit": (["{log}", "--credit", "clicks"], "unknown credit function 'clicks'"),
    "no weights": (["{log}", "--credit", "weighted"], "credit function 'weighted' needs 'weights'"),
    "no number": (["{log}", "--weight", "cart"], "--weight must be ACTION=NUMBER"),
    "two weights": (["{log}", "--weight", "c=3", "--weight", "c=4"], "'c' once (found 3 and 4)."),
    "no action": (["{log}", "--weight", "=3"], "such as cart=3 (found '=3')."),
    "no amount": (["{log}", "--memory", "much"], "--memory must be an amount such as 2GB"),
    "less than nothing": (
        ["{log}", "--memory=-5GB"], "2GB or 500MB (found '-5GB').",
    ),
    "no directory": (["{log}", "--json", "no/x.json"], "--json must be in a directory that exists"),
    "standard output": (["{log}", "--csv", "-"], "--csv must be a file (found '-', which is not"),
    "one file twice": (
        ["{log}", "--json", "{folder}/x", "--csv", "{folder}/x"],
        "--json and --csv must name different files",
    ),
    "the log itself": (["{log}", "--csv", "{log}"], "the log and --csv must name different files"),
    "a file of the log": (
        ["{folder}/lo*.json", "--json", "{log}"], "the log and --json must name different files",
    ),
    "nothing recognised": (["{folder}/other.csv"], "nothing in '{folder}/other.csv' is recognised"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(
    mistake: str, streamduel: Streamduel, log: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "other.csv").write_text("colour,size\nred,3\n")
    arguments, sentence = MISTAKES[mistake]

    result = streamduel("analyze", *(each.format(log=log, folder=tmp_path) for each in arguments))

    assert result.status == 2
    assert sentence.format(log=log, folder=tmp_path) in result.err
    assert result.err.startswith("streamduel: ")
    assert result.err.count("\n") == 1
    assert result.out == ""


FAILURES = {
    "binary": (b"\x00\x01\x02 binary", "is neither JSON, CSV nor Parquet"),
    "JSON in another encoding": (
        b'{"a": "x", "b": "y", "winner": "\xf6"}\n',
        "is not UTF-8 (byte 0xf6 in line 1); convert it",
    ),
    "broken gzip": (b"\x1f\x8b\x08\xffbroken", "cannot"),
    "broken Parquet": (b"PAR1" + b"\x00" * 100, "DuckDB cannot do this"),
    "no duels": (b'{"type": "duel", "id": "1"}\n', "the log has no duel in 1 record; 1 cannot be"),
    "unknown winners": (
        b"a,b,winner\n" + b"x,y,unclear\n" * 9,
        " winner, such as 'unclear' of 'x' and 'y', but winner must be the name of a ranker",
    ),
    "rows without the last columns": (
        b"a,b,winner,,\n" + b"x,y,x\n" * 9,
        "in 0 records; 9 rows cannot be read because of missing columns in CSV.",
    ),
    "rare rankers": (
        b"a,b,winner\n" + b"".join(b"x%d,y%d,a\n" % (n, n) for n in range(1001)),
        "; 2,002 rankers with fewer than 100 records and a thousandth of all are left out",
    ),
    "a reset at the end": (
        b'{"type": "duel", "id": "1", "experiment": "search", "a": "x", "b": "y", "winner": "a"}\n'
        b'{"type": "control", "id": "2", "experiment": "search", "action": "reset"}\n',
        "a 'reset' forgets the records with an earlier time (record 2)",
    ),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_file_that_cannot_be_used_is_one_sentence(
    failure: str, streamduel: Streamduel, tmp_path: Path
) -> None:
    content, sentence = FAILURES[failure]
    (tmp_path / "log").write_bytes(content)

    result = streamduel("analyze", tmp_path / "log")

    assert result.status == 1
    assert sentence in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("rest", ["", "{bad\n"])
def test_the_nearest_experiment_is_named(streamduel: Streamduel, tmp_path: Path, rest: str) -> None:
    path = json_lines(tmp_path / "x", [{**row, "experiment": "search"} for row in lists(200)])
    with path.open("a") as log:
        log.write(rest)

    result = streamduel("analyze", path, "--experiment", "serch")

    assert result.status == 1
    assert "has no experiment 'serch'; did you mean 'search'?" in result.err


def test_files_are_written_before_a_reader_of_the_tables_ends(log: Path, tmp_path: Path) -> None:
    into_closed_pipe("analyze", log, "--json", tmp_path / "x.json")

    assert json.loads((tmp_path / "x.json").read_text())["experiments"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_removes_the_temporary_files(tmp_path: Path, number: signal.Signals) -> None:
    endless = "SELECT i AS id, 'x' AS a, 'y' AS b, 'a' AS winner FROM range(1000000000000) AS t(i)"
    process = subprocess.Popen(
        [*COMMAND, "analyze", "--sql", f"{endless} WHERE hash(i) = 8"],
        env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + SECONDS
        while not list(tmp_path.glob("*/log.duckdb")):
            assert time.monotonic() < deadline
        process.send_signal(number)
        _, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()

    assert (process.returncode, err) == (128 + number, "")
    assert not list(tmp_path.iterdir())


def test_without_duckdb_the_extra_is_named(
    streamduel: Streamduel, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)

    result = streamduel("analyze", log)

    assert result.status == 2
    assert "pip install 'streamduel[analyze]'" in result.err


def test_one_ranker_is_no_comparison(streamduel: Streamduel, tmp_path: Path) -> None:
    rows = [{**row, "b": row["a"]} for row in lists(50) if row["a"] == "bm25"]
    result = streamduel("analyze", json_lines(tmp_path / "log.json", rows))

    assert result.status == 2
    assert "has one ranker only, 'bm25'" in result.err


def test_names_from_outside_are_bounded_and_harmless(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    bad = "[red]=x\x1b[31m" + "y" * 200
    rows = [{**row, **{side: bad for side in "ab" if row[side] == "ltr"}} for row in lists(1500)]
    result = streamduel(
        "analyze", json_lines(tmp_path / "log.json", rows), "--csv", tmp_path / "x.csv"
    )

    assert result.status == 0
    assert "\x1b[31m" not in result.out
    assert max(map(len, result.out.splitlines())) <= 200
    assert "[red]" in result.out


HEADER = "id,a,b,winner,ts\n"
ROWS = "".join(f"q{n},bm25,ltr,{'ab'[n % 2]},1790000000000\n" for n in range(20))
RECORDS = "".join(
    f'{{"type": "duel", "experiment": "e", "id": "q{n}", "a": "bm25", "b": "ltr", "winner": "a"}}\n'
    for n in range(20)
)

HOSTILE = {
    "Latin-1": (
        (HEADER + ROWS + "é,bm25,ltr,a,1\n").encode("latin-1"),
        "is not UTF-8 (byte 0xe9 in line 22); convert it, such as with iconv",
    ),
    "UTF-16": ((HEADER + ROWS).encode("utf-16"), "is UTF-16; convert it to UTF-8"),
    "NUL in a name": ((HEADER.replace("ts", "t\0s") + ROWS).encode(), "is neither JSON, CSV nor"),
    "a cell of 3 MB": (
        (HEADER + f"{'x' * 3_000_000},bm25,ltr,a,1\n" + ROWS).encode(),
        "CSV Error on Line: 1: Maximum line size of 2000000 bytes exceeded.",
    ),
    "brackets": (b"[" * 100_000, "Malformed JSON"),
    "SQL in a name": (
        (HEADER.replace("winner", '"winner""); DROP TABLE events; --"') + ROWS).encode(),
        'they are id, a, b, winner"); DROP TABLE events; --, ts.',
    ),
    "a file that is no table": (b"root:x:0:0\n" * 3, "(found 'root:x:0:0')"),
    "a bomb": (
        gzip.compress(RECORDS.encode() + b'{"x": "' + b"0" * 40_000_000),
        '"maximum_object_size" of 16777216 bytes exceeded',
    ),
    "half a Parquet file": (b"PAR1" + b"\x15\x04" * 50, "No magic bytes found at end of file"),
}  # fmt: skip


@pytest.mark.parametrize("export", HOSTILE)
def test_a_hostile_export_is_one_sentence(
    export: str, streamduel: Streamduel, tmp_path: Path
) -> None:
    content, sentence = HOSTILE[export]
    (tmp_path / "log").write_bytes(content)

    result = streamduel("analyze", tmp_path / "log")

    assert result.status in {1, 2}
    assert sentence in result.err
    assert result.err.count("\n") == 1


LEFT_OUT = {
    "rows of another encoding": (
        (HEADER + 4000 * ROWS).encode() + b"\xe9,bm25,ltr,a,1\nshort,bm25\n",
        {"invalid encoding in CSV": 1, "missing columns in CSV": 1},
    ),
    "deep brackets": (
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}\n" + RECORDS).encode(),
        {"JSON or size": 1},
    ),
    "text that is not UTF-8": (
        RECORDS.encode() + b'{"type": "duel", "id": "\xff"}\n', {"JSON or size": 1},
    ),
    "NUL": (RECORDS.encode() + b'{"type": "duel\0', {"JSON or size": 1}),
    "odd keys": (RECORDS.replace("{", '{"": 1, "x\\\\y": 2, "$": 3, "x\\"y": 4, ').encode(), {}),
    "odd keys of other programs": (
        RECORDS.replace('"type": "duel"', '"": 1, "x\\\\y": 2, "$": 3, "x\\"y": 4').encode(), {},
    ),
    "years": (
        (HEADER + ROWS).replace("1790000000000", "9999-12-31T23:59:59Z", 9).encode()
        + b"z,bm25,ltr,a,-0001-01-01\nzz,bm25,ltr,a,1e300\nzzz,bm25,ltr,a,-9223372036854775808\n",
        {},
    ),
    "formulas and SQL": (
        (HEADER + ROWS).replace("bm25", "=1+1").replace("ltr", "'; DROP TABLE x").encode(), {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("export", LEFT_OUT)
def test_what_cannot_be_read_is_counted(
    export: str, streamduel: Streamduel, tmp_path: Path
) -> None:
    content, unread = LEFT_OUT[export]
    (tmp_path / "o'; DROP TABLE events; --").write_bytes(content)

    result = streamduel(
        "analyze", tmp_path / "o'; DROP TABLE events; --", "--json", tmp_path / "found.json"
    )

    assert (result.status, result.err) == (0, "")
    found = json.loads((tmp_path / "found.json").read_text())
    (experiment,) = found["experiments"].values()
    assert experiment["duels"] >= 20
    assert found["unread"] == unread


def test_a_pipe_is_refused(streamduel: Streamduel, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    result = streamduel("analyze", tmp_path / "pipe")

    assert result.status == 2
    assert "must be a regular file, because it is read several times" in result.err


def test_one_row_and_one_duel_are_singular(streamduel: Streamduel, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(RECORDS.splitlines()[0] + '\n{"type": "duel"}\n' + "{}\n")

    result = streamduel("analyze", tmp_path / "x")

    assert "after 1 duel (" in result.out
    assert "1 row left out: " in result.out

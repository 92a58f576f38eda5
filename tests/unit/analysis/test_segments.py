"""Segments have champions of their own, and disagree only by more than chance."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import duckdb
import pytest

from streamduel.analysis.engine import Engine
from streamduel.analysis.wording import verdict
from tests.unit.analysis.exports import Row, json_lines, lists, only, written


def test_segments_that_disagree_are_told(tmp_path: Path) -> None:
    rows = lists(6000, lambda row: 0.62 if row["country"] == "de" else 0.38, clients=10**6)
    found = only(json_lines(tmp_path / "x.json", rows))

    assert found.champion is None
    assert found.segments["country"]["de"].champion == "ltr"
    assert found.segments["country"]["fr"].champion == "bm25"
    disagreement = found.disagreements["country"]
    assert disagreement.verdict == "opposite"
    assert "bm25 over ltr" in disagreement.sentence
    assert verdict(found).endswith("Segments by country prefer different rankers.")
    parts = found.segments["country"].values()
    assert sum(part.duels for part in parts) == found.duels


def test_segments_of_several_kinds_and_of_objects(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"type": "interleaving", "experiment": "search", **row,
         "segment": {"class": row["country"], "phase": "late" if number % 2 else "early"}}
        for number, row in enumerate(lists(3000))
    ]  # fmt: skip
    found = only(json_lines(tmp_path / "x.json", rows))

    assert set(found.segments["class"]) == {"de", "fr"}
    assert set(found.segments["phase"]) == {"early", "late"}
    assert {each.verdict for each in found.disagreements.values()} == {"none"}
    assert "Segments" not in verdict(found)


@pytest.mark.parametrize("form", ["json", "csv", "parquet", "text.csv"])
def test_a_plain_segment_belongs_to_every_kind_that_has_its_name(form: str, tmp_path: Path) -> None:
    segments = [{"device": "phone", "app": "phone"}, {"device": "tablet"}, "phone", "watch"]
    rows: list[Row] = [
        {"type": "duel", "experiment": "search", "id": f"d{n}", "a": "x", "b": "y", "winner": "a",
         "segment": segments[n % 4]}
        for n in range(40)
    ]  # fmt: skip
    if form == "text.csv":  # without the quotes that DuckDB writes around such strings
        path = tmp_path / "x.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(rows[0])
            for row in rows:
                segment = row["segment"]
                text = segment if isinstance(segment, str) else json.dumps(segment)
                writer.writerow({**row, "segment": text}.values())
    else:
        path = written(tmp_path / f"x.{form}", rows, f"FORMAT {form}")
    found = only(path).segments
    assert {kind: {name: each.duels for name, each in of_kind.items()} for kind, of_kind in
            found.items()} == {
        "device": {"phone": 20, "tablet": 10}, "app": {"phone": 20}, "segment": {"watch": 10},
    }  # fmt: skip


def test_segments_are_columns_that_are_named(tmp_path: Path) -> None:
    rows = [{**row, "shop": "A" if number % 3 else "B"} for number, row in enumerate(lists(900))]
    found = only(json_lines(tmp_path / "x.json", rows), columns=["segment=shop"])

    assert set(found.segments) == {"shop"}
    assert found.segments["shop"]["A"].duels == 600


def test_looking_at_many_segments_costs_confidence(tmp_path: Path) -> None:
    rows = [{**row, "segment": f"part {number % 20}"} for number, row in enumerate(lists(4000))]
    found = only(json_lines(tmp_path / "x.json", rows), columns=["segment=segment"])
    alone = only(json_lines(tmp_path / "y.json", rows[::20]))

    one = found.segments["segment"]["part 0"]
    assert one.duels == alone.duels
    assert one.confidence == max(0.0, 1 - 20 * (1 - alone.confidence))


def test_many_segments_are_bounded(tmp_path: Path) -> None:
    rows = [{**row, "segment": f"part {number}"} for number, row in enumerate(lists(300))]
    found = only(json_lines(tmp_path / "x.json", rows), columns=["segment=segment"])

    assert len(found.segments["segment"]) == 20


def test_the_largest_segments_of_a_kind_are_kept(tmp_path: Path) -> None:
    rows = [{**row, "segment": f"part {min(n // 2, 20):02}"} for n, row in enumerate(lists(43))]
    rows += [{**row, "id": f"alone {n}", "segment": "a"} for n, row in enumerate(lists(1))]
    found = only(json_lines(tmp_path / "x.json", rows), columns=["segment=segment"])
    assert list(found.segments["segment"]) == ["part 20", *(f"part {n:02}" for n in range(19))]


def test_every_duel_counts_whatever_the_other_kinds_of_its_segments(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    with duckdb.connect() as connection:  # phones prefer ltr, but in frequent categories bm25
        connection.execute(
            "COPY (SELECT 'ltr' AS a, 'bm25' AS b, CASE WHEN n < 12000 THEN 'b' ELSE 'a' END AS"
            " winner, 'phone' AS device, CASE WHEN n < 12000 THEN n // 2 ELSE n END AS category"
            f" FROM range(30000) AS t(n)) TO '{path}'"
        )
    found = only(path).segments

    phone = found["device"]["phone"]
    assert (phone.champion, phone.duels) == ("ltr", 30_000)
    assert list(found["category"])[:2] == ["0", "1"]
    assert {each.duels for each in found["category"].values()} == {2}


def test_only_the_most_frequent_kinds_count_and_the_first_among_equals(tmp_path: Path) -> None:
    kinds = [f"kind {number}" for number in range(9, 0, -1)]
    rows = [
        {**row, **{kind: "x" for kind in kinds if kind != "kind 6" or number}}
        for number, row in enumerate(lists(100))
    ]
    columns = [f"segment={kind}" for kind in kinds]
    found = only(json_lines(tmp_path / "x.json", rows), columns=columns)
    assert list(found.segments) == [kind for kind in kinds if kind != "kind 6"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("phone", [("segment", "phone")]),
        ('{"device": "phone", "class": null}', [("device", "phone"), ("class", None)]),
        (r'{"a/b": "x", "c~0\"d": "\u00e9", "": "y"}', [("a/b", "x"), ('c~0"d', "é"), ("", "y")]),
        ('{"device": "phone", "n": 1.5, "device": "tablet"}', [("device", "phone"), ("n", "1.5")]),
        ("{}", []),
        ("{phone", None),
        (json.dumps({f"k{n}": "x" for n in range(100)}), [(f"k{n}", "x") for n in range(64)]),
    ],
)
def test_segments_of_a_record(text: str, found: list[tuple[str, str]] | None) -> None:
    with Engine() as engine:
        (segments,) = engine.rows("SELECT segments_of(?)", [text])[0]
    assert found == (segments and [(each["kind"], each["name"]) for each in segments])


def test_arms_served_alone_are_no_duels_of_a_segment(tmp_path: Path) -> None:
    duel = {"type": "duel", "experiment": "search", "a": "x", "segment": "phone"}
    rows: list[Row] = [
        *({**duel, "id": f"d{n}", "b": "y", "winner": "a"} for n in range(20)),
        *({**duel, "id": f"s{n}", "b": "x", "winner": None} for n in range(30)),
    ]
    found = only(json_lines(tmp_path / "x.json", rows))
    assert (found.duels, found.segments["segment"]["phone"].duels) == (50, 20)
    assert found.disagreements == {}, "one segment has none to disagree with"

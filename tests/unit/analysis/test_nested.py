"""Logs whose fields are in objects, on several levels, and whose lists are in several arrays."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamduel.errors import ConfigurationError
from tests.unit.analysis.exports import (
    OPTIONS,
    ROWS,
    Row,
    check,
    json_lines,
    only,
    winner,
    written,
)

NESTED: list[Row] = [
    {
        "event": {"id": row["id"], "context": {"user": {"id": row["client"]}}},
        "interleaving": {
            "rankers": {"left": row["a"], "right": row["b"]},
            "outcome": {"winner": winner(row)},
        },
    }
    for row in ROWS
]


@pytest.mark.parametrize("suffix", ["json", "parquet"])
@pytest.mark.parametrize("around", [(), ("payload", "after"), ("x", "y", "z")])
def test_fields_may_be_on_any_level(suffix: str, around: tuple[str, ...], tmp_path: Path) -> None:
    rows: list[Row] = NESTED
    for each in around:
        rows = [{each: row} for row in rows]
    check(only(written(tmp_path / f"x.{suffix}", rows, f"FORMAT {suffix}")))


def test_deeper_fields_can_be_named(tmp_path: Path) -> None:
    log = json_lines(tmp_path / "x.jsonl", NESTED)
    found = only(log, columns=["client=event.context.user.id"])
    assert found.clients.clients == len({row["client"] for row in ROWS})


def test_clicks_may_be_objects_with_a_position(tmp_path: Path) -> None:
    log = [
        {"id": row["id"], "ranker_a": row["a"], "ranker_b": row["b"], "teams": row["teams"],
         "clicked_results": [{"position": rank + 1, "docId": f"d{rank}"} for rank in row["clicks"]]}
        for row in ROWS
    ]  # fmt: skip
    check(only(json_lines(tmp_path / "x.jsonl", log)))


def test_clicks_may_be_objects_that_name_documents(tmp_path: Path) -> None:
    log = [
        {"id": row["id"], "ranker_a": row["a"], "ranker_b": row["b"], "teams": row["teams"],
         "docs": [f"d{9 - rank}" for rank in range(10)],
         "clicked_docs": [{"docId": f"d{9 - rank}"} for rank in row["clicks"]]}
        for row in ROWS
    ]  # fmt: skip
    check(only(json_lines(tmp_path / "x.jsonl", log)))


def test_clicks_alone_are_no_lists(tmp_path: Path) -> None:
    log = [
        {"id": row["id"], "a": row["a"], "b": row["b"],
         "clicks": [{"position": rank, "team": row["teams"][rank]} for rank in row["clicks"]]}
        for row in ROWS
    ]  # fmt: skip
    with pytest.raises(ConfigurationError, match=r"nothing in .* is recognised"):
        only(json_lines(tmp_path / "x.jsonl", log))


@pytest.mark.parametrize("names", [("team_a", "team_b"), ("leftTeam", "rightTeam")])
@pytest.mark.parametrize("suffix", OPTIONS)
def test_each_team_may_have_a_column_of_documents(
    suffix: str, names: tuple[str, str], tmp_path: Path
) -> None:
    log = []
    for row in ROWS:
        docs = [f"{row['id']}/{rank}" for rank in range(10)]
        teams = {
            name: [doc for doc, team in zip(docs, row["teams"], strict=True) if team == side]
            for name, side in zip(names, "ab", strict=True)
        }
        clicked = [docs[rank] for rank in row["clicks"]]
        log.append({"id": row["id"], "ranker_a": row["a"], "ranker_b": row["b"], "shown": docs,
                    **teams, "clicked_ids": clicked})  # fmt: skip
    if "csv" in suffix or "tsv" in suffix:
        with pytest.raises(ConfigurationError, match=r"nothing in .* is recognised"):
            only(written(tmp_path / f"x.{suffix}", log, OPTIONS[suffix]))
    else:
        check(only(written(tmp_path / f"x.{suffix}", log, OPTIONS[suffix])))


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_results_may_be_of_two_of_several_rankers(tmp_path: Path, suffix: str) -> None:
    rows: list[Row] = [
        {
            "search_id": f"q{number}", "ts": 1_790_000_000_000 + number,
            "results": [
                {"doc_id": f"d{rank}", "ranker": ranker, "position": rank, "clicked": ranker == won}
                for rank, ranker in enumerate([*pair, "none", *pair])
            ],
        }
        for number in range(60)
        for pair in [(("bm25", "ltr"), ("ltr", "dense"), ("dense", "bm25"))[number % 3]]
        for won in [pair[0] if number % 4 else pair[1]]
    ]  # fmt: skip
    found = only(written(tmp_path / f"x.{suffix}", rows, OPTIONS[suffix]))
    assert found.arms == ["bm25", "dense", "ltr"]
    wins = {(pair.a, pair.b): (pair.wins_a, pair.wins_b) for pair in found.pairs}
    assert sorted(map(sorted, wins)) == [["bm25", "dense"], ["bm25", "ltr"], ["dense", "ltr"]]
    assert {tuple(sorted(each)) for each in wins.values()} == {(5, 15)}

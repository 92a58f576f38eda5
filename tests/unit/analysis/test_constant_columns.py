"""Columns with the name of a field that have one word, or nothing, in each row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.analysis.exports import (
    ROWS,
    SHAPES,
    Row,
    check,
    json_lines,
    only,
    winner,
    written,
)

CONSTANTS: Row = {"result": "ok", "choice": None, "team": "search", "method": "team_draft"}


def result_rows() -> list[Row]:
    return [
        {"source": "web", "qid": row["id"], "pos": rank, "picked_by": None, "model": row[side],
         "clicked": rank in row["clicks"]}
        for row in ROWS for rank, side in enumerate(row["teams"])
    ]  # fmt: skip


LOGS: dict[str, Callable[[], list[Row]]] = {
    "winner by side": lambda: SHAPES["winner by side"],
    "teams and clicks": lambda: SHAPES["teams and clicks"],
    "results": result_rows,
    "ranker rows": lambda: [
        {"id": row["id"], "ranker": row[side], "clicks": int(winner(row) == side)}
        for row in ROWS for side in "ab"
    ],
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
@pytest.mark.parametrize("log", LOGS)
def test_they_are_left_out(log: str, suffix: str, tmp_path: Path) -> None:
    rows = [{**CONSTANTS, **row} for row in LOGS[log]()]
    check(only(written(tmp_path / f"x.{suffix}", rows, f"FORMAT {suffix}")))


def test_a_winner_that_is_always_the_same_counts(tmp_path: Path) -> None:
    rows = [{"a": "bm25", "b": "ltr", "winner": "ltr"}] * 60
    assert only(json_lines(tmp_path / "x.jsonl", rows)).champion == "ltr"


def test_a_ranker_that_is_always_the_same_counts(tmp_path: Path) -> None:
    rows = [
        {"control": "bm25", "variant": "ltr", "outcome": ("control", "variant", "tie")[n % 3]}
        for n in range(60)
    ]
    (pair,) = only(json_lines(tmp_path / "x.jsonl", rows)).pairs
    assert (pair.a, pair.b, pair.wins_a, pair.wins_b) == ("bm25", "ltr", 20, 20)


def test_types_of_events_are_in_the_column_with_several(tmp_path: Path) -> None:
    rows: list[Row] = []
    for row in ROWS:
        rows.append({"event_type": "search", "type": "impression", "id": row["id"],
                     "a": row["a"], "b": row["b"], "teams": row["teams"]})  # fmt: skip
        rows += [
            {"event_type": "search", "type": "click", "id": row["id"], "position": rank}
            for rank in row["clicks"]
        ]
    check(only(json_lines(tmp_path / "x.jsonl", rows)))

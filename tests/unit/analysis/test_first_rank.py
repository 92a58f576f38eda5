"""Ranks of clicks that may begin with 0 or with 1, and clicks that have no such ranks."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamduel.analysis.report import ExperimentAnalysis
from tests.unit.analysis.exports import SHAPES, Row, check, json_lines, only, sentence


def log(path: Path, *rows: tuple[int, list[str | None], object], **others: object) -> Path:
    return json_lines(path, [
        {"ranker_a": "bm25", "ranker_b": "ltr", "teams": teams, "clicks": clicks, **others}
        for n, teams, clicks in rows for _ in range(n)
    ])  # fmt: skip


def wins(found: ExperimentAnalysis) -> tuple[int, int]:
    (pair,) = found.pairs
    return pair.wins_a, pair.wins_b


def test_a_first_rank_without_a_team_may_have_no_clicks(tmp_path: Path) -> None:
    rows = (200, [None, "b", "a"], [1]), (200, [None, "a", "b"], [2])
    found = only(log(tmp_path / "x.jsonl", *rows))
    assert wins(found) == (0, 400)
    told = sentence(found, "ranks")
    assert told.startswith(
        "None of 400 clicks has rank 0; ranks are taken to begin with 0, because"
    )


def test_a_first_rank_without_a_team_may_be_the_first_of_ranks_from_1(tmp_path: Path) -> None:
    rows = (200, [None, "b", "a", None], [2]), (200, [None, "a", "b", None], [3])
    assert wins(only(log(tmp_path / "x.jsonl", *rows))) == (0, 400)


def test_the_first_rank_that_is_assumed_is_told(tmp_path: Path) -> None:
    found = only(json_lines(tmp_path / "x.jsonl", SHAPES["ranks from one"]))
    check(found)
    (told,) = [each for each in found.checks if each.name == "ranks"]
    assert told.verdict == "fine"
    assert told.sentence.endswith("has rank 0; ranks are taken to begin with 1.")
    few = only(log(tmp_path / "y.jsonl", (40, ["b", "a", "b"], [1])))
    assert wins(few) == (40, 0)
    assert "fewer than 100 clicks" in sentence(few, "ranks")


def test_a_click_beyond_the_last_rank_shows_that_ranks_begin_with_1(tmp_path: Path) -> None:
    teams: list[str | None] = ["b", "a", "b"]
    found = only(log(tmp_path / "x.jsonl", (30, teams, [1]), (10, teams, [3]), (5, teams, [2])))
    assert wins(found) == (5, 40)
    assert found.tallies["dead_letter"] == 0


ROWS: dict[str, list[Row]] = {
    "clicks of each side": [{"a": "bm25", "b": "ltr", "clicks_a": 0, "clicks_b": 1}],
    "flags": [{"a": "bm25", "b": "ltr", "teams": "aba", "clicks": [False, True, False]}],
    "documents": [{"a": "bm25", "b": "ltr", "teams": "aba", "docs": "xyz", "clicks": ["y"]}],
    "clicked documents": [
        {"a": "bm25", "b": "ltr", "teams": "aba", "docs": "xyz", "clicked_docs": ["y"]},
    ],
    "clicks on documents": [
        {"id": "i", "a": "bm25", "b": "ltr", "teams": "aba", "docs": "xyz"},
        {"impression_id": "i", "doc": "y"},
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", ROWS)
def test_only_numbers_of_ranks_may_begin_with_1(kind: str, tmp_path: Path) -> None:
    paths = []
    for part, row in enumerate(ROWS[kind]):
        rows = [
            {**row, **{key: f"i{n}" for key in ("id", "impression_id") if key in row},
             **({"docs": list(row["docs"])} if "docs" in row else {})}
            for n in range(200)
        ]  # fmt: skip
        paths.append(json_lines(tmp_path / f"{part}.jsonl", rows))
    assert wins(only(*paths)) == (0, 200)

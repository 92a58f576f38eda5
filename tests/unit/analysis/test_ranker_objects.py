"""Logs with an object or an array that has a number for each of the two rankers of a list."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.analysis.exports import (
    ROWS,
    Row,
    check,
    json_lines,
    only,
    winner,
    written,
)
from tests.unit.analysis.test_ranker_rows import NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_an_object_may_have_a_field_for_each_ranker(
    suffix: str, number: str, tmp_path: Path
) -> None:
    log = [
        {"query_id": row["id"], number: {row[side]: NUMBERS[number](row, side) for side in "ab"}}
        for row in ROWS
    ]
    check(only(written(tmp_path / f"x.{suffix}", log, f"FORMAT {suffix}")))


def test_of_three_rankers_two_have_a_field(tmp_path: Path) -> None:
    log: list[Row] = [
        {"id": n, "scores": {winner: 0.5, loser: 0.25}}
        for n, (winner, loser) in enumerate([("x", "y"), ("x", "z"), ("y", "z")] * 200)
    ]
    found = only(written(tmp_path / "x.parquet", log, "FORMAT parquet"))
    assert (found.champion, found.duels) == ("x", 600)
    assert {(pair.a, pair.b): pair.wins_a for pair in found.pairs} == {
        ("x", "y"): 200, ("x", "z"): 200, ("y", "z"): 200,
    }  # fmt: skip


def test_an_object_with_one_ranker_cannot_be_used(tmp_path: Path) -> None:
    log = [{"id": n, "clicks": {"x": 1, "y": 0}} for n in range(99)]
    found = only(json_lines(tmp_path / "x.jsonl", [*log, {"id": "q", "clicks": {"x": 1}}]))
    assert (found.tallies["accepted"], found.tallies["dead_letter"]) == (99, 1)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_numbers_may_be_in_an_array(suffix: str, number: str, tmp_path: Path) -> None:
    log = [
        {"query_id": row["id"], "rankers": [row["b"], row["a"]],
         number: [NUMBERS[number](row, side) for side in "ba"]}
        for row in ROWS
    ]  # fmt: skip
    check(only(written(tmp_path / f"x.{suffix}", log, f"FORMAT {suffix}")))


def test_rankers_may_be_in_an_array_beside_the_winner(tmp_path: Path) -> None:
    log = [
        {"id": n, "pair": pair, "winner": min(pair)}
        for n, pair in enumerate([["x", "y"], ["z", "x"], ["z", "y"]] * 200)
    ]
    found = only(json_lines(tmp_path / "x.jsonl", log))
    assert (found.champion, found.duels) == ("x", 600)


@pytest.mark.parametrize("names", [("control", "treatment"), ("baseline", "candidate")])
@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_rankers_may_have_the_names_of_sides(
    names: tuple[str, str], suffix: str, tmp_path: Path
) -> None:
    log = [
        {"id": n, "clicks_by_ranker": {names[0]: n % 4 == 0, names[1]: n % 4 > 1}}
        for n in range(400)
    ]
    (pair,) = only(written(tmp_path / f"x.{suffix}", log, f"FORMAT {suffix}")).pairs
    assert (pair.a, pair.b) == names
    assert (pair.wins_a, pair.wins_b, pair.ties) == (100, 200, 100)


@pytest.mark.parametrize("column", ["winner", "winner_index", "winning_idx"])
@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_a_winner_may_be_a_place_in_an_array(column: str, suffix: str, tmp_path: Path) -> None:
    log = [
        {"id": row["id"], "rankers": [row["b"], row["a"]],
         column: {"b": 0, "a": 1, "tie": None}[winner(row)]}
        for row in ROWS
    ]  # fmt: skip
    check(only(written(tmp_path / f"x.{suffix}", log, f"FORMAT {suffix}")))


def test_rankers_may_be_in_an_array_beside_teams(tmp_path: Path) -> None:
    log = [
        {"id": row["id"], "rankers": [row["a"], row["b"]], "teams": row["teams"],
         "clicks": row["clicks"]}
        for row in ROWS
    ]  # fmt: skip
    check(only(json_lines(tmp_path / "x.jsonl", log)))
    check(only(written(tmp_path / "x.parquet", log, "FORMAT parquet")))


def test_lists_of_two_results_are_no_pairs(tmp_path: Path) -> None:
    log = [
        {"query_id": row["id"], "rankers": [row[team] for team in row["teams"][:2]],
         "clicks": [rank for rank in row["clicks"] if rank < 2]}
        for row in ROWS
    ]  # fmt: skip
    found = only(json_lines(tmp_path / "x.jsonl", log))
    wins = [winner(row) for row in ROWS if row["clicks"] and row["clicks"][0] < 2]
    assert found.ties == pytest.approx(1 - len(wins) / len(ROWS))

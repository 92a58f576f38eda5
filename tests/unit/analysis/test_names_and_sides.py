"""Winners and teams that may be names of rankers, sides or outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamduel.errors import ConfigurationError
from tests.unit.analysis.exports import json_lines, only, sentence


def csv(path: Path, header: str, rows: dict[str, int]) -> Path:
    """A table with some rows, each so many times."""
    lines = [line for row, n in rows.items() for line in [row] * n]
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


REFUSED: dict[str, tuple[str, dict[str, int], str]] = {
    "a ranker 1 and a side 1": (
        "ranker_a,ranker_b,winner",
        {"3,1,1": 20, "2,1,1": 20, "3,2,1": 20, "2,3,-1": 20},
        "has the winners -1 and 1, some of them names of rankers, which can be read in two ways",
    ),
    "rankers 1 and 2, and ties": (
        "ranker_a,ranker_b,winner",
        {"1,2,1": 20, "2,1,2": 20, "1,2,0": 20},
        "has the winners 0, 1 and 2, some of them names",
    ),
    "rankers A and B": (
        "left,right,winner",
        {"B,A,a": 40, "A,B,a": 1},
        "'winner' of .* has 'a', which may be a side, or the ranker on the other side; write 'B'",
    ),
    "teams of rankers A and B": (
        "left,right,teams,clicked_rank",
        {"A,B,ab,0": 40, "B,A,ab,": 1},
        "'teams' of .* has 'a', which may be a side",
    ),
    "left or lost": (
        "left,right,result",
        {"bm25,ltr,L": 40, "bm25,ltr,D": 4},
        "has the winners d and l, which can be read in two ways",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_names_that_may_be_sides_are_refused(case: str, tmp_path: Path) -> None:
    header, rows, expected = REFUSED[case]
    with pytest.raises(ConfigurationError, match=expected):
        only(csv(tmp_path / "x.csv", header, rows))


READ: dict[str, tuple[str, dict[str, int]]] = {
    "wins, losses and draws": (
        "ranker,opponent,result", {"bm25,ltr,L": 30, "bm25,ltr,W": 10, "bm25,ltr,D": 2},
    ),
    "only losses": (
        "ranker,opponent,result", {"bm25,ltr,L": 30, "ltr,bm25,L": 10, "bm25,ltr,tie": 2},
    ),
    "wins and losses of sides, and others": (
        "left,right,result",
        {"bm25,ltr,L": 30, "bm25,ltr,W": 10, "bm25,ltr,tie": 2, "bm25,ltr,void": 1},
    ),
    "left, right and others": (
        "left,right,result",
        {"ltr,bm25,L": 30, "ltr,bm25,R": 10, "bm25,ltr,tie": 2, "bm25,ltr,D": 1},
    ),
    "sides that are their names": (
        "left,right,winner", {"Left,Right,R": 30, "Left,Right,left": 10, "Left,Right,tie": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_the_only_sensible_reading_is_taken(case: str, tmp_path: Path) -> None:
    (pair,) = only(csv(tmp_path / "x.csv", *READ[case])).pairs
    assert (pair.wins_a, pair.wins_b, pair.ties) == (10, 30, 2)


def test_an_outcome_of_rankers_with_numbers_is_no_name(tmp_path: Path) -> None:
    rows = {"3,1,1,0": 20, "3,1,0,0": 10, "3,1,0,1": 2}
    (pair,) = only(csv(tmp_path / "x.csv", "ranker,opponent,won,tie", rows)).pairs
    assert (pair.a, pair.wins_a, pair.wins_b, pair.ties) == ("1", 10, 20, 2)


@pytest.mark.parametrize("field", ["winner", "teams"])
def test_a_ranker_2_may_be_written_2_0(field: str, tmp_path: Path) -> None:
    rows = [
        {"ranker_a": 2.0, "ranker_b": 1.0,
         **({"winner": won} if field == "winner" else {"teams": [won, 3 - won], "clicks": [0]})}
        for won in [2] * 30 + [1] * 10
    ]  # fmt: skip
    (pair,) = only(json_lines(tmp_path / "x.jsonl", rows)).pairs
    assert (pair.a, pair.wins_a, pair.wins_b) == ("1.0", 10, 30)


def test_names_that_may_be_sides_after_many_that_may_not_cannot_be_used(tmp_path: Path) -> None:
    rows = {"A,B,a": 10_000, "B,A,a": 10}
    found = only(csv(tmp_path / "x.csv", "left,right,winner", rows))
    assert found.tallies["dead_letter"] == 10


def test_a_check_warns_of_rankers_that_differ_only_in_case(tmp_path: Path) -> None:
    rows = {"bm25,ltr,a": 20, "BM25,ltr,b": 20, "bm25,dense,b": 20}
    found = only(csv(tmp_path / "x.csv", "left,right,winner", rows))
    assert sentence(found, "rankers").startswith("BM25 and bm25 are different rankers here")


@pytest.mark.parametrize("names", [("control", "treatment"), ("A", "B"), ("control", "ltr-v2")])
@pytest.mark.parametrize("column", ["winner", "vote"])
def test_rankers_keep_the_names_that_the_log_gives_them(
    column: str, names: tuple[str, str], tmp_path: Path
) -> None:
    rows = {names[0]: 10, names[1]: 30, "tie": 2}
    (pair,) = only(csv(tmp_path / "x.csv", column, rows)).pairs
    assert (pair.a, pair.b) == names
    assert (pair.wins_a, pair.wins_b, pair.ties) == (10, 30, 2)


def test_rankers_that_only_the_winners_name_are_found_in_any_order_of_the_rows(
    tmp_path: Path,
) -> None:
    rows = {"bm25": 10_500, "ltr": 12_000, "tie": 2, "tlr": 3}
    found = only(csv(tmp_path / "x.csv", "winner", rows))
    (pair,) = found.pairs
    assert (pair.a, pair.wins_a, pair.wins_b, pair.ties) == ("bm25", 10_500, 12_000, 2)
    assert found.tallies["dead_letter"] == 3

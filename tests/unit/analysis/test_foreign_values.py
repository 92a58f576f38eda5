"""Values of other programs that can be taken for something else."""

from __future__ import annotations

from pathlib import Path

from tests.unit.analysis.exports import check, json_lines, named, only, winner


def test_scores_beside_clicks_are_those_of_something_else(tmp_path: Path) -> None:
    rows = named(
        id=lambda r: r["id"], ranker_a=lambda r: r["a"], ranker_b=lambda r: r["b"],
        teams=lambda r: r["teams"], clicks=lambda r: r["clicks"],
        score_a=lambda r: int(winner(r) != "a"), score_b=lambda r: int(winner(r) != "b"),
    )  # fmt: skip
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    check(found)
    assert "winner" not in {each.name for each in found.checks}, "nothing is taken as a victory"


def test_scores_that_are_not_finite_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(
        "ranker_a,ranker_b,score_a,score_b\nx,y,2,1\nx,y,nan,1\nx,y,2,inf\nx,y,3,3\n"
    )
    found = only(tmp_path / "x.csv")
    (pair,) = found.pairs
    assert (pair.wins_a, pair.wins_b, pair.ties) == (1, 0, 1)
    assert found.tallies["dead_letter"] == 2


def test_sums_of_no_duel_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("ranker_a,ranker_b,wins_a,wins_b\nx,y,2,1\nx,y,0,0\n")
    found = only(tmp_path / "x.csv")
    assert (found.duels, found.tallies["dead_letter"]) == (3, 1)


def test_0_and_1_in_lists_of_two_are_ranks(tmp_path: Path) -> None:
    row = {"ranker_a": "x", "ranker_b": "y", "teams": ["a", "b"], "clicks": [0, 1]}
    (pair,) = only(json_lines(tmp_path / "x.jsonl", [row] * 20)).pairs
    assert (pair.wins_a, pair.wins_b, pair.ties) == (0, 0, 20)

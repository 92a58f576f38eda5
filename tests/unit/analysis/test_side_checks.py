"""Rankers that interleaving favours, or that are nearly always on one side, are told."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.unit.analysis.exports import Row, json_lines, lists, only, sentence


@pytest.mark.parametrize("favoured", ["ltr", "bm25"])
def test_a_ranker_that_is_always_on_top_is_told(favoured: str, tmp_path: Path) -> None:
    """Of whichever side, and though it has half of the documents."""
    other = {"ltr": "bm25", "bm25": "ltr"}[favoured]
    sides = {"abab": {"a": favoured, "b": other}, "baba": {"a": other, "b": favoured}}
    rows = [
        {"id": f"{teams}-{n}", **arms, "teams": [*teams], "clicks": [n % 4]}
        for teams, arms in sides.items()
        for n in range(200)
    ]
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    assert sentence(found, "sample ratio").startswith(f"{favoured} has 100.0% of the top ranks")
    assert sentence(found, "team fairness").startswith(f"{favoured} has 64.0% of the prominent")


@pytest.mark.parametrize(
    ("duels", "on_the_left", "expected"),
    [
        (99, 99, None),
        (100, 100, "new is in 'left' in 100.0% of its duels"),
        (300, 285, None),
        (300, 286, "new is in 'left' in 95.3% of its duels"),
        (300, 14, "new is on the side other than 'left' in 95.3% of its duels"),
    ],
)
def test_more_than_95_percent_of_100_duels_on_one_side_are_told(
    duels: int, on_the_left: int, expected: str | None, tmp_path: Path
) -> None:
    sides = ["new,old"] * on_the_left + ["old,new"] * (duels - on_the_left)
    alone = ["new,new"] * duels  # says nothing about sides
    rows = [f"{each},{('left', 'right')[n % 2]}" for n, each in enumerate(sides + alone)]
    (tmp_path / "x.csv").write_text("\n".join(["left,right,winner", *rows]) + "\n")
    (found,) = [it for it in only(tmp_path / "x.csv").checks if it.name == "sides"]
    if expected is None:
        assert found.verdict == "fine"
    else:
        assert found.verdict == "warning"
        assert found.sentence.startswith(expected)


def test_the_ranker_that_is_most_on_one_side_is_told(tmp_path: Path) -> None:
    rows = ["new,old,left"] * 100 + ["new,dense,right"] * 100
    rows += ["old,dense,left", "dense,old,right"] * 300
    (tmp_path / "x.csv").write_text("\n".join(["left,right,winner", *rows]) + "\n")
    assert sentence(only(tmp_path / "x.csv"), "sides").startswith("new is in 'left' in 100.0%")


def test_rankers_may_be_named_as_the_sides(tmp_path: Path) -> None:
    """In streamduel's own records, whose rankers always have names."""
    rows = [
        {"type": "duel", "id": f"d{n}", "experiment": "shop", "a": "a", "b": "b", "winner": "a"}
        for n in range(20)
    ]
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    assert "rankers" not in {each.name for each in found.checks}


def swapped(
    lost: float, seed: int, in_order: float = 0.5, preference: float = 0.5, n: int = 2500
) -> list[Row]:
    """Lists, a share of them with `bm25` on side a, of which a share of b's clicks is lost."""
    rows, rng = lists(n, lambda _: preference, seed), random.Random(seed)
    for row in rows:
        if (row["a"] == "bm25") != (rng.random() < in_order):
            row["a"], row["b"] = row["b"], row["a"]
            row["teams"] = ["ba"["ab".index(team)] for team in row["teams"]]
        if row["clicks"] and row["teams"][row["clicks"][0]] == "b" and rng.random() < lost:
            row["clicks"] = []
    return rows


@pytest.mark.parametrize(("in_order", "preference"), [(0.5, 0.5), (0.9, 0.58), (0.1, 0.8)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_strong_ranker_is_no_side_that_wins(
    in_order: float, preference: float, seed: int, tmp_path: Path
) -> None:
    log = json_lines(tmp_path / "x.jsonl", swapped(0.0, seed, in_order, preference))
    (found,) = [each for each in only(log).checks if each.name == "sides"]
    assert found.verdict == "fine"
    assert found.sentence.endswith(
        "of pairs in both orders: no sign that one side wins more often."
    )


@pytest.mark.parametrize(("lost", "n"), [(0.2, 6000), (0.3, 2500)])
def test_clicks_that_are_lost_on_one_side_are_told(lost: float, n: int, tmp_path: Path) -> None:
    log = json_lines(tmp_path / "x.jsonl", swapped(lost, 1, n=n))
    (found,) = [each for each in only(log).checks if each.name == "sides"]
    assert found.verdict == "failed"
    assert found.sentence.startswith("Side a wins 5")
    assert "look for clicks that are lost" in found.sentence


def test_pairs_in_one_order_say_nothing_about_the_sides(tmp_path: Path) -> None:
    log = json_lines(tmp_path / "x.jsonl", swapped(0.3, 1, in_order=1.0))
    (found,) = [each for each in only(log).checks if each.name == "sides"]
    assert found.verdict == "unknown"
    assert "Swap the sides" in found.sentence


def test_a_client_who_keeps_its_sides_is_one_wager(tmp_path: Path) -> None:
    rows = swapped(0.0, 1)
    for row in rows:
        if row["a"] == "bm25" and row["ts"] % 3 == 0:
            row["client"] = "crawler"
            row["clicks"] = [row["teams"].index("a")]
    (found,) = [
        each for each in only(json_lines(tmp_path / "x.jsonl", rows)).checks if each.name == "sides"
    ]
    assert found.verdict == "fine"

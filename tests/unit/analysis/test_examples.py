"""Examples: lists of the leading pair that users decided."""

from __future__ import annotations

import random
from pathlib import Path

from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.page import render
from streamduel.analysis.report import Analysis, Example
from tests.unit.analysis.exports import Row, json_lines, lists, winner, written


def logged(n: int) -> list[Row]:
    """Lists with queries and documents of three rankers; `ltr` and `bm25` lead."""
    rows = lists(n)
    bad = [{**row, "id": f"z-{row['id']}"} for row in lists(n // 2, lambda _: 0.05, seed=6)]
    for row in bad:
        row.update({side: "random" for side in "ab" if row[side] == "ltr"})
    rows += bad
    for number, row in enumerate(rows):
        row["query"] = f"shoes {row['id']}"
        row["docs"] = [f"d{number}-{rank}" for rank in range(10)]
    return rows


def analysis(path: Path, examples: int = 20) -> Analysis:
    return analyze(Request([str(path)], experiment="shop", examples=examples))


def found(path: Path, examples: int = 20) -> list[Example]:
    return analysis(path, examples).experiments["shop"].examples


def test_lists_of_the_leading_pair_that_users_decided(tmp_path: Path) -> None:
    rows = logged(400)
    drawn = found(json_lines(tmp_path / "x.json", rows))
    assert len({each.query for each in drawn}) == 20
    by_query = {row["query"]: row for row in rows}
    for each in drawn:
        row = by_query[each.query]
        assert {each.a, each.b} == {"ltr", "bm25"}
        assert (each.a, each.b, each.winner) == (row["a"], row["b"], winner(row))
        assert (each.docs, each.teams, each.ranks) == (row["docs"], row["teams"], 10)
        assert each.clicks == row["clicks"]


def test_the_order_and_the_format_of_the_log_do_not_matter(tmp_path: Path) -> None:
    rows = logged(200)
    drawn = found(json_lines(tmp_path / "x.json", rows))
    random.Random(3).shuffle(rows)
    assert found(written(tmp_path / "x.parquet", rows, "FORMAT parquet")) == drawn


def test_ten_ranks_of_lists_of_two_teams_are_shown_and_each_click_once(tmp_path: Path) -> None:
    rows = [
        {"id": f"q{n}", "a": "ltr", "b": "bm25", "query": f"shoes {n}", "teams": [*"ab"] * 6,
         "docs": [f"d{rank}" for rank in range(12)], "clicks": [2, 0, 2]}
        for n in range(30)
    ]  # fmt: skip
    one_team = [{**row, "id": f"x-{row['id']}", "teams": ["a"] * 12} for row in rows]
    drawn = found(json_lines(tmp_path / "x.json", [*rows, *one_team]))
    assert len(drawn) == 20
    for each in drawn:
        assert (each.docs, each.ranks) == ([f"d{rank}" for rank in range(10)], 12)
        assert (each.teams, each.clicks) == ([*"ab"] * 5, [0, 2])


def test_lists_without_queries_or_documents_are_no_examples(tmp_path: Path) -> None:
    rows = logged(200)
    for number, row in enumerate(rows):
        del row["query" if number % 2 else "docs"]
    assert found(json_lines(tmp_path / "x.json", rows)) == []


def test_none_are_shown_if_none_are_wanted(tmp_path: Path) -> None:
    path = json_lines(tmp_path / "x.json", logged(200))
    assert found(path, examples=0) == []
    assert len(found(path, examples=3)) == 3


def test_the_report_shows_them_as_text(tmp_path: Path) -> None:
    rows = logged(200)
    for row in rows:
        row["query"], row["docs"][0] = "<script>alert(1)</script>", "<b>\u202e"
    page = render(analysis(json_lines(tmp_path / "x.json", rows)))
    assert ">Examples</h2>" in page
    assert page.count("“<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>”") == 20
    assert "&lt;b&gt;\\u202e" in page
    assert "<script" not in page


def test_documents_of_another_number_are_ignored(tmp_path: Path) -> None:
    """As the service ignores them."""
    rows = [{"type": "interleaving", "experiment": "shop", **row} for row in logged(100)]
    for row in rows:
        row["docs"] = [1, 2]
    of_shop = analysis(json_lines(tmp_path / "x.jsonl", rows)).experiments["shop"]
    assert of_shop.tallies["accepted"] == 150
    assert of_shop.examples == []

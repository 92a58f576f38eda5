"""Rows in the order of their rankers, as of tests one after another, or of their clicks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from streamduel.errors import ConfigurationError
from tests.unit.analysis.exports import Row, json_lines, lists, only
from tests.unit.analysis.random_exports import counts, outcome

MANY = 10_500
"""Rows of a pair: more than a reader would look at before it decides."""


def rows_of(*arms: str) -> list[Row]:
    return [
        {**row, "id": f"{number}-{row['id']}"}
        for number, pair in enumerate(combinations(arms, 2))
        for row in lists(MANY if number == 0 else 500, arms=pair)
    ]


def check(path: Path, rows: list[Row], form: Callable[[Row], Row]) -> None:
    """The counts are those of the rows."""
    found = only(json_lines(path, map(form, rows)))
    assert counts(found) == Counter(map(outcome, rows))


@pytest.mark.parametrize("arms", [("bm25", "ltr", "dense"), ("control", "ltr", "dense")])
def test_teams_name_the_rankers_of_tests_one_after_another(
    arms: tuple[str, ...], tmp_path: Path
) -> None:
    check(tmp_path / "x.jsonl", rows_of(*arms), lambda row: {
        "qid": row["id"], "teams": [row[side] for side in row["teams"]], "clicks": row["clicks"],
    })  # fmt: skip


def test_a_rank_of_0_after_many_others_is_no_click(tmp_path: Path) -> None:
    rows = sorted(lists(20_000), key=lambda row: row["clicks"] or [-1], reverse=True)
    check(tmp_path / "x.jsonl", rows, lambda row: {
        "qid": row["id"], "a": row["a"], "b": row["b"], "teams": row["teams"],
        "clicked_rank": row["clicks"][0] + 1 if row["clicks"] else 0,
    })  # fmt: skip


def test_a_column_that_begins_with_one_ranker_may_name_the_rankers(tmp_path: Path) -> None:
    rows = [{"top": arm, "outcome": side} for arm in ("bm25", "ltr") for side in "ab" * MANY]
    with pytest.raises(ConfigurationError, match="rankers are in 'top'"):
        only(json_lines(tmp_path / "x.jsonl", rows))


def test_a_column_that_begins_with_ones_may_count_the_rows(tmp_path: Path) -> None:
    rows = [{"a": "bm25", "b": "ltr", "winner": "a", "n": n} for n in [1] * MANY + [100] * 20]
    with pytest.raises(ConfigurationError, match=r"'n' of .* how often each row"):
        only(json_lines(tmp_path / "x.jsonl", rows))


@pytest.mark.parametrize(
    ("column", "form"),
    [
        ("clicks", lambda row: len(row["clicks"])),
        ("clicks", lambda row: [int(rank in row["clicks"]) for rank in range(10)]),
    ],
    ids=["numbers", "flags"],
)
def test_one_mistake_changes_the_meaning_of_no_other_row(
    column: str, form: Callable[[Row], object], tmp_path: Path
) -> None:
    rows = lists(3000)

    def read(name: str, last: Row) -> object:
        written = [
            {"qid": row["id"], "a": row["a"], "b": row["b"], "teams": row["teams"],
             column: form(row)} for row in rows
        ]  # fmt: skip
        try:
            return counts(only(json_lines(tmp_path / name, [*written, *([last] if last else [])])))
        except ConfigurationError as error:
            return str(error).replace(name, "")

    mistake = {"qid": "x", "a": "bm25", "b": "ltr", "teams": ["a", "b"] * 5, column: "?!"}
    assert read("wrong.jsonl", mistake) == read("right.jsonl", {})

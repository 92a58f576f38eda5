"""Checks of the records of a log: repeated and lost ones, and their times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.unit.analysis.exports import START, Row, json_lines, only


@pytest.mark.parametrize(
    ("copies", "told"),
    [
        ([2] * 49, None),
        ([2] * 50, "2 times"),
        ([10] * 50, "10 times"),
        ([11] * 50, None),
        ([2] * 95 + [1] * 10, "2 times"),
        ([2] * 90 + [1] * 20, None),
    ],
    ids=["few", "enough", "the most", "too often", "nearly all", "too few of all"],
)
def test_records_without_an_id_that_are_there_equally_often_are_told(
    copies: Sequence[int], told: str | None, tmp_path: Path
) -> None:
    rows: list[Row] = [
        {"a": "bm25", "b": "ltr", "winner": "ab"[n % 2], "ts": START + n}
        for n, times in enumerate(copies)
        for _ in range(times)
    ]
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    (check,) = [each for each in found.checks if each.name == "duplicates"]
    assert check.verdict == ("unknown" if told is None else "warning")
    assert told is None or told in check.sentence


DUELS: list[Row] = [
    {"id": f"q{n}", "a": "bm25", "b": "ltr", "winner": "ab"[n % 2]} for n in range(100)
]


def verdict(path: Path, name: str, rows: Sequence[Row]) -> str:
    (check,) = [each for each in only(json_lines(path, rows)).checks if each.name == name]
    return check.verdict


@pytest.mark.parametrize(
    ("lost", "expected"), [(1, "fine"), (2, "warning"), (10, "warning"), (11, "failed")]
)
def test_more_than_1_percent_of_unusable_records_are_told(
    lost: int, expected: str, tmp_path: Path
) -> None:
    rows = [{**row, "winner": "void"} for row in DUELS[:lost]] + DUELS[lost:]
    assert verdict(tmp_path / "x.jsonl", "usable records", rows) == expected


@pytest.mark.parametrize(
    ("repeated", "change", "expected"),
    [
        (10, {}, "fine"),
        (11, {}, "warning"),
        (1, {"b": "dense"}, "fine"),
        (2, {"b": "dense"}, "warning"),
        (11, {"b": "dense"}, "failed"),
    ],
)
def test_repeated_ids_are_told_sooner_if_records_are_lost_by_them(
    repeated: int, change: Row, expected: str, tmp_path: Path
) -> None:
    rows = DUELS[repeated:] + [{**row, **change} for row in DUELS[-repeated:]]
    assert verdict(tmp_path / "x.jsonl", "duplicates", rows) == expected


def test_times_of_one_unit_are_not_told_wherever_they_are(tmp_path: Path) -> None:
    rows = [
        {"type": "duel", "experiment": "shop", **row, "ts": 1000 * n} for n, row in enumerate(DUELS)
    ]
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    assert [day.start for day in found.days] == ["1970-01-01"]
    assert "times" not in {each.name for each in found.checks}


FOR_BM25: Row = {"a": "bm25", "b": "ltr", "teams": [*"aabbababab"], "clicks": [0, 1]}
EITHER: Row = {**FOR_BM25, "clicks": [0, 1, 9]}
"""For bm25, and for ltr if clicks are weighed by their rank or only the last one counts."""


@pytest.mark.parametrize(
    ("lists", "expected", "says"),
    [
        ([EITHER], "fine", "All 18 ways to credit clicks and ties are undecided."),
        ([FOR_BM25] * 80, "fine", "All 3 ways to count ties, with every credit function, agree on"),
        (
            [EITHER] * 40 + [FOR_BM25] * 40,
            "warning",
            "6 of 18 ways to credit clicks and ties are undecided; the others agree on bm25.",
        ),
        (
            [EITHER] * 200,
            "failed",
            "The champion depends on the credit: bm25 with probabilistic, ties: drop; ltr with"
            " position_debiased, ties: drop. Decide",
        ),
    ],
)
def test_the_champion_may_depend_on_the_credit(
    lists: list[Row], expected: str, says: str, tmp_path: Path
) -> None:
    rows = [{"id": f"q{n}", **row} for n, row in enumerate(lists)]
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    (check,) = [each for each in found.checks if each.name == "dependence on credit"]
    assert check.verdict == expected
    assert check.sentence.startswith(says)


@pytest.mark.parametrize(
    ("late", "unjoined", "expected", "clocks"),
    [
        (0, 1, "fine", False),
        (2, 0, "warning", False),
        (51, 0, "failed", True),
        (50, 0, "failed", False),
        (0, 60, "failed", False),
    ],
)
def test_lost_clicks_are_told_with_what_to_check(
    late: int, unjoined: int, expected: str, clocks: bool, tmp_path: Path
) -> None:
    lists: list[Row] = [
        {"list_id": f"q{n}", "a": "bm25", "b": "ltr", "teams": ["a", "b"], "ts": START + n}
        for n in range(100)
    ]
    clicks: list[Row] = [
        {"list_id": f"{'no' if n >= 100 - unjoined else 'q'}{n}", "rank": 1,
         "ts": START + n + (10**9 if n < late else 1)}
        for n in range(100)
    ]  # fmt: skip
    own = json_lines(tmp_path / "z", [{**lists[0], "list_id": "own", "clicks": [0]}])
    found = only(json_lines(tmp_path / "x", lists), json_lines(tmp_path / "y", clicks), own)
    assert (found.tallies["late"], found.tallies["unjoined"]) == (late, unjoined)
    (check,) = [each for each in found.checks if each.name == "clicks joined"]
    assert check.verdict == expected
    lost = f"{late} of 100 clicks are late and {unjoined} name no list of the log"
    assert check.sentence.startswith(f"{lost} ({late + unjoined}.0%).")
    assert ("--join-window-ms" in check.sentence) is (expected != "fine")
    assert ("Clocks or time zones" in check.sentence) is clocks

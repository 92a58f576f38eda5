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

"""Duels over time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.analysis.exports import START, Row, json_lines, only

DAY_MS = 86_400_000


def duels(day: int, rival: str, won: int, of: int) -> list[Row]:
    """Duels of bm25 on one day, of which it wins some."""
    return [
        {"type": "duel", "id": f"{day}-{rival}-{n}", "experiment": "s", "a": "bm25", "b": rival,
         "winner": "a" if n < won else "b", "ts": START + day * DAY_MS}
        for n in range(of)
    ]  # fmt: skip


def test_days_of_a_long_log_are_shown_together(tmp_path: Path) -> None:
    rows = [row for day in range(61) for row in duels(day, "ltr", 1, 2)]
    found = only(json_lines(tmp_path / "x.jsonl", rows[:120]))
    assert [day.duels for day in found.days] == [2] * 60
    found = only(json_lines(tmp_path / "y.jsonl", rows))
    assert [day.duels for day in found.days] == [*[4] * 30, 2]


@pytest.mark.parametrize("swapped", [False, True])
def test_constant_preferences_are_flat_though_opponents_change(
    tmp_path: Path, swapped: bool
) -> None:
    rows = [
        *duels(0, "weak", 16, 20), *duels(0, "ltr", 6, 10),
        *duels(1, "weak", 4, 5), *duels(1, "ltr", 18, 30),
        *duels(2, "weak", 4, 5),
    ]  # fmt: skip
    if swapped:
        other = {"a": "b", "b": "a"}
        rows = [{**r, "a": r["b"], "b": r["a"], "winner": other[r["winner"]]} for r in rows]
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    assert (found.leader, found.most_met) == ("bm25", "ltr")
    assert [day.win_rate for day in found.days] == [0.6, 0.6, None]
    assert [day.duels for day in found.days] == [30, 35, 5], "of all pairs"

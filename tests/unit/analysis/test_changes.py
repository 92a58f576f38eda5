"""Win rates that change over time are told, and those that do not are not."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from streamduel.analysis.report import Check, ExperimentAnalysis
from tests.unit.analysis.exports import START, Row, json_lines, only

HOUR_MS = 3_600_000


def duels(n: int, preference: Callable[[int], float], clients: int = 1000) -> list[Row]:
    """A duel an hour, in any order, of which `ltr` wins one with this probability."""
    rng = random.Random(3)
    rows: list[Row] = [
        {"id": f"q{k}", "a": "bm25", "b": "ltr", "user_id": f"u{rng.randrange(clients)}",
         "winner": "b" if rng.random() < preference(k) else "a", "ts": START + k * HOUR_MS}
        for k in range(n)
    ]  # fmt: skip
    rng.shuffle(rows)
    return rows


def change(found: ExperimentAnalysis) -> Check:
    (check,) = [each for each in found.checks if each.name == "change over time"]
    return check


def test_a_champion_that_loses_in_the_end_is_told(tmp_path: Path) -> None:
    rows = duels(4000, lambda k: 0.75 if k < 3000 else 0.35)
    found = only(json_lines(tmp_path / "x.json", rows))
    check = change(found)
    assert (found.champion, check.verdict) == ("ltr", "warning")
    assert "bm25 over ltr has 0.6" in check.sentence
    assert "in the last quarter and 0.2" in check.sentence
    assert "not about what users prefer now" in check.sentence


def test_equal_preferences_do_not_change(tmp_path: Path) -> None:
    check = change(only(json_lines(tmp_path / "x.json", duels(4000, lambda _: 0.7))))
    assert check.verdict == "fine"


def test_a_heavy_user_of_one_day_is_no_change(tmp_path: Path) -> None:
    rows = duels(2000, lambda _: 0.6)
    for row in rows:
        if row["ts"] >= START + 1700 * HOUR_MS:
            row["user_id"], row["winner"] = "crawler", "a"
    assert change(only(json_lines(tmp_path / "x.json", rows))).verdict == "fine"


@pytest.mark.parametrize(("n", "verdict"), [(396, "unknown"), (400, "warning")])
def test_a_quarter_with_100_duels_of_the_leader_can_be_compared(
    n: int, verdict: str, tmp_path: Path
) -> None:
    rows = duels(n, lambda k: float(4 * k < n))
    assert change(only(json_lines(tmp_path / "x.json", rows))).verdict == verdict


def test_duels_of_one_minute_have_no_quarters_to_compare(tmp_path: Path) -> None:
    rows = [{**row, "ts": START} for row in duels(400, lambda _: 0.5)]
    assert change(only(json_lines(tmp_path / "x.json", rows))).verdict == "unknown"


def test_a_change_between_others_than_the_leader_is_not_told(tmp_path: Path) -> None:
    rows = [
        {"id": f"q{k}-{b}", "a": a, "b": b, "winner": won, "ts": START + k * HOUR_MS}
        for k in range(800)
        for a, b, won in (
            ("ltr", "bm25", "ab"[k % 4 == 0]),
            ("ltr", "dense", "ab"[k % 4 == 0]),
            ("bm25", "hybrid", "ab"[k < 400]),
        )
    ]
    found = only(json_lines(tmp_path / "x.json", rows))
    assert (found.leader, change(found).verdict) == ("ltr", "fine")


@pytest.mark.parametrize("times", [False, True])
def test_too_few_duels_or_times_say_nothing(tmp_path: Path, times: bool) -> None:
    rows = duels(300 if times else 2000, lambda k: float(k < 100))
    if not times:
        rows = [{**row, "ts": None} for row in rows]
    assert change(only(json_lines(tmp_path / "x.json", rows))).verdict == "unknown"


def met(n: int, preference: Callable[[str, float], float], seed: int = 3) -> list[Row]:
    """Duels of four rankers, an hour apart, of which `ltr` wins its own with this probability."""
    rng, arms = random.Random(seed), ("bm25", "dense", "hybrid", "ltr")
    rows: list[Row] = []
    for k in range(n):
        a, b = sorted(rng.sample(arms, 2))
        wins = preference(a, k / n) if b == "ltr" else 0.5
        rows.append(
            {"id": f"q{k}", "a": a, "b": b, "user_id": f"u{rng.randrange(1000)}",
             "winner": "b" if rng.random() < wins else "a", "ts": START + k * HOUR_MS}
        )  # fmt: skip
    return rows


def test_a_change_against_all_opponents_together_is_told(tmp_path: Path) -> None:
    """No opponent by itself had enough duels in a quarter."""
    rows = met(6000, lambda _, time: 0.68 if time < 0.5 else 0.52)
    found = only(json_lines(tmp_path / "x.json", rows))
    check = change(found)
    assert (found.leader, check.verdict) == ("ltr", "warning")
    assert "ltr wins 6" in check.sentence
    assert "in the first half and 5" in check.sentence


def test_other_opponents_are_no_change(tmp_path: Path) -> None:
    """`ltr` beats bm25 more often than the others, and meets it in the first half mostly."""
    rows = met(12_000, lambda other, _: 0.9 if other == "bm25" else 0.55)
    kept = [
        row for k, row in enumerate(rows)
        if row["b"] != "ltr" or (row["a"] == "bm25") == (k < 6000) or k % 4 == 0
    ]  # fmt: skip
    check = change(only(json_lines(tmp_path / "x.json", kept)))
    assert check.verdict == "fine"
    assert check.sentence == "No change of the leader's win rates was large enough to be sure of."

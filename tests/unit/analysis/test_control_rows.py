"""Control records in CSV and Parquet have the same effect as in JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streamduel.analysis.report import ExperimentAnalysis, Moment
from tests.unit.analysis.exports import START, Row, json_lines, only, written

NUMBERS = {"experiment": "shop", "type": "duels", "ties": 0}
PAIRS = [("x", "y", 300, 200), ("z", "x", 400, 150), ("z", "y", 420, 120)]
DUELS: list[Row] = [
    {**NUMBERS, "id": f"d{n}", "ts": START + n, "a": a, "b": b, "wins_a": wins, "wins_b": losses}
    for n, (a, b, wins, losses) in enumerate(PAIRS)
]
LISTS: list[Row] = [
    row
    for n in range(300)
    for a, b in [[("z", "x"), ("z", "y"), ("x", "y")][n % 3]]
    for row in [
        {"experiment": "shop", "type": "impression", "id": f"i{n}", "ts": START + n, "a": a, "b": b,
         "teams": ["a", "b"]},
        {"experiment": "shop", "type": "click", "id": f"c{n}", "ts": START + n + 500,
         "impression": f"i{n}", "rank": int(n % 5 == 0), "action": "click"},
    ]
]  # fmt: skip


def control(action: str, **more: Any) -> Row:
    return {"experiment": "shop", "type": "control", "id": "c", "ts": START + 900,
            "action": action, **more}  # fmt: skip


@pytest.fixture(params=["json", "csv", "parquet"])
def suffix(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def found(folder: Path, suffix: str, rows: list[Row]) -> ExperimentAnalysis:
    if suffix == "json":
        return only(json_lines(folder / "x.jsonl", rows))
    return only(written(folder / f"x.{suffix}", rows, f"FORMAT {suffix}"))


@pytest.mark.parametrize("rows", [DUELS, LISTS], ids=["counts", "lists and clicks"])
def test_an_arm_is_retired(rows: list[Row], suffix: str, tmp_path: Path) -> None:
    retired = control("retire_arm", arm="z", actor="alice")
    last = {**DUELS[0], "id": "last", "ts": START + 1000} if rows is DUELS else rows[0]
    shop = found(tmp_path, suffix, [*rows, retired, last])
    assert (shop.arms, shop.champion) == (["x", "y"], "x")
    assert shop.timeline == [Moment(START + 900, "retire_arm", "z", "alice")]
    assert shop.tallies["dead_letter"] == 0


def test_a_control_record_that_the_service_refuses_is_none(suffix: str, tmp_path: Path) -> None:
    shop = found(tmp_path, suffix, [*DUELS, control("retire_arm"), control("pause", id="p")])
    assert (len(shop.arms), shop.tallies["dead_letter"]) == (3, 1)


def test_settings_leave_arms_out_or_are_told_to_be_unreadable(suffix: str, tmp_path: Path) -> None:
    more = control("apply", id="more", ts=START + 800, settings={"decide_every": 5})
    apply = control("apply", settings={"arms": ["x", "y"]})
    shop = found(tmp_path, suffix, [*DUELS, more, apply])
    failed = {check.name: check.sentence for check in shop.checks if check.verdict == "failed"}
    if suffix == "csv":
        assert failed["control records"].startswith("2 control records cannot be read")
    else:
        assert (shop.arms, shop.champion) == (["x", "y"], "x")
        assert [each.text for each in shop.timeline] == ["decide_every", "arms"]
        assert "control records" not in failed


def test_settings_may_be_text_of_json(suffix: str, tmp_path: Path) -> None:
    apply = control("apply", settings='{"arms": ["x", "y"], "slate": 2}')
    shop = found(tmp_path, suffix, [*DUELS, apply])
    assert (shop.arms, shop.timeline[0].text) == (["x", "y"], "arms, slate")


def test_types_of_another_program_are_no_control_records(suffix: str, tmp_path: Path) -> None:
    rows = [
        {"type": "control" if n % 2 else "treatment", "action": "click", "id": f"{n}", "left": "x",
         "right": "y", "winner": "left"}
        for n in range(300)
    ]  # fmt: skip
    shop = found(tmp_path, suffix, rows)
    assert (shop.duels, shop.timeline) == (300, [])

"""Control records take effect in an analysis as they do in the service, or are dead letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.analysis.exports import START, Row, json_lines, only

X_Y, Z_X, Z_Y = ("x", "y", 300, 200), ("z", "x", 400, 150), ("z", "y", 420, 120)
RETIRE_Z, ADD_Z = {"action": "retire_arm", "arm": "z"}, {"action": "add_arm", "arm": "z"}
FREEZE = {"action": "freeze_pair", "a": "z", "b": "x"}


def log(*records: tuple[str, str, int, int] | Row) -> list[Row]:
    """Sums of duels and control records, a second apart."""
    rows: list[Row] = []
    for n, each in enumerate(records):
        row: Row = {"id": f"r{n}", "experiment": "search", "ts": START + 1000 * n}
        if isinstance(each, tuple):
            a, b, wins_a, wins_b = each
            row |= {"type": "duels", "a": a, "b": b, "wins_a": wins_a, "wins_b": wins_b, "ties": 0}
        else:
            row |= {"type": "control", **each}
        rows.append(row)
    return rows


def apply(**settings: Any) -> Row:
    return {"action": "apply", "settings": settings}


REFUSED: dict[str, tuple[list[Row], str, int]] = {
    "a name that stays taken": ([RETIRE_Z, ADD_Z], "xy", 1),
    "the same name in a list": ([RETIRE_Z, apply(arms=["x", "y", "z"])], "xy", 1),
    "another key that does not exist": ([apply(arms=["x", "y"], tiess="half")], "xyz", 1),
    "another key that is fixed": ([apply(arms=["x", "y"], join_window_ms=5)], "xyz", 1),
    "an arm listed twice": ([apply(arms=["x", "x", "y"])], "xyz", 1),
    "a number as an arm": ([apply(arms=["x", "y", 5])], "xyz", 1),
    "too few arms in a list": ([apply(arms=["x"])], "xyz", 1),
    "an unknown key": ([apply(notes="x")], "xyz", 1),
    "an arm of the frozen pair": ([FREEZE, RETIRE_Z], "xyz", 1),
    "the control arm": ([apply(guardrails={"control_arm": "z", "min_share": 0.1}), RETIRE_Z],
                        "xyz", 1),
    "an arm that is present": ([ADD_Z], "xyz", 1),
    "an unknown arm to retire": ([{"action": "retire_arm", "arm": "q"}], "xyz", 1),
    "an unknown arm to freeze": ([{"action": "freeze_pair", "a": "x", "b": "q"}], "xyz", 1),
    "an arm like an unknown one": ([{"action": "add_arm", "arm": "w", "like": "q"}], "xyz", 1),
    "nothing": ([FREEZE, {"action": "unfreeze_pair"}, RETIRE_Z], "xy", 0),
    "nothing of a valid list": ([apply(arms=["x", "y", "w"], ties="drop")], "wxy", 0),
}  # fmt: skip


@pytest.mark.parametrize("refused", REFUSED)
def test_control_records_have_the_effect_that_they_have_in_the_service(
    refused: str, tmp_path: Path
) -> None:
    controls, arms, dead_letters = REFUSED[refused]
    found = only(json_lines(tmp_path / "x.jsonl", log(X_Y, Z_X, Z_Y, *controls)))
    assert found.arms == [*arms]
    accepted = 3 + len(controls) - dead_letters
    assert (found.tallies["accepted"], found.tallies["dead_letter"]) == (accepted, dead_letters)
    assert len(found.timeline) == len(controls) - dead_letters


@pytest.mark.parametrize(
    ("record", "arms"), [(apply(ties="drop"), ["x", "y"]), (FREEZE, ["x", "y", "z"])]
)
def test_a_rare_arm_that_a_control_record_names_is_not_misspelt(
    record: Row, arms: list[str], tmp_path: Path
) -> None:
    rows = log(("x", "y", 100_000, 100_000), ("z", "x", 5, 5), record)
    assert only(json_lines(tmp_path / "x.jsonl", rows)).arms == arms


def test_an_arm_competes_from_its_control_record_on(tmp_path: Path) -> None:
    """Without it, there were too few arms to retire one."""
    retired = {"action": "retire_arm", "arm": "x"}
    found = only(json_lines(tmp_path / "x.jsonl", log(X_Y, retired, ADD_Z, Z_X, Z_Y)))
    assert (found.arms, found.champion) == (["x", "y", "z"], "z")
    assert [each.event for each in found.timeline] == ["add_arm"]


def test_duels_of_an_arm_that_was_never_added_are_dead_letters(tmp_path: Path) -> None:
    refused = apply(arms=["x", "y", "z"], tiess="half")
    found = only(json_lines(tmp_path / "x.jsonl", log(X_Y, refused, Z_X, Z_Y)))
    assert (found.arms, found.duels, found.tallies["dead_letter"]) == (["x", "y"], 500, 3)


def test_a_refused_control_record_keeps_its_id(tmp_path: Path) -> None:
    rows = log(X_Y, Z_X, Z_Y, {"action": "retire_arm", "arm": "zz"}, {**RETIRE_Z, "id": "r3"})
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    assert found.arms == ["x", "y", "z"]
    assert (found.tallies["dead_letter"], found.tallies["duplicate"]) == (1, 1)


def test_a_reset_keeps_the_arms(tmp_path: Path) -> None:
    rows = log(X_Y, Z_X, ("w", "x", 5, 5), RETIRE_Z, {"action": "reset"}, ADD_Z, X_Y)
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    assert (found.arms, found.duels) == (["w", "x", "y"], 500)
    assert found.tallies["dead_letter"] == 1


def test_a_misspelt_arm_that_is_corrected_under_the_same_id_counts(tmp_path: Path) -> None:
    kinds: list[Row] = [
        {"type": "duel", "winner": "a"},
        {"type": "impression", "teams": ["a", "b"]},
    ]
    same = {"experiment": "search", "a": "x", "b": "y"}
    fixed = [
        {**same, **kind, "id": f"f{n}-{kind['type']}", "ts": START + 9000 + n}
        for n in range(20) for kind in kinds
    ]  # fmt: skip
    clicks = [
        {"type": "click", "id": f"c{n}", "experiment": "search", "impression": f"f{n}-impression",
         "rank": 0, "ts": START + 9500}
        for n in range(20)
    ]  # fmt: skip
    wrong = [{**row, "a": "xx", "ts": row["ts"] - 1000} for row in fixed]
    rows = [*log(X_Y, ("x", "y", 30_000, 30_000)), *wrong, *fixed, *clicks]
    found = only(json_lines(tmp_path / "x.jsonl", rows))
    (pair,) = found.pairs
    assert (pair.wins_a, pair.wins_b) == (30_340, 30_200)
    assert (found.tallies["dead_letter"], found.tallies["duplicate"]) == (40, 0)


@pytest.mark.parametrize(
    ("duels", "total", "arms"),
    [
        (99, 100_000, ["x", "y"]),
        (99, 99_000, ["q", "x", "y"]),
        (100, 200_000, ["q", "x", "y"]),
    ],
)
def test_an_arm_with_less_than_100_duels_and_a_thousandth_of_all_is_misspelt(
    duels: int, total: int, arms: list[str], tmp_path: Path
) -> None:
    half = (total - duels) // 2
    rows = log(("x", "y", half, total - duels - half), ("q", "x", duels, 0))
    assert only(json_lines(tmp_path / "x.jsonl", rows)).arms == arms


def test_control_records_of_several_experiments_are_apart(tmp_path: Path) -> None:
    rows = log(X_Y, Z_X, Z_Y, RETIRE_Z, ADD_Z)
    other = [{**row, "experiment": "ads"} for row in log(X_Y, Z_X, Z_Y, ADD_Z)]
    path = json_lines(tmp_path / "x.jsonl", [*rows, *other])
    assert only(path, experiment="search").arms == ["x", "y"]
    assert only(path, experiment="ads").arms == ["x", "y", "z"]


CHANGES: dict[str, tuple[list[Row], str, str]] = {
    "one rule": ([apply(ties="drop")], "warning",
        "The service changed ties at 2026-09-21 14:13 UTC; all duels here are counted by"
        " --ties half."),
    "several, and a ranker": ([apply(credit={"name": "first_click"}, no_click="drop"), RETIRE_Z],
        "warning", "The service changed credit at 2026-09-21 14:13 UTC and no_click at 2026-09-21"
        " 14:13 UTC; all duels here are counted by --credit click_count and --no-click tie."
        " Retired, and left out with their duels: z."),
    "without a time": ([{**apply(ties="drop"), "ts": None}], "warning",
        "The service changed ties; all duels here are counted by --ties half."),
    "rankers alone": ([apply(arms=["x", "y"])], "fine",
        "Retired, and left out with their duels: z."),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_control_records_changed_is_told(change: str, tmp_path: Path) -> None:
    controls, verdict, sentence = CHANGES[change]
    found = only(json_lines(tmp_path / "x.jsonl", log(X_Y, Z_X, Z_Y, *controls)))
    (check,) = [each for each in found.checks if each.name == "control records"]
    assert (check.verdict, check.sentence) == (verdict, sentence)


@pytest.mark.parametrize("control", [apply(ties="third"), apply(decide_every=2), ADD_Z], ids=str)
def test_nothing_is_told_of_other_control_records(control: Row, tmp_path: Path) -> None:
    found = only(json_lines(tmp_path / "x.jsonl", log(X_Y, Z_X, Z_Y, control)))
    assert "control records" not in {each.name for each in found.checks}

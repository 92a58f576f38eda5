"""The timeline of a log: its control records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.page import render
from streamduel.analysis.report import Analysis, Moment
from tests.unit.analysis.exports import START, json_lines, lists


def analysis(folder: Path, *controls: dict[str, Any]) -> Analysis:
    rows = [{"type": "interleaving", "experiment": "shop", **row} for row in lists(300)]
    same = {"type": "control", "experiment": "shop"}
    rows += [{**same, "id": f"c{n}", **control} for n, control in enumerate(controls)]
    return analyze(Request([str(json_lines(folder / "x.jsonl", rows))]))


def test_control_records_are_told_with_their_actor(tmp_path: Path) -> None:
    found = analysis(
        tmp_path,
        {"action": "note", "text": "trained again", "actor": "alice", "ts": START + 3},
        {"action": "apply", "settings": {"slate": 2, "decide_every": 5}, "ts": START + 2},
        {"action": "add_arm", "arm": "dense", "text": "why", "ts": START + 1},
        {"action": "freeze_pair", "a": "bm25", "b": "ltr", "ts": START},
        {"action": "pause"},
        {"action": "reset", "ts": START - 10},
        {"action": "note", "id": "c0", "text": "a duplicate", "ts": START + 9},
        {"action": "apply", "settings": "nothing", "ts": START + 4},
        {"action": "unheard of", "ts": START},
        {"action": "retire_arm", "arm": "unheard of", "ts": START + 5},
    )
    assert found.experiments["shop"].timeline == [
        Moment(None, "pause", None, None),
        Moment(START - 10, "reset", None, None),
        Moment(START, "freeze_pair", "bm25 / ltr", None),
        Moment(START + 1, "add_arm", "dense", None),
        Moment(START + 2, "apply", "decide_every, slate", None),
        Moment(START + 3, "note", "trained again", "alice"),
    ]
    assert "Timeline</h2>" in render(found)


def test_records_with_documents_are_streamduels_own(tmp_path: Path) -> None:
    rows = [
        {
            **row,
            "type": "interleaving",
            "experiment": "shop",
            "docs": [f"{row['id']}/{rank}" for rank in range(len(row["teams"]))],
        }
        for row in lists(300)
    ]
    control = {"type": "control", "experiment": "shop", "id": "c", "ts": START + 10**9}
    note = {**control, "id": "n", "action": "note", "text": "trained", "actor": "alice"}
    arms = sorted({arm for row in rows for arm in (row["a"], row["b"])})
    apply = {**control, "action": "apply", "settings": {"arms": arms[:2]}}
    path = json_lines(tmp_path / "x.jsonl", [*rows, note, apply])
    found = analyze(Request([str(path)])).experiments["shop"]
    assert found.arms == arms[:2]
    assert [each.text for each in found.timeline] == ["trained", "arms"]


def test_an_arm_without_duels_competes_from_its_control_record_on(tmp_path: Path) -> None:
    rows = [
        {"type": "duel", "id": f"{n}", "experiment": "shop", "a": "x", "b": "y", "winner": "a",
         "ts": START + n}
        for n in range(2000)
    ]  # fmt: skip
    added = {"type": "control", "id": "c", "experiment": "shop", "action": "add_arm",
             "arm": "new", "ts": START + 3000}  # fmt: skip
    alone = analyze(Request([str(json_lines(tmp_path / "x.jsonl", rows))])).experiments["shop"]
    found = analyze(Request([str(json_lines(tmp_path / "y.jsonl", [*rows, added]))]))
    assert (alone.champion, found.experiments["shop"].champion) == ("x", None)
    assert found.experiments["shop"].arms == ["new", "x", "y"]
    met = {**rows[0], "id": "met", "b": "new", "ts": START + 3001}
    found = analyze(Request([str(json_lines(tmp_path / "z.jsonl", [*rows, added, met]))]))
    assert found.experiments["shop"].arms == ["new", "x", "y"], "it is rare, and not misspelt"


def test_the_newest_100_are_told(tmp_path: Path) -> None:
    notes = [{"action": "note", "text": f"n{n}", "ts": START + n} for n in range(101)]
    found = analysis(tmp_path, *notes).experiments["shop"].timeline
    assert [each.text for each in found] == [f"n{n}" for n in range(1, 101)]


def test_notes_are_shown_as_text(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>" + "x" * 900
    note = {"action": "note", "text": bad, "actor": bad[:256], "ts": 2**52}
    page = render(analysis(tmp_path, note))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" + "x" * 900 in page


def test_a_log_without_control_records_has_no_timeline(tmp_path: Path) -> None:
    found = analysis(tmp_path)
    assert found.experiments["shop"].timeline == []
    assert "Timeline</h2>" not in render(found)

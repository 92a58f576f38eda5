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
    )
    assert found.experiments["shop"].timeline == [
        Moment(None, "pause", None, None),
        Moment(START - 10, "reset", None, None),
        Moment(START, "freeze_pair", "bm25 / ltr", None),
        Moment(START + 1, "add_arm", "dense", None),
        Moment(START + 2, "apply", "decide_every, slate", None),
        Moment(START + 3, "note", "trained again", "alice"),
        Moment(START + 4, "apply", "", None),
    ]
    assert "Timeline</h2>" in render(found)


def test_notes_are_shown_as_text(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>" + "x" * 900
    page = render(analysis(tmp_path, {"action": "note", "text": bad, "actor": bad, "ts": 2**52}))
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" + "x" * 900 in page


def test_a_log_without_control_records_has_no_timeline(tmp_path: Path) -> None:
    found = analysis(tmp_path)
    assert found.experiments["shop"].timeline == []
    assert "Timeline</h2>" not in render(found)

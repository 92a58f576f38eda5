"""A click log whose control records are in a topic of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamduel.analysis.analyze import Request, analyze
from streamduel.analysis.report import ExperimentAnalysis
from tests.unit.analysis.exports import Row, json_lines, sentence, written
from tests.unit.analysis.test_control_rows import DUELS, LISTS, control

MARKERS: list[Row] = [
    {"type": "control_marker", "id": f"control-0@{offset}", "experiment": "shop",
     "control_offset": offset, "digest": "d"}
    for offset in (0, 1, 1)
]  # fmt: skip
"""Of two control records; one marker is there twice."""

CONTROLS = [
    control("add_arm", arm="z", id="added", ts=None),
    control("retire_arm", arm="z", id="retired", ts=None),
]


def found(*paths: Path) -> ExperimentAnalysis:
    return analyze(Request([str(path) for path in paths])).experiments["shop"]


def dump(rows: list[Row]) -> list[Row]:
    return [
        {"topic": "control", "partition": 0, "offset": offset, "timestamp": 1_790_000_000_000 + at,
         "payload": json.dumps(row)}
        for offset, (at, row) in enumerate(zip((-5, 900_000_000), rows, strict=True))
    ]  # fmt: skip


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
@pytest.mark.parametrize("rows", [DUELS, LISTS], ids=["counts", "lists and clicks"])
def test_control_records_that_are_not_in_the_log_are_missed(
    rows: list[Row], suffix: str, tmp_path: Path
) -> None:
    path = written(tmp_path / f"x.{suffix}", [*rows, *MARKERS], f"FORMAT {suffix}")
    shop = found(path)
    assert "lacks 2 control records" in sentence(shop, "control records")
    assert (len(shop.arms), shop.tallies["dead_letter"]) == (3, 0)
    shop = found(path, json_lines(tmp_path / "control.jsonl", CONTROLS[:1]))
    assert "lacks 1 control record of" in sentence(shop, "control records")


def test_the_dump_of_a_control_topic_is_part_of_the_log(tmp_path: Path) -> None:
    log = json_lines(tmp_path / "x.jsonl", [*MARKERS, *DUELS])
    shop = found(log, json_lines(tmp_path / "control.jsonl", dump(CONTROLS)))
    assert (shop.arms, shop.champion) == (["x", "y"], "x")
    assert [each.event for each in shop.timeline] == ["add_arm", "retire_arm"]
    assert [each.verdict for each in shop.checks if each.name == "control records"] == ["fine"]

"""`control apply` to several experiments: what is written when it fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.commands import Streamduel, configure, run

NAMES = ("ads", "search", "shop")


def many(folder: Path, **settings: Any) -> Path:
    arms = {"arms": ["bm25", "dense"], **settings}
    return configure(folder, {"experiments": dict.fromkeys(NAMES, arms)})


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """That of running experiments, with one change of each."""
    (tmp_path / "clicks.jsonl").touch()
    result = run(many(tmp_path), "--until-end", "--quiet")
    assert result.status == 0, result.err
    return many(tmp_path, slate=2)


def written(config: Path) -> list[str]:
    log = config.with_name("clicks.jsonl").read_bytes()
    return [json.loads(line)["experiment"] for line in log.splitlines()]


def test_a_record_that_is_too_large_leaves_all_unwritten(
    streamduel: Streamduel, config: Path
) -> None:
    arms, large = {"arms": ["bm25", "dense"]}, {"class": [f"{it:0100}" for it in range(32)]}
    changed = {"ads": {**arms, "slate": 2}, "search": arms, "shop": {**arms, "segments": large}}
    changes = {"experiments": changed, "limits.max_record_bytes": 2000}
    result = streamduel("control", "apply", configure(config.parent, changes), "--yes")
    assert (result.status, result.out, written(config)) == (2, "", [])
    assert "bytes; limits.max_record_bytes allows 2000." in result.err

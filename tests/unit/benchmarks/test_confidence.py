"""The page on confidence: what is measured, and that the command writes it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from benchmarks import confidence

DOCS = Path(__file__).parents[3] / "docs"


def test_repeated_checks_mislead_an_ordinary_test_only() -> None:
    found = confidence.errors(experiments=500, duels=1_000)
    assert found.duels[-1] == 1_000
    assert found.ordinary[-1] > 0.35
    assert found.ours[-1] < 0.05


def test_the_command_writes_table_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(DOCS / "measurements.md", tmp_path)
    few = ["--experiments", "50", "--duels", "100", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["confidence", *few])
    confidence.main()
    page = (tmp_path / "measurements.md").read_text()
    _, _, table = page.partition("<!-- measured confidence: begin -->")
    table, _, _ = table.partition("<!-- measured confidence: end -->")
    assert table.count("| 100 |") == 1
    assert "| 10,000 |" not in table
    assert (tmp_path / "images" / "confidence.png").stat().st_size > 5_000

"""The page on confidence: what is measured, and that the command writes it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import confidence
from streamduel.preference.evidence import log_evidence_of, nats

DOCS = Path(__file__).parents[3] / "docs"


def test_repeated_checks_mislead_an_ordinary_test_only() -> None:
    found = confidence.errors(experiments=500, duels=1_000)
    assert found.duels[-1] == 1_000
    assert found.ordinary[-1] > 0.35
    assert found.ours[-1] < 0.05


def test_half_of_the_experiments_are_sure_after_the_median() -> None:
    """Of 4,000, the share has a standard deviation of 0.008; five of them: 0.04."""
    experiments, median = 4_000, confidence.duels_until_sure(0.6)
    users, enough = np.random.default_rng(1), nats(0.95, 2, "condorcet")
    wins, sure = np.zeros(experiments), np.zeros(experiments, dtype=bool)
    for n in range(1, median + 1):
        wins += users.random(experiments) < 0.6
        sure |= log_evidence_of(wins, n - wins) >= enough
    assert abs(sure.mean() - 0.5) < 0.04
    page = (DOCS / "measurements.md").read_text(encoding="utf-8")
    assert f"\n| 60% | {median} |\n" in page


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

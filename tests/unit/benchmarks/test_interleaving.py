"""The page on interleaving: what is measured, and that the command writes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks import interleaving

DOCS = Path(__file__).parents[3] / "docs"


def way(method: str) -> interleaving.Way:
    return next(each for each in interleaving.WAYS if each.method == method)


def test_random_clicks_reveal_the_biased_method() -> None:
    # The first ranking alone has one document higher, so it wins one click of ten.
    ((one, *_),) = interleaving.random_clicks([way("balanced")], 2000)
    assert one.mean == pytest.approx(0.1, abs=5 * one.error)
    (shares,) = interleaving.random_clicks([way("team_draft")], 2000)
    for share in shares:
        assert share.mean == pytest.approx(0.5, abs=5 * share.error)
        assert share.error < 0.02


def test_the_better_ranker_is_found_and_quality_is_a_share() -> None:
    ((perfect, *_),) = interleaving.users([way("team_draft")], 1500)
    assert 20 < perfect.needed < 500
    assert perfect.error < perfect.needed
    assert 0.9 < perfect.seen < 1.0
    assert interleaving.dcg([3, 0]) == 7.0


def test_the_command_writes_table_and_picture(tmp_path: Path) -> None:
    shutil.copy(DOCS / "measurements.md", tmp_path)
    interleaving.main(["--impressions", "20", "--out", str(tmp_path)])
    page = (tmp_path / "measurements.md").read_text(encoding="utf-8")
    for each in interleaving.WAYS:
        assert page.count(f"| {interleaving.label(each)} |") == 1
    assert "20 impressions a cell" in page
    assert (tmp_path / "images" / "interleaving.png").stat().st_size > 5_000

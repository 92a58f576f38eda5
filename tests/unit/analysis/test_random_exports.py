"""Exports of random shapes, names and formats, among columns that have nothing to do with duels."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.analysis.random_exports import differences


@pytest.mark.parametrize("seed", range(20))
def test_every_export_gives_its_counts(seed: int, tmp_path: Path) -> None:
    assert list(differences(seed, tmp_path)) == []

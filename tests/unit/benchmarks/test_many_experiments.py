"""The page on many experiments: equal work together and alone, and that the page is written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks import crowd, many_experiments
from benchmarks.crowd import Case, Run
from benchmarks.many_experiments import Found

DOCS = Path(__file__).parents[3] / "docs"
MB = 1_000_000


def test_every_grouping_has_the_same_records_in_the_order_of_each_experiment() -> None:
    every = crowd.logs(3, 4)
    one = [*crowd.in_rounds([*every.values()])]
    assert len(one) == len(set(one)) == 12
    for name, log in every.items():
        assert [value for value in one if f'"{name}"'.encode() in value] == log


def test_a_service_is_measured_from_its_start_to_its_restart(tmp_path: Path) -> None:
    path = crowd.write_service(
        tmp_path / "service",
        Case("rucb", 1),
        crowd.logs(3, 40),
        monitoring={"port": 0},
        commit={"interval_ms": 1},
    )
    found = crowd.run(path)
    assert 0 < found.starting < 60
    assert found.again > 0
    assert min(found.resident, found.scraped) > 10 * MB
    snapshot = (tmp_path / "service" / "state" / "snapshot.json").read_bytes()
    assert snapshot.count(b'"since_decision"') == 3
    assert b'"next":120' in snapshot
    assert 0 < crowd.restart(path) < 60
    assert (tmp_path / "service" / "state" / "snapshot.json").read_bytes() == snapshot


def test_the_page_and_the_picture_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = many_experiments.QUICK
    kinds = [(policy, number) for policy in many_experiments.POLICIES for number in plan.numbers]
    found = Found(
        folds={(case, n): [10.0 + n] for case in plan.folds for n in plan.numbers},
        runs={
            (policy, n): [Run(0.5, 0.25, 0.02, 90 * MB + n * 40_000, 90 * MB, 0.4, 0.2)]
            for policy, n in kinds
        },
        restarts={kind: [0.125] for kind in kinds},
    )
    monkeypatch.setattr(many_experiments, "find", lambda plan: found)
    shutil.copy(DOCS / "measurements.md", tmp_path)
    many_experiments.main(["--quick", "--out", str(tmp_path)])
    page = (tmp_path / "measurements.md").read_text(encoding="utf-8")
    assert page.count("| 11.00 (11.00–11.00) | 20.00 (20.00–20.00) | 110.00 (110.00–110.00) |") == 4
    assert "| `rucb`, 100 | 94 | 40 | 0 | 0.50 | 0.25 | 0.12 | 20.0 | 400.0 | 200.0 |" in page
    assert (tmp_path / "images" / "many-experiments.png").stat().st_size > 5_000

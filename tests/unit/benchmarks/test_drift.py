from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import drift


def test_the_command_writes_page_and_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "measurements.md"
    page.write_text("before\n<!-- measured drift: begin -->\n<!-- measured drift: end -->\nafter\n")
    given = ["--quick", "--runs", "2", "--jobs", "1", "--out", str(tmp_path)]
    drift.main(given)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    # Two tables, the same lines in both.
    assert len(rows) == 2 * len(drift.POLICIES) * len(drift.QUICK.cases)
    picture = tmp_path / "images" / "drift.png"
    assert 5_000 < picture.stat().st_size < 150_000
    assert "rucb, window 100: 2 runs" in capsys.readouterr().err
    drift.main(given)
    assert page.read_text(encoding="utf-8") == text


def test_the_best_ranker_becomes_the_last_and_nothing_else_changes() -> None:
    assert (drift.AFTER[1:, 1:] == drift.BEFORE[:-1, :-1]).all()
    assert (drift.AFTER[0, 1:] == drift.BEFORE[-1, :-1]).all()
    assert np.allclose(drift.AFTER + drift.AFTER.T, 1)


def test_a_run_measures_the_cost_of_a_change() -> None:
    plan = drift.Plan((drift.Case.of(10_000),), after=10_000, grid=500)
    result = drift.run_once(plan, 2, ("rucb", plan.cases[0], 1))
    assert result == drift.run_once(plan, 2, ("rucb", plan.cases[0], 1))
    assert len(result.regret_after) == 21
    assert result.regret_after == sorted(result.regret_after)
    # The dearest duel is that of the last arm with itself.
    assert 0 < result.regret_after[-1] < 10_000 * 0.11
    assert result.found in range(500, 10_001 - 500 * (drift.SETTLED - 1), 500)
    assert 0.5 < result.share_correct <= 1


def test_regret_from_one_change_to_the_next() -> None:
    plan = drift.Plan((drift.Case(None, 9_000), drift.Case.of(100)), after=1_000, grid=500)
    late = drift.RunResult(50.0, regret_after=[0.0, 20.0, 30.0], found=500, share_correct=1.0)
    never = late._replace(regret_after=[0.0, 30.0, 60.0], found=None)
    # After 1,000 duels, 4,000 more at 50 per 100,000.
    assert drift.between(plan, plan.cases[1], [late, late], 5_000) == "32"
    assert drift.between(plan, plan.cases[1], [late, never], 5_000) == "over 45"
    assert drift.between(plan, plan.cases[0], [late, late], 9_000) == "34"
    assert drift.between(plan, plan.cases[0], [late, late], 5_000) == "", "this was not measured"
    assert drift.duels_until([late, late, never], plan) == "500 (over 1,000)"


def test_changes_occur_at_any_phase_of_a_window() -> None:
    case = drift.Case.of(1_000)
    assert [case.changes_at(run, 4) for run in range(4)] == [2_000, 2_250, 2_500, 2_750]
    assert drift.Case(None, 500).changes_at(3, 4) == 500

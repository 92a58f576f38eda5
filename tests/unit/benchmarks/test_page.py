"""The page of results keeps what is not measured again."""

from __future__ import annotations

from pathlib import Path

from benchmarks.page import PAGE, Measured, put, read
from benchmarks.report import Goal, Result


def _result(title: str, found: float) -> Result:
    goal = Goal(title, found, at_most=2, unit="µs")
    return Result(title, "How.", ["log", "µs"], [["duels", f"{found}"]], [goal])


def _measured(title: str, found: float, quick: bool = False) -> Measured:
    return Measured.of(lambda _quick: [_result(title, found)], quick=quick)


def test_a_benchmark_replaces_its_own_results_alone(tmp_path: Path) -> None:
    store = tmp_path / "results.json"
    for name, found in (("fold", 1.0), ("latency", 3.0), ("fold", 2.5)):
        put(name, _measured(name, found), store)
    assert {name: each.results for name, each in read(store).items()} == {
        "fold": [_result("fold", 2.5)],
        "latency": [_result("latency", 3.0)],
    }
    page = (tmp_path / PAGE).read_text()
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## Goals", "## fold", "## latency", "## The machine", "## When each was measured",
    ]  # fmt: skip
    assert "| fold | at most 2 µs | 2.50 µs | missed |" in page
    assert "2 of 2 goals are missed." in page
    assert "| duels | 1.0 |" not in page


def test_without_a_store_nothing_is_known(tmp_path: Path) -> None:
    assert read(tmp_path / "none.json") == {}

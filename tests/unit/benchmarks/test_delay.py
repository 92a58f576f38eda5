from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import delay
from streamduel import policies
from streamduel.simulation.delay import FixedDelay
from streamduel.simulation.environment import MatrixEnvironment


def test_the_command_writes_page_and_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    page = tmp_path / "measurements.md"
    page.write_text("before\n<!-- measured delay: begin -->\n<!-- measured delay: end -->\nafter\n")
    given = ["--quick", "--runs", "2", "--out", str(tmp_path)]
    delay.main(given)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    # Each table has a line of heads besides its cells; the second has these for each policy.
    long = [
        f"| `{name}` | {cell.flying} |" for name in delay.QUICK.long for cell in delay.QUICK.remote
    ]
    assert len(rows) == len(delay.QUICK.cells) + len(long) + 2
    for beginning, row in zip(long, rows[-len(long) :], strict=True):
        assert row.startswith(beginning)
    for name in ("delay.png", "delay-long.png"):
        assert 5_000 < (tmp_path / "images" / name).stat().st_size < 150_000
    assert "rucb, 0 in flight, slate of 1, 500 duels" in capsys.readouterr().err

    journals = {path: path.read_bytes() for path in (tmp_path / "cache").rglob("*.jsonl")}
    assert len(journals) == len(delay.QUICK.cells) + len(delay.QUICK.remote)
    delay.main(given)
    assert page.read_text(encoding="utf-8") == text
    assert {path: path.read_bytes() for path in journals} == journals


def test_a_repeated_pair_is_served_until_the_next_decision() -> None:
    p = [[0.5, 0.6, 0.7], [0.4, 0.5, 0.6], [0.3, 0.4, 0.5]]
    policy = policies.create("rucb", n_arms=3, seed=1)
    environment = MatrixEnvironment(p, seed=1)
    way = delay.RepeatedCourse(policy, environment, FixedDelay(50), slate=10, seed=1)
    before = way.plays
    for t in range(10, 1001, 10):
        way.advance(t - 3)
        way.advance(t)
        assert (way.plays - before).max() == 10
        before = way.plays
    assert way.in_flight == 50

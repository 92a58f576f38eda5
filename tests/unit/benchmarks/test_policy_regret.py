from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import policy_regret, worlds
from streamduel.preference.matrix import check
from streamduel.preference.winners import condorcet_winner, copeland_winners


def test_worlds_are_what_their_titles_say() -> None:
    found = worlds.published(None) | worlds.drawn()
    for name, world in found.items():
        check(world.preferences)
        has_winner = condorcet_winner(world.preferences) is not None
        assert has_winner != name.startswith(("none", "cycle")), name
        assert world.regret == ("condorcet" if has_winner else "copeland")
        assert len(copeland_winners(world.preferences)) < len(world.preferences)
    again = worlds.published(None) | worlds.drawn()
    for name, world in found.items():
        assert np.array_equal(world.preferences, again[name].preferences)


def test_figures_are_mean_quantiles_and_wrong_champions() -> None:
    measured = policy_regret.Measured([float(n) for n in range(101)], 100)
    assert measured.figures() == "**50** · 50 · 95 · 99 (1% wrong)"


def test_the_command_writes_both_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    two = {"arxiv": worlds.published(None)["arxiv"], "none8a": worlds.drawn()["none8a"]}
    monkeypatch.setattr(policy_regret, "drawn", lambda: two)
    monkeypatch.setattr(policy_regret, "published", lambda _: {})
    monkeypatch.setattr(policy_regret, "IN_DELAY", ("arxiv",))
    for page, names in (("measurements.md", ("compared", "batches")), ("policies.md", ("delays",))):
        marks = (f"<!-- measured {n}: begin -->\n<!-- measured {n}: end -->\n" for n in names)
        (tmp_path / page).write_text("before\n" + "".join(marks) + "after\n")
    policy_regret.main(["--quick", "--runs", "2", "--out", str(tmp_path)])
    text = (tmp_path / "measurements.md").read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| `top_two`, `aim: earn` |" in text
    assert "| `hoeffding` | ⌊ln T⌋ + 6 |" in text
    assert "| arXiv 6 |" in (tmp_path / "policies.md").read_text(encoding="utf-8")
    assert "none8a, c2b" in capsys.readouterr().err

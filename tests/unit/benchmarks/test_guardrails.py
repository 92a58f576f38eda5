"""The page on guardrails: what is measured, and that the command writes it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks import guardrails
from streamduel.config.experiment import GuardrailSettings
from streamduel.simulation.matrices import ARXIV

DOCS = Path(__file__).parents[3] / "docs"


def test_a_hold_out_costs_what_its_arm_loses_alone() -> None:
    settings = GuardrailSettings(control_arm=guardrails.POOREST, min_share=0.5)
    outcome = guardrails.play(settings, 2_000, run=0)
    gap = ARXIV[0][-1] - 0.5
    # Of 2,000 impressions each is drawn for the hold-out with probability 1/2: 1,000 in the mean,
    # with a standard deviation of 22. The policy itself hardly ever asks for this arm alone.
    assert outcome.held_out == pytest.approx(1_000 * gap, abs=5 * 22 * gap)
    assert outcome.held_out <= outcome.regret
    assert outcome.shown >= outcome.held_out / gap - 0.5


def test_a_cap_holds_back_an_arm_that_is_not_the_champion() -> None:
    free = guardrails.play(GuardrailSettings(), 1_000, run=3)
    capped = guardrails.play(GuardrailSettings(max_share=0.02), 1_000, run=3)
    assert free.shown_early == free.shown > 100
    # The poorest arm is never the champion of this run. So it is in 20 of 1,000 at most, in the
    # mean; the standard deviation is 4.4, and five of them are allowed.
    assert capped.shown <= 20 + 5 * 4.4


def test_the_command_writes_tables_and_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(DOCS / "measurements.md", tmp_path)
    guardrails.main(["--quick", "--runs", "2", "--out", str(tmp_path)])
    page = (tmp_path / "measurements.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("<!-- measured guardrails: begin -->")
    measured, _, after = rest.partition("<!-- measured guardrails: end -->")
    rows = [line.split(" | ") for line in measured.splitlines() if line.startswith("| ")]
    heads = [row for row in rows if "regret" in row[1]]
    assert [len(row) for row in heads] == [6, 5]
    labels = [row[0].strip("| ") for row in rows if row not in heads]
    assert labels == [*guardrails.CAPS, *guardrails.FLOORS]
    assert after.startswith("\n\n![")
    assert 5_000 < (tmp_path / "images" / "guardrails.png").stat().st_size < 150_000
    assert "min_share 0.2: " in capsys.readouterr().err

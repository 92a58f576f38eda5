"""The examples of docs/simulation.md work as shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from streamduel.cli.simulate import simulate

PAGE = (Path(__file__).parents[3] / "docs" / "simulation.md").read_text(encoding="utf-8")


def test_the_python_on_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, {})
    said = capsys.readouterr().out
    assert said.startswith("0 [")  # the ranker with the least noise is found
    assert "'type': 'interleaving'" in said


def test_every_option_on_the_page_exists() -> None:
    app = typer.Typer()
    app.command()(simulate)
    options = {name for option in typer.main.get_command(app).params for name in option.opts}
    assert {f"--{name}" for name in re.findall(r"`--([a-z-]+)", PAGE)} <= options

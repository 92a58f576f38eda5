"""The examples of docs/interleaving.md on credit functions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from streamduel.config.experiment import CreditSettings
from streamduel.interleaving.credit import CREDITS

PAGE = (Path(__file__).parents[3] / "docs" / "interleaving.md").read_text(encoding="utf-8")
CREDIT = re.split(r"^## ", PAGE.partition("\n## Credit functions\n")[2], flags=re.MULTILINE)[0]
CODE = re.findall(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", CREDIT, re.DOTALL)


def test_every_credit_function_has_its_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", CREDIT, re.MULTILINE)
    assert rows == list(CREDITS)


@pytest.mark.parametrize(("code", "said"), [pair for pair in CODE if pair[1]])
def test_the_python_examples_print_what_the_page_shows(
    code: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(code, {})
    assert capsys.readouterr().out == said


def test_the_configuration_on_the_page_is_valid() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", CREDIT, re.DOTALL)
    credit = CreditSettings.model_validate(yaml.safe_load(text)["experiments"]["search"]["credit"])
    assert credit.weights == {"cart": 3, "click": 1}


def test_propensities_are_measured_from_a_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All ranks are seen equally often; half of the impressions have clicks."""
    records: list[dict[str, Any]] = []
    for number in range(12):
        docs = ["v", "w", "x", "y"][number % 3 :] + ["v", "w", "x", "y"][: number % 3]
        name = f"i-{number}"
        records.append({"type": "impression", "id": name, "query": "q", "docs": docs})
        records += [
            {"type": "click", "impression": name, "rank": rank} for rank in range(4) if number % 2
        ]
    (tmp_path / "clicks.jsonl").write_text("".join(f"{json.dumps(it)}\n" for it in records))
    monkeypatch.chdir(tmp_path)
    (code,) = [code for code, said in CODE if not said]
    exec(code, {})
    assert capsys.readouterr().out == "[1.0, 1.0, 1.0, 1.0]\n"

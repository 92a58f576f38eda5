"""The table of checks in docs/analyze.md names every check, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]

NAMED = (
    r'\b(?:Check|_check|_judged)\(\s*"([a-z ]+)"',
    r'^    name(?:, \w+)? = "([a-z ]+)"',
    r"INSERT INTO readings VALUES \('([a-z]+)'",
)
"""How modules write the name of a check."""


def test_the_page_names_every_check() -> None:
    code = [path.read_text() for path in (ROOT / "streamduel" / "analysis").glob("*.py")]
    made = {name for text in code for how in NAMED for name in re.findall(how, text, re.MULTILINE)}
    page = (ROOT / "docs" / "analyze.md").read_text(encoding="utf-8").partition("\n## Checks\n")[2]
    described = re.findall(r"^\| ([a-z ]+) \|", page.partition("\n## ")[0], re.MULTILINE)[1:]
    assert sorted(described) == sorted(made)

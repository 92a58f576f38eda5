"""The tables of the documentation that have a row or a place for every policy."""

from __future__ import annotations

import re
from pathlib import Path

from streamduel import policies

DOCS = Path(__file__).parents[3] / "docs"


def section(page: str, title: str) -> str:
    """A section without those after it."""
    text = (DOCS / page).read_text(encoding="utf-8").partition(f"# {title}\n")[2]
    return text.partition("\n#")[0]


def test_every_policy_belongs_to_one_family() -> None:
    rows = re.findall(
        r"^\|[^|]*\|([^|]*)\|", section("policies.md", "Policy families"), re.MULTILINE
    )
    assert sorted(re.findall("`(.*?)`", "".join(rows))) == sorted(policies.names())


def test_every_policy_is_measured() -> None:
    rows = re.findall("^\\| `(.*?)` \\|", section("measurements.md", "Every policy"), re.MULTILINE)
    assert sorted(rows) == sorted(policies.names())

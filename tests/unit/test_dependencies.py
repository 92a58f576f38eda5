"""docs/dependencies.md has a row for each dependency of pyproject.toml, and for no other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]

OF_KAFKA_PYTHON = {"crc32c", "lz4", "python-snappy", "zstandard"}
"""Packages of its extras."""


def test_each_dependency_has_a_row() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[^\w-]", each)[0] for group in groups for each in group} - {"streamduel"}
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([A-Za-z].*?) \|", page, re.MULTILINE)
    packages = {name.lower() for row in rows for name in re.findall(r"([\w-]+) \d", row)}
    assert packages == names | OF_KAFKA_PYTHON

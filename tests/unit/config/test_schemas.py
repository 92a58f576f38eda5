"""The JSON Schema of the configuration accepts what the loader accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from streamduel.config.schemas import configuration_schema
from tests.unit.config.configurations import GONE, GOOD, KAFKA, changed

ROOT = Path(__file__).parents[3]

SCHEMA = jsonschema_rs.validator_for(configuration_schema())

EMPTY = [
    "commit", "dedupe", "limits", "monitoring", "spark", "time",
    *(f"experiments.search.{key}"
      for key in ("credit", "guardrails", "guardrails.fallback", "links", "policy", "prior",
                  "segments", "stop")),
]  # fmt: skip
"""Sections and lists that may be without content."""


def problems(document: dict[str, Any]) -> list[str]:
    return [error.message for error in SCHEMA.iter_errors(document)]


def written() -> Iterator[Any]:
    """The configurations of the documentation and of configs/; a part of one is completed."""
    for path in sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("configs/**/*.yaml")]):
        text = path.read_text(encoding="utf-8")
        blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
        for index, block in enumerate([text] if path.suffix == ".yaml" else blocks):
            if re.search("^experiments:", block, re.MULTILINE):
                document = {**GOOD, **yaml.safe_load(block)}
                yield pytest.param(document, id=f"{path.relative_to(ROOT)}-{index}")


@pytest.mark.parametrize("document", [*written()])
def test_every_written_configuration_is_valid(document: dict[str, Any]) -> None:
    assert problems(document) == []


@pytest.mark.parametrize("base", [GOOD, KAFKA], ids=["files", "kafka"])
@pytest.mark.parametrize(
    "value",
    [
        "ubi", "solr", None, {"name": "solr", "rerank_docs": 10},
        {"name": "ubi", "arms": None, "fields": None, "shown": None, "experiment": None},
        {"name": "ubi", "fields": {"doc": "id", "docs": ["a", "b.c"], "team": None}},
    ],
)  # fmt: skip
def test_a_format_is_valid(value: Any, base: dict[str, Any]) -> None:
    assert problems(changed({"source.format": value}, base)) == []


@pytest.mark.parametrize("key", EMPTY)
def test_a_section_without_content_is_valid(key: str) -> None:
    assert problems(changed({key: None})) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("source.format", "ubj"), ("source.format", {"sides": "query"}), ("source.format", {}),
        ("source.format", {"name": "solr", "sides": "query"}), ("sink.format", "ubi"),
        ("source.format", {"name": "ubi", "fields": {"doc": 5}}), ("source.fromat", "ubi"),
        ("limits", 5), ("experiments.search.links", "x"), ("experiments.search", None),
        ("experiments", None), ("experiments.search.seed", None), ("source.path", GONE),
    ],
)  # fmt: skip
def test_a_mistake_is_invalid(key: str, value: Any) -> None:
    assert problems(changed({key: value})) != []

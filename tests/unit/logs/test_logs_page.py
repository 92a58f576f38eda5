"""docs/logs.md: its examples do what it says."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from streamduel.logs import FORMATS, create
from tests.unit.logs.samples import TS
from tests.unit.stream.folding import DUEL, Partition, config, text

PAGE = (Path(__file__).parents[3] / "docs" / "logs.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def formats() -> list[dict[str, Any]]:
    documents = [yaml.safe_load(block) for block in blocks("yaml")]
    return [document.get("source", document)["format"] for document in documents]


@pytest.mark.parametrize("section", formats(), ids="-".join)
def test_each_configuration_is_valid(section: dict[str, Any]) -> None:
    settings = FORMATS[section["name"]].model_validate(section)
    assert settings.model_fields_set == section.keys()


@pytest.mark.parametrize(("section", "lines"), [*zip(formats()[::3], blocks("json"), strict=True)])
def test_the_examples_are_a_duel_that_ltr_v1_wins(section: dict[str, Any], lines: str) -> None:
    translate = create(FORMATS[section["name"]].model_validate(section))
    partition = Partition(config(search={"join_window_ms": 60_000}))
    events = chain.from_iterable(translate(line.encode()) for line in lines.strip().split("\n\n"))
    for event in events:
        partition.fold_at(None, msgspec.json.encode(event))
    partition.fold_at(TS + 100_000, text(DUEL, id="later", a="ltr-v2", b="ltr-v2", winner=None))
    assert partition.tallies()["accepted"] == 3
    assert partition.wins() == [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize("name", FORMATS)
def test_the_page_names_every_key_that_is_not_for_all(name: str) -> None:
    keys = FORMATS[name].model_fields.keys() - {"name"}
    assert [key for key in sorted(keys) if key not in PAGE] == []

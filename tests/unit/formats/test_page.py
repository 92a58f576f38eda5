"""docs/formats.md: its examples are valid, and its commands print what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from streamduel.analysis.analyze import Request, analyze
from streamduel.config import Config, load
from streamduel.formats import FORMATS
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record, encode

PAGE = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")

SECONDS: Final = 60.0
"""Limit of a command, which takes one second on an idle machine."""

REST: Final = "…"
"""The line that replaces the rest of an output on the page."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def formats() -> list[dict[str, Any]]:
    documents = [yaml.safe_load(block) for block in blocks("yaml")]
    return [document.get("source", document)["format"] for document in documents]


@pytest.mark.parametrize("section", formats(), ids="-".join)
def test_each_configuration_is_valid(section: dict[str, Any]) -> None:
    settings = FORMATS[section["name"]].model_validate(section)
    assert settings.model_fields_set == section.keys()


def saved(name: str, folder: Path) -> Path:
    """A folder with the files of an example."""
    [configuration] = [it for it in blocks("yaml") if f"path: {name}.ndjson" in it]
    [log] = re.findall(rf"`{name}.ndjson`:\n\n```json\n(.*?)```", PAGE, re.DOTALL)
    for suffix, text in (("yaml", configuration), ("ndjson", log)):
        assert f"`{name}.{suffix}`" in PAGE
        (folder / f"{name}.{suffix}").write_text(text, encoding="utf-8")
    return folder / f"{name}.yaml"


@pytest.mark.parametrize("name", FORMATS)
def test_each_command_answers_as_the_page_shows(name: str, tmp_path: Path) -> None:
    saved(name, tmp_path)
    [console] = [it for it in blocks("console") if f" {name}.yaml" in it]
    command, *answer, rest = console.removeprefix("$ ").splitlines()
    assert rest == REST
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=own, capture_output=True, text=True,
        timeout=SECONDS, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.rstrip() for line in done.stdout.splitlines()][: len(answer)] == answer


@pytest.mark.parametrize("name", FORMATS)
def test_analyze_recognises_the_example(name: str, tmp_path: Path) -> None:
    log = saved(name, tmp_path).with_suffix(".ndjson")
    [found] = analyze(Request([str(log)])).experiments.values()
    assert found.duels == 2


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_open_at_the_end_is_a_duel_when_the_file_has_grown(
    name: str, tmp_path: Path
) -> None:
    loaded = load(saved(name, tmp_path)).config
    task = PartitionTask(loaded, ClickLog("log", 1, lambda experiment: 0), 0)
    task.begin(0)
    lines = (tmp_path / f"{name}.ndjson").read_bytes().splitlines()
    task.fold([Record(offset, line) for offset, line in enumerate(lines)])
    search = task.experiments["search"]
    assert (search.policy.duels, search.open) == (1, {"impressions": 1, "clicks": 0})
    later = {"type": "control", "id": "c-1", "experiment": "search", "action": "pause"}
    task.fold([Record(3, encode({**later, "ts": 1_790_001_300_000}))])
    assert (search.policy.duels, search.open) == (2, {"impressions": 0, "clicks": 0})


def test_with_sides_in_events_a_click_is_counted_twice() -> None:
    assert "of three clicks on one query, six records, four are accepted and two are" in " ".join(
        PAGE.split()
    )
    section = {"name": "ubi", "experiment": "search", "sides": "events", "pair": ["bm25", "ltr"]}
    loaded = Config.model_validate(
        {"source": {"format": section}, "sink": {}, "snapshots": {},
         "experiments": {"search": {"arms": ["bm25", "ltr"]}}}
    )  # fmt: skip
    task = PartitionTask(loaded, ClickLog("log", 1, lambda experiment: 0), 0)
    task.begin(0)
    task.fold([
        Record(offset, encode({"action_name": "click", "query_id": "q-1", "client_id": str(offset),
                               "event_attributes": {"search_config": "ltr"}}))
        for offset in range(3)
    ])  # fmt: skip
    assert [task.experiments["search"].tallies[it] for it in ("accepted", "duplicate")] == [4, 2]


@pytest.mark.parametrize("name", FORMATS)
def test_the_page_names_every_key_of_a_single_format(name: str) -> None:
    keys = FORMATS[name].model_fields.keys() - {"name"}
    assert [key for key in sorted(keys) if key not in PAGE] == []

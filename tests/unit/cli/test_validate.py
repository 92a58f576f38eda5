"""`validate`: as JSON, quiet, and against the running experiments."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from streamduel.config.experiment import JOIN_WINDOW_MS
from tests.unit.cli.commands import Streamduel, configure, run

RAILS = {"control_arm": "bm25", "min_share": 0.1}
CHANGES = {"experiments.search.decide_every": 9, "experiments.search.guardrails": RAILS}


def test_validate_tells_the_difference_beforehand(streamduel: Streamduel, folder: Path) -> None:
    same = streamduel("validate", folder / "search.yaml", "--against-state")
    assert same.status == 0
    assert same.out.endswith("The running experiments are as configured.\n")
    config = configure(folder, CHANGES)
    differs = streamduel("validate", config, "--against-state")
    assert differs.status == 0
    assert f"`streamduel control apply {config}` applies it:\nsearch:\n" in differs.out
    found = json.loads(streamduel("validate", config, "--against-state", "--json").out)
    assert found["valid"] is True
    assert found["differences"]["search"][0] == "decide_every: 1 → 9"


SAME_WINDOW = {"experiments.search.join_window_ms": JOIN_WINDOW_MS}  # null is ten minutes
OTHER_WINDOW = {"experiments.search.join_window_ms": 5000}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({**SAME_WINDOW, **CHANGES}, "applies it"),
        ({**OTHER_WINDOW, **CHANGES}, "applies a part of it"),
        (OTHER_WINDOW, "applies nothing of it"),
    ],
)
def test_validate_tells_what_can_be_applied(
    streamduel: Streamduel, folder: Path, changes: dict[str, Any], found: str
) -> None:
    config = configure(folder, changes)
    differs = streamduel("validate", config, "--against-state")
    assert f"`streamduel control apply {config}` {found}:\nsearch:\n" in differs.out
    answer = json.loads(streamduel("validate", config, "--against-state", "--json").out)
    assert (answer["refused"], list(answer["differences"])) == ({}, ["search"])


def test_validate_tells_what_is_refused(streamduel: Streamduel, folder: Path) -> None:
    retire = ("control", folder / "search.yaml", "search", "retire-arm", "bm25")
    assert streamduel(*retire).status == 0
    assert run(folder / "search.yaml", "--until-end", "--quiet").status == 0
    config = configure(folder, CHANGES)
    answer = json.loads(streamduel("validate", config, "--against-state", "--json").out)
    (sentence,) = answer["refused"].values()
    assert sentence.startswith("experiments.search.guardrails.control_arm must be one of")


def test_a_damaged_snapshot_makes_no_configuration_invalid(
    streamduel: Streamduel, folder: Path
) -> None:
    (folder / "state" / "snapshot.json").write_bytes(b"{")
    result = streamduel("validate", folder / "search.yaml", "--against-state", "--json")
    found = json.loads(result.out)
    assert (result.status, found["valid"], found["errors"]) == (2, True, [])
    assert (found["experiments"], found["differences"]) == (1, None)
    assert "cannot be read" in found["snapshots"]


def test_validate_as_json_and_quiet(streamduel: Streamduel, folder: Path) -> None:
    config = configure(folder)
    good = streamduel("validate", config, "--json")
    assert (good.status, json.loads(good.out)["valid"], good.err) == (0, True, "")
    assert streamduel("validate", config, "--quiet") == (0, "", "")
    wrong = streamduel("validate", configure(folder, {"experiments.search.slate": 0}), "--json")
    found = json.loads(wrong.out)
    assert (wrong.status, found["valid"], len(found["errors"])) == (2, False, 1)
    assert wrong.err == f"streamduel: {found['errors'][0]}\n"


@pytest.mark.parametrize("command", ["validate", "inspect", "replay", "doctor"])
def test_an_error_as_json_escapes_what_is_not_utf_8(streamduel: Streamduel, command: str) -> None:
    missing = streamduel(command, os.fsdecode(b"caf\xe9.yaml"), "--json")
    answer = json.loads(missing.out)
    (sentence,) = answer.get("errors") or [answer["checks"][0]["sentence"]]
    assert sentence == (
        r"the configuration caf\udce9.yaml cannot be read: No such file or directory."
    )
    assert (missing.status, missing.err) == (2, f"streamduel: {sentence}\n")

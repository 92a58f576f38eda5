"""What `run` leaves behind, and what `inspect` says of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamduel.testing import duel
from tests.logs import ARMS
from tests.unit.cli.bed import (
    COMMAND,
    LOG,
    SECONDS,
    Streamduel,
    configure,
    inspected,
    lines,
    run,
)


def test_run_until_end_folds_the_log_and_shows_who_leads(finished: Path, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    said = run(folder / "search.yaml", "--until-end")
    assert said.status == 0
    assert "champion" in said.out
    assert f"outputs: {folder / 'out'}" in said.out
    assert f"snapshots: {folder / 'state'}" in said.out
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before, "a second run had nothing to do"


def test_run_goes_on_where_it_stopped(finished: Path, tmp_path: Path) -> None:
    config = configure(tmp_path)
    for end in (700, 701, 2000):
        log = b"".join(value + b"\n" for value in LOG[:end])
        (tmp_path / "clicks.jsonl").write_bytes(log)
        assert run(config, "--until-end").status == 0
    assert lines(tmp_path) == lines(finished)
    assert lines(tmp_path, "dead_letters.jsonl") == lines(finished, "dead_letters.jsonl")


def test_run_reads_standard_input(finished: Path, tmp_path: Path) -> None:
    config = configure(tmp_path, {"source.path": "-"})
    with (finished / "clicks.jsonl").open("rb") as log:
        done = subprocess.run(
            [*COMMAND, "run", str(config), "--until-end"],
            stdin=log, capture_output=True, check=False, timeout=SECONDS,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert lines(tmp_path) == lines(finished)


def test_inspect_for_programs_has_what_they_rely_on(streamduel: Streamduel, folder: Path) -> None:
    report = inspected(streamduel, folder)
    search = report["experiments"]["search"]
    assert search["arms"] == list(ARMS)
    assert (search["status"], search["policy"]) == ("running", "rucb")
    assert search["offset"] == {"topic": "clicks.jsonl", "partition": 0, "next": len(LOG)}
    assert search["state_hash"].startswith("sha256:")
    last = json.loads(lines(folder)[-1])
    assert (search["epoch"], search["champion"]) == (last["epoch"], last["champion"])
    tallies = search["tallies"]
    assert tallies.keys() == {"accepted", "duplicate", "dead_letter", "late", "unjoined"}
    unnamed = sum(report["dead_letters"].values()) - tallies["dead_letter"]
    assert sum(tallies.values()) + search["open"]["clicks"] + unnamed == len(LOG)
    assert search["open"]["impressions"] > 0
    assert sum(map(sum, search["wins"])) <= search["duels"]
    assert sum(report["dead_letters"].values()) == len(lines(folder, "dead_letters.jsonl"))


def test_inspect_for_people_shows_the_same(streamduel: Streamduel, folder: Path) -> None:
    search = inspected(streamduel, folder)["experiments"]["search"]
    said = streamduel("inspect", folder / "search.yaml")
    assert said.status == 0
    assert f"search: champion {search['champion']}" in said.out
    assert f"{search['duels']:,} duels" in said.out
    impressions, clicks = search["open"]["impressions"], search["open"]["clicks"]
    assert f"open: {impressions} impressions, {clicks} click" in said.out
    assert all(arm in said.out for arm in ARMS)
    assert "dead letters" in said.out


def test_inspect_shows_who_never_met_and_that_nothing_was_refused(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    (tmp_path / "clicks.jsonl").write_bytes(duel("search", 1, "bm25", "ltr-v1", "a") + b"\n")
    config = configure(tmp_path)
    assert run(config, "--until-end").status == 0
    said = streamduel("inspect", config)
    assert said.out.count("never met") == len(ARMS) - 2
    assert "1 accepted" in said.out
    assert said.out.endswith("No dead letters.\n")


def test_inspect_before_the_first_run_says_so(streamduel: Streamduel, tmp_path: Path) -> None:
    config = configure(tmp_path)
    said = streamduel("inspect", config)
    assert (said.status, said.out) == (
        0, "There is no snapshot yet: has `streamduel run` been started?\n",
    )  # fmt: skip
    assert inspected(streamduel, tmp_path) == {
        "experiments": {}, "dead_letters": {}, "ignored": {},
    }  # fmt: skip


def test_a_log_that_is_not_there_is_told_so(folder: Path) -> None:
    (folder / "clicks.jsonl").unlink()
    assert run(folder / "search.yaml", "--until-end") == (
        1, "",
        f"streamduel: source.path {folder / 'clicks.jsonl'} cannot be read: "
        f"No such file or directory.\n",
    )  # fmt: skip


@pytest.mark.parametrize("command", ["run", "replay"])
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"experiments.search.arms": [*ARMS[1:], ARMS[0]]},
            'arms must stay ["bm25","ltr-v1","ltr-v2","ltr-v3","dense","hybrid"] while the '
            'experiment runs (found ["ltr-v1","ltr-v2","ltr-v3","dense","hybrid","bm25"])',
        ),
        (
            {"experiments.search.policy": {"name": "rucb", "alpha": 0.6}},
            'policy must stay {"name":"rucb"} while the experiment runs (found '
            '{"name":"rucb","alpha":0.6})',
        ),
        (
            {"experiments.search.policy": {"name": "rucb", "champion_set": True}},
            'policy must stay {"name":"rucb"} while the experiment runs (found '
            '{"name":"rucb","champion_set":true})',
        ),
        (
            {"experiments.search.decide_every": 9},
            "decide_every must stay 1 while the experiment runs (found 9)",
        ),
    ],
    ids=["arms", "alpha", "policy", "decide_every"],
)
def test_a_running_experiment_may_not_change(
    streamduel: Streamduel, folder: Path, command: str, changes: dict[str, Any], sentence: str
) -> None:
    config = configure(folder, changes)
    said = run(config) if command == "run" else streamduel(command, config)
    assert said == (
        2, "",
        f"streamduel: experiments.search.{sentence}; restore the value, or use a new "
        f"experiment name.\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: b"", "cannot be read: "),
        (lambda text: text[: len(text) // 2], "cannot be read: "),
        (lambda text: text.replace(b'"format":2', b'"format":3'), "has format 3; "),
    ],
    ids=["empty", "cut-off", "newer"],
)
def test_a_damaged_snapshot_is_refused(
    streamduel: Streamduel, folder: Path, damage: Callable[[bytes], bytes], words: str
) -> None:
    path = folder / "state" / "snapshot.json"
    path.write_bytes(damage(path.read_bytes()))
    for said in (run(folder / "search.yaml"), streamduel("inspect", folder / "search.yaml")):
        assert said.status == 2
        assert said.err.startswith("streamduel: the snapshot")
        assert words in said.err

"""The results of `run`, and the report of `inspect`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from streamduel.preference.evidence import confidence, intervals
from streamduel.testing import duel
from streamduel.testing import encode as encoded
from streamduel_files.outlet import FORMAT, READABLE
from tests.command_line import run_command
from tests.logs import ARMS
from tests.unit.cli.commands import (
    COMMAND,
    HALF,
    LOG,
    SECONDS,
    Streamduel,
    configure,
    inspected,
    lines,
    run,
)

T0 = 1_790_000_000_000


def encode(record: dict[str, Any]) -> bytes:
    return encoded(record) + b"\n"


def test_run_until_end_folds_the_log_and_shows_the_champion(finished: Path, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    result = run(folder / "search.yaml", "--until-end")
    assert result.status == 0
    assert "champion" in result.out
    assert f"outputs: {folder / 'out'}" in result.out
    assert f"snapshots: {folder / 'state'}" in result.out
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before, "a second run had nothing to do"


def test_run_continues_where_it_stopped(finished: Path, tmp_path: Path) -> None:
    config = configure(tmp_path)
    for end in (700, 701, 2000):
        log = b"".join(value + b"\n" for value in LOG[:end])
        (tmp_path / "clicks.jsonl").write_bytes(log)
        assert run(config, "--until-end").status == 0
    assert lines(tmp_path) == lines(finished)
    assert lines(tmp_path, "dead_letters.jsonl") == lines(finished, "dead_letters.jsonl")


def test_run_reads_standard_input(finished: Path, tmp_path: Path) -> None:
    config = configure(tmp_path, {"source.path": "-"})
    log = finished / "clicks.jsonl"
    done = run_command("run", config, "--until-end", seconds=SECONDS, stdin=log)
    assert done.returncode == 0, done.stderr
    assert lines(tmp_path) == lines(finished)


def test_standard_input_continues_only_what_it_repeats(
    finished: Path, tmp_path: Path, streamduel: Streamduel
) -> None:
    config = configure(tmp_path, {"source.path": "-"})
    log, other, whole = tmp_path / "half", tmp_path / "other", finished / "clicks.jsonl"
    log.write_bytes(b"".join(value + b"\n" for value in LOG[:HALF]))
    other.write_bytes(b"".join(value + b"\n" for value in LOG[1:]))

    def fold(stdin: Path) -> tuple[int, str]:
        done = run_command("run", config, "--until-end", seconds=SECONDS, stdin=stdin)
        return done.returncode, done.stderr

    assert fold(log)[0] == 0
    before = lines(tmp_path)
    status, refused = fold(other)
    assert status == 2
    assert "made from 'stdin' with the id first line " in refused
    assert "'streamduel repair new-log CONFIG'" in refused
    assert lines(tmp_path) == before
    assert fold(whole)[0] == 0
    assert inspected(streamduel, tmp_path)["experiments"]["search"]["offset"]["next"] == len(LOG)

    assert streamduel("repair", "new-log", config).status == 0
    assert fold(other)[0] == 0
    assert (
        inspected(streamduel, tmp_path)["experiments"]["search"]["offset"]["next"] == len(LOG) - 1
    )


PLUG_IN = """
from typing import Literal
from pydantic import BaseModel
from streamduel.connector import Connector
from streamduel_files import connector as files

class Settings(BaseModel):
    connector: Literal["strings"]
    path: str

def folder(settings):
    return files.sink_settings(connector="files", path=settings.path + ".d")

def log(settings):
    return files.source_settings(connector="files", path="clicks.jsonl")

connector = Connector(
    source_settings=Settings,
    sink_settings=Settings,
    snapshot_settings=Settings,
    open_source=lambda source, options: files.open_source(log(source), options),
    open_log=lambda source, options: files.open_log(log(source), options),
    open_outlet=lambda sink, it, *more: files.open_outlet(folder(sink), folder(it), *more),
    open_archive=lambda sink, snapshots: files.open_archive(folder(sink), folder(snapshots)),
    append=None,
)
"""
"""A connector of another package, to which the key `path` is something else than a folder."""


def test_a_path_of_another_connector_has_no_meaning(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "it_strings.py").write_text(PLUG_IN)
    (tmp_path / "it_strings-1.dist-info").mkdir()
    (tmp_path / "it_strings-1.dist-info/METADATA").write_text("Name: it_strings\nVersion: 1\n")
    (tmp_path / "it_strings-1.dist-info/entry_points.txt").write_text(
        "[streamduel.connectors]\nstrings = it_strings:connector\n"
    )
    shutil.copy(finished / "clicks.jsonl", tmp_path)
    sections = {"source": "-", "sink": "out", "snapshots": "state"}
    changes = {name: {"connector": "strings", "path": path} for name, path in sections.items()}
    configure(tmp_path, changes)
    results = [
        subprocess.run(
            [*COMMAND, *command.split()],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, timeout=SECONDS,
            capture_output=True, text=True, check=False,
        )
        for command in ("run search.yaml --until-end", "doctor search.yaml --json")
    ]  # fmt: skip
    assert [it.returncode for it in results] == [0, 0], [it.stderr for it in results]
    assert "champion" in results[0].stdout
    assert "outputs:" not in results[0].stdout
    assert "among the newest 200 records" in results[1].stdout


def test_the_first_example_of_the_records_page(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/records.md").read_text(encoding="utf-8")
    example = page.split("```console\n")[1].split("```")[0]
    shown = [it.partition("\n")[2].encode() for it in f"\n{example}".split("\n$ ")]
    _, log, experiments, _, assignment = shown
    config = configure(tmp_path, yaml.safe_load(experiments))
    (tmp_path / "clicks.jsonl").write_bytes(log + b"\n")
    assert run(config, "--until-end", "--quiet") == (0, "", "")
    assert lines(tmp_path)[-1].startswith(assignment.rstrip().removesuffix(" …}".encode()))


def test_inspect_json_follows_the_contract(streamduel: Streamduel, folder: Path) -> None:
    report = inspected(streamduel, folder)
    search = report["experiments"]["search"]
    assert search["arms"] == list(ARMS)
    assert (search["status"], search["policy"]) == ("running", "top_two")
    assert search["offset"] == {"topic": "clicks.jsonl", "partition": 0, "next": len(LOG)}
    assert search["state_hash"].startswith("sha256:")
    last = json.loads(lines(folder)[-1])
    assert (search["epoch"], search["champion"]) == (last["epoch"], last["champion"])
    tallies = search["tallies"]
    assert tallies.keys() == {"accepted", "duplicate", "dead_letter", "late", "unjoined", "capped"}
    unnamed = sum(report["dead_letters"].values()) - tallies["dead_letter"]
    assert sum(tallies.values()) + search["open"]["clicks"] + unnamed == len(LOG)
    assert search["open"]["impressions"] > 0
    assert sum(map(sum, search["wins"])) <= search["duels"]
    assert sum(report["dead_letters"].values()) == len(lines(folder, "dead_letters.jsonl"))


def test_the_inspect_table_agrees_with_json(streamduel: Streamduel, folder: Path) -> None:
    search = inspected(streamduel, folder)["experiments"]["search"]
    result = streamduel("inspect", folder / "search.yaml")
    assert result.status == 0
    assert f"search: champion {search['champion']}" in result.out
    assert f"{search['duels']:,} duels" in result.out
    impressions, clicks = search["open"]["impressions"], search["open"]["clicks"]
    assert f"open: {impressions} impressions, {clicks} click" in result.out
    assert all(arm in result.out for arm in ARMS)
    assert "dead letters" in result.out


def test_inspect_shows_pairs_that_never_met_and_no_dead_letters(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    (tmp_path / "clicks.jsonl").write_bytes(duel("search", 1, "bm25", "ltr-v1", "a") + b"\n")
    config = configure(tmp_path)
    assert run(config, "--until-end").status == 0
    result = streamduel("inspect", config)
    assert result.out.count("never met") == len(ARMS) - 2
    assert "1 accepted" in result.out
    assert "search: champion bm25, confidence 0.0" in result.out
    assert result.out.endswith("No dead letters.\n")


def test_inspect_shows_names_without_their_control_characters(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    changes = {"experiments": {"x\x1b[2J": {"arms": ["a\nb", "\x1b[31mred"]}}}
    config = configure(tmp_path, changes)
    (tmp_path / "clicks.jsonl").write_bytes(duel("x\x1b[2J", 1, "a\nb", "\x1b[31mred", "a") + b"\n")
    assert run(config, "--until-end", "--quiet").status == 0
    shown = streamduel("inspect", config).out
    assert "\x1b" not in shown
    assert all(name in shown for name in ("x\\x1b[2J: champion", "a\\nb ", "\\x1b[31mred "))


def test_inspect_says_that_a_prior_steers(streamduel: Streamduel, tmp_path: Path) -> None:
    (tmp_path / "clicks.jsonl").write_bytes(duel("search", 1, "bm25", "ltr-v1", "a") + b"\n")
    prior = {"scores": dict(zip(ARMS, range(len(ARMS)), strict=True))}
    changes = {"experiments.search.policy": {"name": "top_two"}, "experiments.search.prior": prior}
    config = configure(tmp_path, changes)
    assert run(config, "--until-end").status == 0
    assert "top_two, steered by a prior" in " ".join(streamduel("inspect", config).out.split())
    search = inspected(streamduel, tmp_path)["experiments"]["search"]
    assert (search["prior"], search["duels"]) == (True, 1)
    lost = (duel("search", number, "bm25", "ltr-v1", "a") for number in range(2, 42))
    with (tmp_path / "clicks.jsonl").open("ab") as log:
        log.writelines(record + b"\n" for record in lost)
    assert run(config, "--until-end").status == 0
    assert "steered by a prior" not in " ".join(streamduel("inspect", config).out.split())
    assert not inspected(streamduel, tmp_path)["experiments"]["search"]["prior"]


def test_inspect_shows_no_champion_without_evidence(streamduel: Streamduel, tmp_path: Path) -> None:
    (tmp_path / "clicks.jsonl").write_bytes(b"")
    config = configure(tmp_path)
    assert "search: undecided, no evidence" in run(config, "--until-end").out
    search = inspected(streamduel, tmp_path)["experiments"]["search"]
    assert search["champion"] in ARMS
    assert (search["confidence"], search["progress"], search["decided"]) == (0, 0, False)
    assert "first arm wins" in streamduel("inspect", config).out


def test_inspect_has_the_numbers_of_the_verdict(streamduel: Streamduel, folder: Path) -> None:
    search = inspected(streamduel, folder)["experiments"]["search"]
    champion = search["arms"].index(search["champion"])
    wins = np.array(search["wins"])
    assert search["confidence"] == confidence(wins, champion, "condorcet")
    assert len(search["pairs"]) == len(ARMS) * (len(ARMS) - 1) / 2
    lower, upper = intervals(wins, 0.05)
    for pair in search["pairs"]:
        i, j = ARMS.index(pair["a"]), ARMS.index(pair["b"])
        assert pair["duels"] == pair["wins_a"] + pair["wins_b"] + pair["ties"]
        assert pair["wins_a"] + pair["ties"] / 2 == wins[i, j]
        assert pair["interval"] == pytest.approx([lower[i, j], upper[i, j]])
        assert pair["win_rate"] == wins[i, j] / pair["duels"]
    assert any(pair["ties"] for pair in search["pairs"])


def test_inspect_marks_experiments_that_are_not_configured(
    streamduel: Streamduel, folder: Path
) -> None:
    config = configure(folder, {"experiments": {"other": {"arms": ["x", "y"]}}})
    result = streamduel("inspect", config)
    assert result.status == 0
    assert "(no longer in the configuration)" in result.out.splitlines()[0]
    assert not inspected(streamduel, folder)["experiments"]["search"]["configured"]


def test_dead_letters_of_the_experiment_and_of_all_add_up(
    streamduel: Streamduel, folder: Path
) -> None:
    report = inspected(streamduel, folder)
    named = report["experiments"]["search"]["tallies"]["dead_letter"]
    total = sum(report["dead_letters"].values())
    assert 0 < named < total
    result = streamduel("inspect", folder / "search.yaml")
    assert f"{named} dead letters naming it" in result.out
    rest = f"of which {total - named} are counted for no experiment"
    assert f"dead letters: {total}, {rest}" in result.out


def test_inspect_before_the_first_run(streamduel: Streamduel, tmp_path: Path) -> None:
    config = configure(tmp_path)
    result = streamduel("inspect", config)
    assert (result.status, result.out) == (1, "")
    assert result.err == (
        "streamduel: there is no snapshot of an experiment; start `streamduel run` with this "
        "configuration, or check its section snapshots.\n"
    )
    result = streamduel("inspect", config, "--json")
    assert result.status == 1
    assert json.loads(result.out) == {"experiments": {}, "dead_letters": {}, "ignored": {}}


@pytest.mark.parametrize(
    ("log", "reasons"),
    [
        (b"left,right,winner\n" + b"bm25,ltr,left\n" * 50, '{"invalid_json": 51}'),
        (b"PAR1\x15\x04\xff\xfe\n\x00\x80", '{"invalid_json": 2}'),
        (b'{"a": "bm25"}\n', '{"invalid_record": 1}'),
    ],
    ids=["csv", "parquet", "json"],
)
def test_run_says_that_no_record_can_be_used(tmp_path: Path, log: bytes, reasons: str) -> None:
    config = configure(tmp_path)
    (tmp_path / "clicks.jsonl").write_bytes(log)
    result = run(config, "--until-end")
    assert result.status == 0
    assert "search: undecided" in result.out
    assert f"no usable record dead_letters={reasons}" in " ".join(result.err.split())
    assert "`streamduel analyze` reads CSV" in result.err

    with (tmp_path / "clicks.jsonl").open("ab") as file:
        file.write(b"\n" + duel("search", 1, ARMS[0], ARMS[1], "a") + b"\n")
    assert "no usable record" not in run(config, "--until-end").err


def test_a_missing_click_log_is_an_error(folder: Path) -> None:
    (folder / "clicks.jsonl").unlink()
    assert run(folder / "search.yaml", "--until-end") == (
        1, "",
        f"streamduel: source.path {folder / 'clicks.jsonl'} cannot be read: "
        f"No such file or directory.\n",
    )  # fmt: skip


def test_a_changed_experiment_runs_on_as_recorded(streamduel: Streamduel, folder: Path) -> None:
    before = inspected(streamduel, folder)
    changes = {"experiments.search.decide_every": 9, "experiments.search.slate": 4}
    config = configure(folder, changes)
    result = run(config, "--until-end", "--log-format", "json")
    assert result.status == 0
    (line,) = (json.loads(it) for it in result.err.splitlines() if "settings differ" in it)
    assert (line["first"], line["keys"]) == ("search", ["decide_every", "slate"])
    assert "streamduel control apply" in line["advice"]
    assert run(config, "--until-end", "--quiet") == (0, "", "")
    assert inspected(streamduel, folder) == before
    assert streamduel("replay", config).status == 0


def formatted(text: bytes, number: int) -> bytes:
    """A snapshot file with another format."""
    changed = text.replace(b'"format":%d' % FORMAT, b'"format":%d' % number)
    assert changed != text
    return changed


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: b"", "cannot be read: "),
        (lambda text: text[: len(text) // 2], "cannot be read: "),
        (lambda text: formatted(text, READABLE[0] - 1), f"has format {READABLE[0] - 1}; "),
        (lambda text: formatted(text, FORMAT + 1), f": use one that reads format {FORMAT + 1}."),
    ],
    ids=["empty", "cut-off", "older", "newer"],
)
def test_a_damaged_snapshot_is_refused(
    streamduel: Streamduel, folder: Path, damage: Callable[[bytes], bytes], words: str
) -> None:
    path = folder / "state" / "snapshot.json"
    path.write_bytes(damage(path.read_bytes()))
    for result in (run(folder / "search.yaml"), streamduel("inspect", folder / "search.yaml")):
        assert result.status == 2
        assert result.err.startswith("streamduel: the snapshot")
        assert words in result.err


@pytest.mark.parametrize("command", [["run", "--until-end"], ["inspect"], ["replay"]])
def test_an_error_is_json_too(streamduel: Streamduel, tmp_path: Path, command: list[str]) -> None:
    config = configure(tmp_path, {"experiments.search.arms": ["x"], "experiments.search.slate": 0})
    found = streamduel(*command, "--json", config)
    assert found.status == 2
    assert found.err == "streamduel: " + "".join(
        f"{it}\n" for it in json.loads(found.out)["errors"]
    )
    assert len(found.err.splitlines()) == 2

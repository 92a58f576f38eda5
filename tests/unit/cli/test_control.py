"""`control`: what it appends, what a run makes of that, and what is refused before."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

import streamduel_files.append
from streamduel import connector
from streamduel.errors import UncertainError
from streamduel.testing import duel
from tests.logs import ARMS
from tests.unit.cli.bed import LOG, Said, Streamduel, configure, inspected, lines, run


def log_of(folder: Path) -> list[dict[str, Any]]:
    """The records that were added to the log."""
    text = (folder / "clicks.jsonl").read_bytes()
    assert text.endswith(b"\n")
    return [json.loads(line) for line in text.splitlines()[len(LOG) :]]


def last(folder: Path) -> dict[str, Any]:
    assignment: dict[str, Any] = json.loads(lines(folder)[-1])
    return assignment


def fold(folder: Path) -> None:
    said = run(folder / "search.yaml", "--until-end")
    assert said.status == 0, said.err


def test_it_appends_one_record_and_says_where(streamduel: Streamduel, folder: Path) -> None:
    before = (folder / "clicks.jsonl").read_bytes()
    begin = int(1000 * time.time())
    said = streamduel("control", folder / "search.yaml", "search", "add-arm", "ltr-v4")
    [record] = log_of(folder)
    assert said == (
        0,
        f"Wrote add-arm 'ltr-v4' for experiment 'search' to {folder / 'clicks.jsonl'} "
        f"(id {record['id']}); `streamduel inspect {folder / 'search.yaml'}` shows the effect, "
        f"or one more dead letter if the action is impossible.\n",
        "",
    )
    assert begin <= record.pop("ts") <= int(1000 * time.time())
    assert len(record.pop("id")) == 36
    assert record == {
        "type": "control", "experiment": "search", "action": "add_arm", "arm": "ltr-v4",
    }  # fmt: skip
    assert (folder / "clicks.jsonl").read_bytes().startswith(before)


def test_for_programs_it_prints_the_record(streamduel: Streamduel, folder: Path) -> None:
    said = streamduel("control", folder / "search.yaml", "search", "pause", "--json")
    assert (said.status, json.loads(said.out)) == (0, log_of(folder)[0])


def test_a_run_takes_each_action_in_its_turn(streamduel: Streamduel, folder: Path) -> None:
    config = folder / "search.yaml"

    def told(*action: str) -> dict[str, Any]:
        epoch = last(folder)["epoch"]
        assert streamduel("control", config, "search", *action).status == 0
        fold(folder)
        assert last(folder)["epoch"] == epoch + 1
        return last(folder)

    # A control record bears the present time: impressions that wait for clicks wait no longer.
    assert streamduel("control", config, "search", "resume").status == 0
    fold(folder)
    duels = inspected(streamduel, folder)["experiments"]["search"]["duels"]
    paused = told("pause")
    assert (paused["status"], paused["duels"], paused["offset"]) == ("paused", duels, len(LOG) + 1)
    assert {(pair["a"], pair["b"]) for pair in paused["pairs"]} == {(paused["champion"],) * 2}
    assert told("resume")["status"] == "running"
    added = told("add-arm", "ltr-v4")
    assert (added["pairs"][0]["b"], added["duels"]) == ("ltr-v4", duels)
    retired = next(arm for arm in ARMS if arm != added["champion"])
    assert told("retire-arm", retired)["duels"] == duels
    search = inspected(streamduel, folder)["experiments"]["search"]
    assert search["arms"] == [*(arm for arm in ARMS if arm != retired), "ltr-v4"]
    one, other = search["arms"][:2]
    frozen = told("freeze-pair", other, one)["pairs"]
    assert [(pair["a"], pair["b"], pair["share"]) for pair in frozen] == [(one, other, 1)]
    assert told("unfreeze-pair")["status"] == "running"
    assert told("reset")["duels"] == 0
    assert streamduel("replay", config).status == 0


def test_with_the_same_id_it_is_done_once(streamduel: Streamduel, folder: Path) -> None:
    for _ in range(2):
        said = streamduel(
            "control", folder / "search.yaml", "search", "add-arm", "x", "--id", "c-1"
        )
        assert said.status == 0
    assert [record["id"] for record in log_of(folder)] == ["c-1", "c-1"]
    before = lines(folder, "dead_letters.jsonl")
    fold(folder)
    assert inspected(streamduel, folder)["experiments"]["search"]["arms"] == [*ARMS, "x"]
    assert lines(folder, "dead_letters.jsonl") == before


def test_what_cannot_be_done_becomes_a_dead_letter(streamduel: Streamduel, folder: Path) -> None:
    before = lines(folder, "dead_letters.jsonl")
    assert streamduel("control", folder / "search.yaml", "search", "add-arm", "bm25").status == 0
    fold(folder)
    [letter] = lines(folder, "dead_letters.jsonl")[len(before) :]
    assert json.loads(letter)["reason"] == "invalid_record"


def test_a_last_line_without_its_newline_stays_whole(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    config = configure(tmp_path)
    (tmp_path / "clicks.jsonl").write_bytes(duel("search", 1, "bm25", "ltr-v1", "a"))
    fold(tmp_path)
    assert streamduel("control", config, "search", "pause").status == 0
    fold(tmp_path)
    assert (last(tmp_path)["status"], last(tmp_path)["duels"]) == ("paused", 1)
    assert not lines(tmp_path, "dead_letters.jsonl")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["serch", "pause"], "unknown experiment 'serch'; did you mean 'search'? Configured: "
         "'search'."),
        (["other", "pause"], "unknown experiment 'other'. Configured: 'search'."),
        (["search", "puase"], "ACTION must be one of pause, resume, add-arm, retire-arm, reset, "
         "freeze-pair, unfreeze-pair (found 'puase'); did you mean 'pause'?"),
        (["search", "add_arm", "x"], "ACTION must be one of pause, resume, add-arm, retire-arm, "
         "reset, freeze-pair, unfreeze-pair (found 'add_arm'); did you mean 'add-arm'?"),
        (["search", "add-arm"], "add-arm needs an ARM."),
        (["search", "retire-arm"], "retire-arm needs an ARM."),
        (["search", "reset", "bm25"],
         "reset takes no ARM (found 'bm25')."),
        (["search", "freeze-pair", "bm25"], "freeze-pair needs two arms, ARM and OTHER."),
        (["search", "freeze-pair", "x", "x"], "freeze-pair needs two arms (found 'x' twice)."),
        (["search", "add-arm", "x", "y"],
         "add-arm takes no second ARM (found 'y')."),
        (["search", "add-arm", ""],
         "arm must be an arm's name, a string of 1 to 256 characters (found '')."),
        (["search", "add-arm", "x" * 257], f"arm must be an arm's name, a string of 1 to 256 "
         f"characters (found '{'x' * 78}…)."),
        (["search", "pause", "--id", ""], "id must be a string of 1 to 256 characters (found '')."),
        (["search", "add-arm", "\udcff"], "ARM and --id must be UTF-8."),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_and_nothing_written(
    streamduel: Streamduel, folder: Path, arguments: list[str], sentence: str
) -> None:
    said = streamduel("control", folder / "search.yaml", *arguments)
    assert said == (2, "", f"streamduel: {sentence}\n")
    assert not log_of(folder)


def test_a_record_that_would_be_too_large_is_refused(streamduel: Streamduel, folder: Path) -> None:
    config = configure(folder, {"limits.max_record_bytes": 80})
    said = streamduel("control", config, "search", "pause", "--id", "c-1")
    assert said.status == 2
    assert "bytes; limits.max_record_bytes allows 80." in said.err
    assert not log_of(folder)


def with_source(streamduel: Streamduel, folder: Path, path: str) -> Said:
    return streamduel(
        "control", configure(folder, {"source.path": path}), "search", "pause"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("-", "source.path is standard input, to which no record can be added."),
        ("clicks.jsonl.gz",
         "source.path is the compressed file {}, to which no record can be added."),
        ("pipe", "source.path {} is no regular file, so no record can be added to it."),
    ],
)  # fmt: skip
def test_what_cannot_be_added_to_is_refused(
    streamduel: Streamduel, tmp_path: Path, path: str, sentence: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    said = with_source(streamduel, tmp_path, path)
    assert said == (2, "", f"streamduel: {sentence.format(tmp_path / path)}\n")


@pytest.mark.parametrize(
    ("path", "why"), [("none.jsonl", "No such file or directory"), (".", "Is a directory")]
)
def test_a_log_that_is_not_there_is_not_made(
    streamduel: Streamduel, tmp_path: Path, path: str, why: str
) -> None:
    said = with_source(streamduel, tmp_path, path)
    assert said == (
        1, "",
        f"streamduel: source.path {tmp_path / path} cannot be written to: {why}; nothing was "
        f"written.\n",
    )  # fmt: skip
    assert not (tmp_path / "none.jsonl").exists()


def test_a_lock_is_not_waited_for_without_end(
    streamduel: Streamduel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamduel_files.append, "LOCK_SECONDS", 0.1)
    with (folder / "clicks.jsonl").open("rb") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        said = streamduel("control", folder / "search.yaml", "search", "pause")
    assert said.status == 1
    assert "is locked by another program; nothing was written." in said.err
    assert not log_of(folder)


def test_a_full_disk_is_told(
    streamduel: Streamduel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda file, text: write(file, text[:9]))
        said = streamduel("control", folder / "search.yaml", "search", "pause")
    assert said.status == 1
    assert "is the disk full? " in said.err
    assert streamduel("control", folder / "search.yaml", "search", "pause").status == 0
    fold(folder)
    assert last(folder)["status"] == "paused", "the next record has a line of its own"


def test_when_it_is_not_known_it_says_how_to_be_sure(
    streamduel: Streamduel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append(*_: object) -> str:
        raise UncertainError("Nobody answered.")

    monkeypatch.setattr(connector.load_connector("files"), "append", append)
    said = streamduel("control", folder / "search.yaml", "search", "pause", "--id", "c-7")
    assert said == (
        1, "",
        "streamduel: Nobody answered. Repeat the command with --id c-7: the record then takes "
        "effect once, even if it was written twice.\n",
    )  # fmt: skip

"""`control`: the record that it appends, its effect, and the actions that it refuses."""

from __future__ import annotations

import fcntl
import getpass
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest

import streamduel_files.append
from streamduel import connector
from streamduel.errors import UncertainError
from streamduel.records import Action
from streamduel.testing import duel
from tests.logs import ARMS
from tests.unit.cli.commands import LOG, Result, Streamduel, configure, inspected, lines, run

ACTIONS = ", ".join(it.replace("_", "-") for it in get_args(Action) if it != "apply")


def log_of(folder: Path) -> list[dict[str, Any]]:
    """The records that were added to the log."""
    text = (folder / "clicks.jsonl").read_bytes()
    assert text.endswith(b"\n")
    return [json.loads(line) for line in text.splitlines()[len(LOG) :]]


def last(folder: Path) -> dict[str, Any]:
    assignment: dict[str, Any] = json.loads(lines(folder)[-1])
    return assignment


def fold(folder: Path) -> None:
    result = run(folder / "search.yaml", "--until-end")
    assert result.status == 0, result.err


def test_an_arm_may_join_like_another_one(streamduel: Streamduel, folder: Path) -> None:
    add = ("control", folder / "search.yaml", "search", "add-arm", "ltr-v4", "--like")
    same = streamduel(*add, "ltr-v4")
    assert (same.status, same.err) == (
        2, "streamduel: --like must name another arm than ARM (found 'ltr-v4').\n"
    )  # fmt: skip
    wrong = streamduel(*add[:3], "retire-arm", "bm25", "--like", "ltr-v1")
    assert (wrong.status, wrong.err) == (
        2, "streamduel: --like is for add-arm (found with retire-arm).\n"
    )  # fmt: skip
    assert log_of(folder) == []
    done = streamduel(*add, ARMS[1])
    assert done.status == 0
    assert done.out.startswith(f"Wrote add-arm 'ltr-v4' like '{ARMS[1]}' for experiment 'search'")
    assert log_of(folder)[0]["like"] == ARMS[1]


def test_it_appends_one_record_and_names_the_file(streamduel: Streamduel, folder: Path) -> None:
    before = (folder / "clicks.jsonl").read_bytes()
    begin = int(1000 * time.time())
    result = streamduel("control", folder / "search.yaml", "search", "add-arm", "ltr-v4")
    [record] = log_of(folder)
    assert result == (
        0,
        f"Wrote add-arm 'ltr-v4' for experiment 'search' to {folder / 'clicks.jsonl'} "
        f"(id {record['id']}); `streamduel inspect {folder / 'search.yaml'}` shows the effect, "
        f"or one more dead letter if the action is impossible.\n",
        "",
    )
    assert begin <= record.pop("ts") <= int(1000 * time.time())
    assert len(record.pop("id")) == 36
    assert record.pop("actor") == f"{getpass.getuser()}@{socket.gethostname()}"
    assert record == {
        "type": "control", "experiment": "search", "action": "add_arm", "arm": "ltr-v4",
    }  # fmt: skip
    assert (folder / "clicks.jsonl").read_bytes().startswith(before)


def test_inspect_shows_a_frozen_pair_and_the_note_where_it_is_promised(
    streamduel: Streamduel, folder: Path
) -> None:
    config = folder / "search.yaml"
    noted = streamduel("control", config, "search", "note", "trained again", "--id", "n")
    assert noted.out.endswith(
        f"(id n); `streamduel inspect {config} --json` shows the timeline with it, or one more "
        "dead letter if the action is impossible.\n"
    )
    assert streamduel("control", config, "search", "freeze-pair", ARMS[2], ARMS[0]).status == 0
    fold(folder)
    search = inspected(streamduel, folder)["experiments"]["search"]
    assert search["timeline"][-2]["text"] == "trained again"
    assert search["frozen_pair"] == [ARMS[0], ARMS[2]]
    assert f"\nfrozen pair: {ARMS[0]}, {ARMS[2]}\n" in streamduel("inspect", config).out
    assert streamduel("control", config, "search", "unfreeze-pair").status == 0
    fold(folder)
    assert inspected(streamduel, folder)["experiments"]["search"]["frozen_pair"] is None
    assert "frozen" not in streamduel("inspect", config).out


def test_the_actor_may_be_given(streamduel: Streamduel, folder: Path) -> None:
    pause = ("control", folder / "search.yaml", "search", "pause")
    assert streamduel(*pause, "--actor", "deployment 7").status == 0
    assert [record["actor"] for record in log_of(folder)] == ["deployment 7"]
    refused = streamduel(*pause, "--actor", "")
    assert (refused.status, len(log_of(folder))) == (2, 1)
    assert "actor must be a string of 1 to 256 characters" in refused.err


def test_a_user_without_a_name_is_a_number(
    streamduel: Streamduel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert streamduel("control", folder / "search.yaml", "search", "pause").status == 0
    assert log_of(folder)[0]["actor"] == f"{os.getuid()}@{socket.gethostname()}"


def test_control_records_may_be_switched_off(streamduel: Streamduel, folder: Path) -> None:
    configure(folder, {"limits": {"control_records": False}})
    result = streamduel("control", folder / "search.yaml", "search", "pause")
    assert (result.status, log_of(folder)) == (2, [])
    assert "limits.control_records must be true" in result.err


def test_json_prints_the_record(streamduel: Streamduel, folder: Path) -> None:
    result = streamduel("control", folder / "search.yaml", "search", "pause", "--json")
    assert (result.status, json.loads(result.out)) == (0, log_of(folder)[0])


def test_a_run_applies_each_action_in_order(streamduel: Streamduel, folder: Path) -> None:
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


def test_a_repeated_id_takes_effect_once(streamduel: Streamduel, folder: Path) -> None:
    for _ in range(2):
        result = streamduel(
            "control", folder / "search.yaml", "search", "add-arm", "x", "--id", "c-1"
        )
        assert result.status == 0
    assert [record["id"] for record in log_of(folder)] == ["c-1", "c-1"]
    before = lines(folder, "dead_letters.jsonl")
    fold(folder)
    assert inspected(streamduel, folder)["experiments"]["search"]["arms"] == [*ARMS, "x"]
    assert lines(folder, "dead_letters.jsonl") == before


def test_an_impossible_action_becomes_a_dead_letter(streamduel: Streamduel, folder: Path) -> None:
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
        (["search", "puase"],
         f"ACTION must be one of {ACTIONS} (found 'puase'); did you mean 'pause'?"),
        (["search", "apply"],
         "apply is for all experiments and comes first: `streamduel control apply CONFIG`."),
        (["search", "add_arm", "x"],
         f"ACTION must be one of {ACTIONS} (found 'add_arm'); did you mean 'add-arm'?"),
        (["search", "add-arm"], "add-arm needs an ARM."),
        (["search", "retire-arm"], "retire-arm needs an ARM."),
        (["search", "reset", "bm25"],
         "reset takes no ARM (found 'bm25')."),
        (["search", "freeze-pair", "bm25"], "freeze-pair needs two arms, ARM and OTHER."),
        (["search", "freeze-pair", "x", "x"], "freeze-pair needs two arms (found 'x' twice)."),
        (["search", "add-arm", "x", "y"],
         "add-arm takes no second ARM (found 'y')."),
        (["search", "note"], "note needs a TEXT."),
        (["search", "note", "trained", "again"],
         "note takes one TEXT, in quotes (found 'again')."),
        (["search", "add-arm", ""],
         "arm must be an arm's name, a string of 1 to 256 characters (found '')."),
        (["search", "add-arm", "x" * 257], f"arm must be an arm's name, a string of 1 to 256 "
         f"characters (found '{'x' * 78}…)."),
        (["search", "pause", "--id", ""], "id must be a string of 1 to 256 characters (found '')."),
        (["search", "add-arm", "\udcff"],
         r"every argument must be UTF-8 (found '\udcff')."),
        (["search", "note", ""], "text must be a string of 1 to 1000 characters (found '')."),
    ],
)  # fmt: skip
def test_a_mistake_is_refused_and_nothing_written(
    streamduel: Streamduel, folder: Path, arguments: list[str], sentence: str
) -> None:
    result = streamduel("control", folder / "search.yaml", *arguments)
    assert result == (2, "", f"streamduel: {sentence}\n")
    assert not log_of(folder)


def test_a_record_that_would_be_too_large_is_refused(streamduel: Streamduel, folder: Path) -> None:
    config = configure(folder, {"limits.max_record_bytes": 80})
    result = streamduel("control", config, "search", "pause", "--id", "c-1")
    assert result.status == 2
    assert "bytes; limits.max_record_bytes allows 80." in result.err
    assert not log_of(folder)


def with_source(streamduel: Streamduel, folder: Path, path: str) -> Result:
    return streamduel(
        "control", configure(folder, {"source.path": path}), "search", "pause"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("-", "source.path is standard input, to which no record can be added."),
        ("clicks.jsonl.gz",
         "source.path is the compressed file {}, to which no record can be added."),
        ("pipe", "source.path {} is not a regular file, so no record can be added to it."),
    ],
)  # fmt: skip
def test_a_source_that_cannot_be_appended_to_is_refused(
    streamduel: Streamduel, tmp_path: Path, path: str, sentence: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = with_source(streamduel, tmp_path, path)
    assert result == (2, "", f"streamduel: {sentence.format(tmp_path / path)}\n")


@pytest.mark.parametrize(
    ("path", "why"), [("none.jsonl", "No such file or directory"), (".", "Is a directory")]
)
def test_a_missing_click_log_is_not_created(
    streamduel: Streamduel, tmp_path: Path, path: str, why: str
) -> None:
    result = with_source(streamduel, tmp_path, path)
    assert result == (
        1, "",
        f"streamduel: source.path {tmp_path / path} cannot be written to: {why}; nothing was "
        f"written.\n",
    )  # fmt: skip
    assert not (tmp_path / "none.jsonl").exists()


def test_the_wait_for_a_lock_is_bounded(
    streamduel: Streamduel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamduel_files.append, "LOCK_SECONDS", 0.1)
    with (folder / "clicks.jsonl").open("rb") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        result = streamduel("control", folder / "search.yaml", "search", "pause")
    assert result.status == 1
    assert "is locked by another program; nothing was written." in result.err
    assert not log_of(folder)


def test_a_full_disk_is_reported(
    streamduel: Streamduel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda file, text: write(file, text[:9]))
        result = streamduel("control", folder / "search.yaml", "search", "pause")
    assert result.status == 1
    assert "is the disk full? " in result.err
    assert streamduel("control", folder / "search.yaml", "search", "pause").status == 0
    fold(folder)
    assert last(folder)["status"] == "paused", "the next record has a line of its own"


def test_an_uncertain_write_names_the_command_to_repeat(
    streamduel: Streamduel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append(*_: object) -> Iterator[str]:
        raise UncertainError("Nobody answered.")

    monkeypatch.setattr(connector.load_connector("files"), "append", append)
    result = streamduel("control", folder / "search.yaml", "search", "pause", "--id", "c-7")
    assert result == (
        1, "",
        "streamduel: Nobody answered. Repeat the command with --id c-7: the record then takes "
        "effect once, even if it was written twice.\n",
    )  # fmt: skip

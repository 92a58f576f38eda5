"""`streamduel repair` on files; a real Kafka is in tests/integration."""

from __future__ import annotations

import getpass
import json
import os
import socket
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamduel.checksum import unsealed
from streamduel.cli import repair_opening
from streamduel.cli.repair import _control_topic, _moment, _shown
from streamduel.errors import ConfigurationError
from streamduel.records import MAX_TIME
from streamduel.testing import encode
from streamduel_files.outlet import FileOutlet
from tests.unit.cli.commands import (
    HALF,
    LOG,
    Result,
    Streamduel,
    configure,
    inspected,
    lines,
    run,
    running,
)
from tests.unit.stream.folding import DUEL


@pytest.mark.parametrize(
    ("continued", "told"),
    [
        ([], "read from its beginning."),
        (
            [0],
            "partition 0 continues where it was; "
            "partitions 1, 2 and 3 are read from their beginnings.",
        ),
        (
            [0, 1, 2],
            "partitions 0, 1 and 2 continue where they were; "
            "partition 3 is read from its beginning.",
        ),
        ([0, 1, 2, 3], "partitions 0, 1, 2 and 3 continue where they were."),
    ],
)
def test_each_partition_of_the_control_topic_is_told_once(continued: list[int], told: str) -> None:
    move: Any = SimpleNamespace(begins=range(4), continues=continued.__contains__)
    assert _control_topic("control", move) == [f"Control topic 'control': {told}"]
    assert _control_topic(None, move) == []


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        (None, None),
        ("1", 1),
        (str(MAX_TIME), MAX_TIME),
        ("2026-11-22T17:00:00Z", 1_795_366_800_000),
        ("2026-11-22T17:00:00", 1_795_366_800_000),
        ("2026-11-22T19:00:00.250+02:00", 1_795_366_800_250),
    ],
)
def test_a_time_is_milliseconds_or_a_date_by_default_in_utc(
    text: str | None, milliseconds: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    try:
        assert _moment(text) == milliseconds
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["0", str(MAX_TIME + 1), "1969-12-31T23:59:59Z"])
def test_a_time_that_no_record_can_have_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"found '{text}'"):
        _moment(text)


def test_a_time_is_shown_as_a_date_if_it_has_one() -> None:
    assert _shown(1_795_366_800_250) == "2026-11-22T17:00:00Z (1795366800250 ms)"
    assert _shown(MAX_TIME) == f"{MAX_TIME} ms"


def write(folder: Path, values: list[bytes]) -> None:
    (folder / "clicks.jsonl").write_bytes(b"".join(value + b"\n" for value in values))


def partition(folder: Path) -> dict[str, Any]:
    stored = json.loads(unsealed((folder / "state" / "snapshot.json").read_bytes()))
    entry: dict[str, Any] = stored["partitions"]["0"]["entries"]["partition"]
    return entry


def repair(streamduel: Streamduel, folder: Path, action: str, *options: object) -> Result:
    return streamduel("repair", action, folder / "search.yaml", *options)


def test_skip_ignores_one_record_and_replay_agrees(streamduel: Streamduel, half: Path) -> None:
    write(half, LOG)
    skipped = next(
        number for number in range(HALF, len(LOG)) if b'"type": "duel"' in LOG[number]
    )  # fmt: skip
    before = (half / "state" / "snapshot.json").read_bytes()
    options = ("--partition", 0, "--offset", skipped)
    dry = repair(streamduel, half, "skip", *options, "--dry-run")
    assert dry.status == 0
    assert dry.out.endswith("Nothing was written (--dry-run).\n")
    assert (half / "state" / "snapshot.json").read_bytes() == before
    done = repair(streamduel, half, "skip", *options)
    assert done == (
        0,
        f"Partition 0: the record at offset {skipped} is skipped; the next record to fold is "
        f"{HALF}.\nDone; start the service.\n",
        "",
    )
    assert run(half / "search.yaml", "--until-end").status == 0
    assert partition(half)["repairs"][0]["at"] == skipped
    assert streamduel("replay", half / "search.yaml").status == 0
    folded = sum(inspected(streamduel, half)["experiments"]["search"]["tallies"].values())
    write(half, LOG[:skipped] + LOG[skipped + 1 :])
    for name in ("out", "state"):
        (half / name).rename(half / f"former {name}")
    assert run(half / "search.yaml", "--until-end").status == 0
    assert folded == sum(inspected(streamduel, half)["experiments"]["search"]["tallies"].values())


def test_a_folded_record_cannot_be_skipped(streamduel: Streamduel, half: Path) -> None:
    result = repair(streamduel, half, "skip", "--partition", 0, "--offset", HALF - 1)
    assert result.status == 2
    assert f"--offset must be at least {HALF}" in result.err


MISTAKES: list[tuple[list[object], str]] = [
    (["skip"], "skip needs --offset."),
    (["skip", "--offset", 2000], "skip needs --partition."),
    (["skip", "--offset", 2000, "--partition", 1], "--partition must be below 1"),
    (["skip", "--offset", 2000, "--partition", 0, "--to", 5], "skip takes no --to."),
    (["time", "--partition", 0, "--to", "yesterday"], "--to must be milliseconds"),
    (["skip", "--offset", 10**23, "--partition", 0], f"(found {10**23}, beyond its end)."),
    (["skip", "--offset", HALF, "--partition", 0], f"(found {HALF}, beyond its end)."),
    (["new-log"], "there is no new log."),
    (["skip", "--offset", 2000, "--partition", 0, "--at-end"], "skip takes no --at-end."),
    (["new-lok"], "did you mean 'new-log'?"),
    (["repartition"], "repartition needs --from."),
]


def test_mistakes_are_sentences(streamduel: Streamduel, half: Path) -> None:
    for (action, *options), sentence in MISTAKES:
        result = repair(streamduel, half, str(action), *options)
        assert result.status == 2
        assert sentence in result.err


def test_a_replaced_file_is_refused_and_can_be_continued(
    streamduel: Streamduel, half: Path
) -> None:
    """The state stays, and the fold begins at the new file's first line."""
    before = inspected(streamduel, half)["experiments"]["search"]
    write(half, LOG[HALF:])
    refused = run(half / "search.yaml", "--until-end")
    assert refused.status == 2
    assert "it was deleted and created again, or replaced" in refused.err
    assert "streamduel repair new-log" in refused.err
    done = repair(streamduel, half, "new-log")
    assert done.status == 0, done.err
    assert "the state of 1 experiment continues at offset 0 of 'clicks.jsonl'" in done.out
    assert run(half / "search.yaml", "--until-end").status == 0
    after = inspected(streamduel, half)["experiments"]["search"]
    assert after["duels"] > before["duels"]
    assert after["epoch"] > before["epoch"]
    assert after["offset"]["next"] == len(LOG) - HALF
    epochs = [json.loads(line)["epoch"] for line in lines(half)]
    assert epochs == list(range(1, len(epochs) + 1))
    replayed = streamduel("replay", half / "search.yaml")
    assert replayed.status == 0, replayed
    assert replayed.out.startswith(f"{len(LOG) - HALF:,} records folded again")
    assert "there is no new log" in repair(streamduel, half, "new-log").err


def test_a_truncated_file_is_refused_and_can_be_continued(
    streamduel: Streamduel, half: Path
) -> None:
    """It begins with the same line; lines that were appended since must not be lost."""
    before = inspected(streamduel, half)["experiments"]["search"]
    write(half, [*LOG[:5], *LOG[HALF : HALF + 300]])
    refused = run(half / "search.yaml", "--until-end")
    examined = streamduel("doctor", half / "search.yaml")
    for result, status in ((refused, 2), (examined, 1)):
        assert result.status == status
        words = " ".join((result.err + result.out).split())
        assert f"ends at offset 305, before the next offset of the snapshot, {HALF}" in words
        assert "streamduel repair new-log" in words
    done = repair(streamduel, half, "new-log")
    assert done.status == 0, done.err
    assert run(half / "search.yaml", "--until-end").status == 0
    after = inspected(streamduel, half)["experiments"]["search"]
    assert after["duels"] > before["duels"] + 200
    assert streamduel("replay", half / "search.yaml").status == 0


def test_a_truncated_file_can_be_continued_at_its_end(streamduel: Streamduel, half: Path) -> None:
    """No line is folded a second time."""
    before = inspected(streamduel, half)["experiments"]["search"]
    write(half, LOG[: HALF - 100])
    done = repair(streamduel, half, "new-log", "--at-end")
    assert f"continues at offset {HALF - 100} of 'clicks.jsonl'; {HALF} was" in done.out
    assert run(half / "search.yaml", "--until-end").status == 0
    assert inspected(streamduel, half)["experiments"]["search"]["duels"] == before["duels"]
    write(half, [*LOG[: HALF - 100], *LOG[HALF:]])
    assert run(half / "search.yaml", "--until-end").status == 0
    after = inspected(streamduel, half)["experiments"]["search"]
    assert after["duels"] > before["duels"]
    assert streamduel("replay", half / "search.yaml").status == 0


def test_a_longer_file_is_the_same_log(streamduel: Streamduel, half: Path) -> None:
    write(half, LOG)
    assert run(half / "search.yaml", "--until-end").status == 0
    assert partition(half)["log_id"].startswith("first line ")


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (["new-log"], "were made from the present 'clicks.jsonl'; there is no new log."),
        (["time", "--partition", "0"], f"before offset {HALF + 200}, when the next record"),
    ],
)
def test_a_dry_run_beside_a_service_that_commits_meanwhile(
    streamduel: Streamduel,
    half: Path,
    monkeypatch: pytest.MonkeyPatch,
    action: list[str],
    said: str,
) -> None:
    monkeypatch.setattr("streamduel.cli.repair.load_config", running)
    result = repair(streamduel, half, *action, "--dry-run")
    assert said in result.out + result.err


def test_a_running_service_is_not_repaired(streamduel: Streamduel, half: Path) -> None:
    outlet = FileOutlet(half / "out", half / "state")
    try:
        result = repair(streamduel, half, "skip", "--partition", 0, "--offset", 1500)
    finally:
        outlet.close()
    assert result.status == 1
    assert "another streamduel writes to" in result.err


def test_stream_time_is_set_back_and_replay_agrees(streamduel: Streamduel, half: Path) -> None:
    """By default to the median of the newest timestamps."""
    write(half, LOG)
    before = partition(half)["stream_time"]
    done = repair(streamduel, half, "time", "--partition", 0)
    assert done.status == 0, done.err
    assert f"before offset {HALF}" in done.out
    assert repair(streamduel, half, "time", "--partition", 0, "--to", before - 7).status == 0
    assert [it["to"] for it in partition(half)["repairs"]] == [before - 7], "the last one holds"
    assert run(half / "search.yaml", "--until-end").status == 0
    assert partition(half)["repairs"][0]["done"]
    assert streamduel("replay", half / "search.yaml").status == 0


def test_the_default_time_is_the_median_of_the_newest_timestamps(
    streamduel: Streamduel, half: Path
) -> None:
    """Neither 49 wrong clocks of the newest 101 nor zeros nor older records have an influence."""
    newest, year_2099 = 1_800_000_000_000, 4_070_908_800_000
    times = [*(newest - 1000 * n for n in range(60)), *[0] * 10, *[year_2099] * 49]
    write(
        half,
        [*LOG[:HALF], *(encode({**DUEL, "id": f"n-{n}", "ts": ts}) for n, ts in enumerate(times))],
    )
    assert repair(streamduel, half, "time", "--partition", 0).status == 0
    assert [it["to"] for it in partition(half)["repairs"]] == [newest - 9000]


def test_the_default_time_is_that_of_a_foreign_click_log(
    streamduel: Streamduel, tmp_path: Path
) -> None:
    """By default it is the median, of few records, too."""
    config = configure(tmp_path, {"source.format": {"name": "ubi", "experiment": "search"}})
    query = {
        "query_id": "q", "query_response_hit_ids": ["d1"],
        "query_attributes": {"a": "bm25", "b": "dense", "teams": ["bm25"]},
    }  # fmt: skip
    times = [f"2026-09-21T14:{minute}:00.000Z" for minute in (13, 24, 14)]
    write(tmp_path, [encode({**query, "timestamp": time}) for time in times])
    assert run(config, "--until-end", "--quiet").status == 0
    assert partition(tmp_path)["stream_time"] == 1_790_000_640_000
    assert repair(streamduel, tmp_path, "time", "--partition", 0).status == 0
    assert [it["to"] for it in partition(tmp_path)["repairs"]] == [1_790_000_040_000]


def test_a_poll_that_gains_the_partitions_late_is_no_timeout(
    streamduel: Streamduel, half: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repair_opening, "OWN_SECONDS", 0.0)
    result = repair(streamduel, half, "time", "--partition", 0, "--to", 10**12)
    assert (result.status, result.err) == (0, "")


def test_a_user_without_a_name_is_a_number(
    streamduel: Streamduel, half: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert repair(streamduel, half, "time", "--partition", 0, "--to", 10**12).status == 0
    note = partition(half)["repairs"][0]["note"]
    assert note.endswith(f" by {os.getuid()}@{socket.gethostname()}")

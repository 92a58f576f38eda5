"""The differences that `replay` reports."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from streamduel.checksum import seal
from streamduel_files.outlet import PartitionSnapshot, SnapshotFile, read_snapshot
from tests.unit.cli.commands import (
    HALF,
    LOG,
    Result,
    Streamduel,
    configure,
    lines,
    run,
    running,
)
from tests.unit.stream.sealing import Change, changed


def replay(streamduel: Streamduel, folder: Path) -> Result:
    return streamduel("replay", folder / "search.yaml")


def test_replay_of_an_unchanged_run_is_equal(streamduel: Streamduel, folder: Path) -> None:
    assert replay(streamduel, folder) == (
        0,
        f"{len(LOG):,} records folded again, {len(lines(folder)):,} assignments equal, "
        "states equal.\n",
        "",
    )


def test_replay_changes_nothing(streamduel: Streamduel, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    replay(streamduel, folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_replay_beside_a_service_that_commits_meanwhile(
    streamduel: Streamduel, half: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streamduel.cli.replay.load_config", running)
    result = replay(streamduel, half)
    assert result.status == 0, result
    assert result.out.startswith(f"{HALF + 200:,} records folded again")


def rewrite(folder: Path, published: list[bytes]) -> None:
    (folder / "out" / "assignments.jsonl").write_bytes(b"".join(published))


@pytest.mark.parametrize("epoch", [1, 20, -1])
def test_replay_shows_a_changed_byte(streamduel: Streamduel, folder: Path, epoch: int) -> None:
    published = lines(folder)
    index = epoch - 1 if epoch > 0 else len(published) - 1
    honest = published[index]
    published[index] = honest.replace(b'"share":1.0', b'"share":0.9')
    assert published[index] != honest
    rewrite(folder, published)
    result = replay(streamduel, folder)
    assert result == (
        1,
        f"epoch {index + 1} of 'search' differs:\n"
        f"  published: {published[index].decode()}  replayed: {honest.decode()}",
        "",
    )


def test_replay_tells_what_else_is_equal_where_only_dates_differ(
    streamduel: Streamduel, folder: Path
) -> None:
    published = lines(folder)
    published[1] = re.sub(rb'"offset":\d+', b'"offset":1', published[1])
    assert published[1] != lines(folder)[1]
    rewrite(folder, published)
    result = replay(streamduel, folder)
    assert result.status == 1
    assert result.out.startswith("epoch 2 of 'search' differs:\n  published: ")
    assert result.out.endswith(
        f"1 assignment with another offset, ts or valid_until only, as an earlier release may "
        f"publish; {len(published) - 1:,} assignments equal, states equal.\n"
    )


@pytest.mark.parametrize("index", [0, 20, -1])
def test_replay_misses_a_dropped_line(streamduel: Streamduel, folder: Path, index: int) -> None:
    published = lines(folder)
    dropped = published.pop(index)
    rewrite(folder, published)
    epoch = json.loads(dropped)["epoch"]
    assert replay(streamduel, folder) == (
        1,
        f"epoch {epoch} of 'search' differs:\n  published: nothing\n  replayed: {dropped.decode()}",
        "",
    )


def test_replay_notices_a_line_published_twice(streamduel: Streamduel, folder: Path) -> None:
    published = lines(folder)
    rewrite(folder, [*published[:5], published[4], *published[5:]])
    assert replay(streamduel, folder) == (1, "epoch 5 of 'search' was published twice.\n", "")


def test_replay_notices_an_invented_line(streamduel: Streamduel, folder: Path) -> None:
    published = lines(folder)
    invented = published[3].replace(b'"epoch":4,', b'"epoch":9999,')
    rewrite(folder, [*published[:5], invented, *published[5:]])
    result = replay(streamduel, folder)
    assert result.status == 1
    assert " of 'search' differs:\n" in result.out


def test_uncommitted_lines_are_no_difference(streamduel: Streamduel, folder: Path) -> None:
    """A killed process leaves such lines; the next one cuts them off."""
    published = lines(folder)
    rewrite(folder, [*published, published[-1]])
    assert replay(streamduel, folder).status == 0
    assert run(folder / "search.yaml", "--until-end").status == 0
    assert lines(folder) == published


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry["state"]["tallies"].update(accepted=1),
        lambda entry: entry["state"]["policy"]["counts"].update(duels=10**6),
    ],
)
def test_replay_notices_a_changed_state(
    streamduel: Streamduel, folder: Path, change: Change
) -> None:
    path = folder / "state" / "snapshot.json"
    file = read_snapshot(path)
    assert file is not None
    stored = file.load(0, path)
    assert stored is not None
    entries = changed(stored.entries, "experiment/search", change)
    raw = {name: msgspec.Raw(entry) for name, entry in entries.items()}
    partitions = {0: PartitionSnapshot(stored.next_offset, raw)}
    path.write_bytes(seal(msgspec.json.encode(SnapshotFile(file.outputs, partitions))))
    result = replay(streamduel, folder)
    assert result.status == 1
    assert result.out.startswith("the state of 'search' differs: the snapshot has sha256:")


def test_replay_refuses_a_damaged_snapshot(streamduel: Streamduel, folder: Path) -> None:
    path = folder / "state" / "snapshot.json"
    path.write_bytes(path.read_bytes().replace(b'"accepted":', b'"accepted":1', 1))
    result = replay(streamduel, folder)
    assert result.status == 2
    assert result.err.startswith(f"streamduel: the snapshot {path} has a wrong checksum; restore ")


def test_replay_notices_a_changed_log(streamduel: Streamduel, folder: Path) -> None:
    log = folder / "clicks.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"winner": "a"', b'"winner": "b"', 1))
    assert replay(streamduel, folder).status == 1


def test_replay_refuses_a_log_that_lost_its_beginning(streamduel: Streamduel, folder: Path) -> None:
    (folder / "clicks.jsonl").write_bytes(b"".join(value + b"\n" for value in LOG[1:]))
    result = replay(streamduel, folder)
    assert (result.status, result.out) == (2, "")
    assert "streamduel repair new-log" in result.err


def test_replay_notices_a_log_that_lost_its_end(streamduel: Streamduel, folder: Path) -> None:
    (folder / "clicks.jsonl").write_bytes(b"".join(value + b"\n" for value in LOG[:1000]))
    result = replay(streamduel, folder)
    assert result.status == 1
    assert result.out.startswith("partition 0 of 'clicks.jsonl' ends at offset 1000, before the ")


def test_replay_misses_the_whole_file(streamduel: Streamduel, folder: Path) -> None:
    (folder / "out" / "assignments.jsonl").unlink()
    assert replay(streamduel, folder).status == 1


def test_replay_without_a_snapshot_has_nothing_to_compare(
    streamduel: Streamduel, folder: Path
) -> None:
    shutil.rmtree(folder / "state")
    assert replay(streamduel, folder) == (
        2, "",
        "streamduel: there is no snapshot yet, so a replay has nothing to compare with.\n",
    )  # fmt: skip


def test_replay_checks_an_experiment_that_is_not_configured(
    streamduel: Streamduel, folder: Path
) -> None:
    before = replay(streamduel, folder)
    configure(folder, {"experiments": {"ads": {"arms": ["x", "y"]}}})
    assert replay(streamduel, folder) == before


def test_replay_in_another_format_is_refused(streamduel: Streamduel, folder: Path) -> None:
    config = configure(folder, {"source.format": "ubi"})
    result = streamduel("replay", config)
    assert (result.status, result.out) == (2, "")
    assert result.err == run(config, "--until-end").err
    assert result.err.startswith("streamduel: source.format must stay what it was")

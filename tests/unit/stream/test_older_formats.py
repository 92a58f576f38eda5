"""State that an earlier release has written is continued with the same results."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from streamduel.config import load
from streamduel.errors import SnapshotError
from streamduel.service import serve
from streamduel.stream.routing import ClickLog
from streamduel.stream.saved_state import UNHASHED, state_hash
from streamduel.stream.snapshot import FORMAT, READABLE
from streamduel.stream.task import PartitionTask
from streamduel.testing import Record
from streamduel_files import outlet
from streamduel_kafka.partitions import home_partition
from tests.unit.stream.restarts import Output

SAMPLES = {
    number: folder
    for number in READABLE
    if (folder := Path(__file__).parent / f"format_{number}").is_dir()
}
"""State that an earlier release has written, by the format of its entries."""

SAVED = SAMPLES[6]
FIRST, SECOND = 150, 350
"""After so many lines the configuration changed, and the state was saved."""

OUTPUTS = ("assignments.jsonl", "dead_letters.jsonl")
LINES = gzip.decompress((SAVED / "clicks.jsonl.gz").read_bytes()).splitlines(keepends=True)
TOPIC = ClickLog("clicks6b", 2, lambda experiment: home_partition(experiment, 2))


def run(folder: Path, configuration: str, lines: int) -> None:
    """Run the service over the beginning of the click log."""
    shutil.copy(SAVED / configuration, folder)
    (folder / "clicks.jsonl").write_bytes(b"".join(LINES[:lines]))
    serve(load(folder / configuration), lambda: False, until_end=True)


def saved_run(folder: Path) -> Path:
    """The files that release 0.1 left after `SECOND` lines."""
    (folder / "state").mkdir(parents=True)
    (folder / "out").mkdir()
    shutil.copy(SAVED / "snapshot.json", folder / "state")
    for name in OUTPUTS:
        text = gzip.decompress((SAVED / f"{name}.gz").read_bytes())
        (folder / "out" / name).write_bytes(text)
    return folder


def output(folder: Path, name: str) -> list[bytes]:
    return (folder / "out" / name).read_bytes().splitlines()


def snapshot_file(folder: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((folder / "state" / "snapshot.json").read_bytes())
    return content


def states(folder: Path) -> dict[str, object]:
    """The states of all experiments but the ended one, which stays as release 0.1 wrote it.

    Without what release 0.1 did not count, such as ties by pair.
    """
    entries = snapshot_file(folder)["partitions"]["0"]["entries"]  # type: ignore[index]
    return {
        name: {part: value for part, value in entry["state"].items() if part not in UNHASHED}
        for name, entry in entries.items()
        if name.startswith("experiment/") and entry["ended_at"] is None
    }


def test_every_older_format_that_is_read_has_a_sample() -> None:
    """It is what the last release with that format wrote: CONTRIBUTING.md, A field of the state."""
    assert list(SAMPLES) == [number for number in READABLE if number < FORMAT]
    written = set()
    for number, folder in SAMPLES.items():
        content = json.loads((folder / "snapshot.json").read_bytes())
        written.add(content["format"])
        for it in content["partitions"].values():
            assert {entry["format"] for entry in it["entries"].values()} == {number}
    assert written == {number for number in outlet.READABLE if number < outlet.FORMAT}


def test_files_of_format_6_are_continued(tmp_path: Path) -> None:
    continued, whole = saved_run(tmp_path / "continued"), tmp_path / "whole"
    run(continued, "config.yaml", len(LINES))
    whole.mkdir()
    for configuration, lines in [("first.yaml", FIRST), ("config.yaml", SECOND)]:
        run(whole, configuration, lines)
    before = {name: len(output(whole, name)) for name in OUTPUTS}
    run(whole, "config.yaml", len(LINES))
    for name, count in before.items():
        found, expected = output(continued, name)[count:], output(whole, name)[count:]
        assert found == expected
        assert found
    assert states(continued) == states(whole)
    assert snapshot_file(continued)["format"] == outlet.FORMAT


def test_hash_agrees_with_files_of_format_6(tmp_path: Path) -> None:
    """Although the replay counts what release 0.1 did not."""
    folder = saved_run(tmp_path / "continued")
    run(folder, "config.yaml", len(LINES))
    found = snapshot_file(folder)["partitions"]["0"]["entries"]["experiment/search"]  # type: ignore[index]
    whole = tmp_path / "whole"
    whole.mkdir()
    for configuration, lines in [("first.yaml", FIRST), ("config.yaml", SECOND)]:
        run(whole, configuration, lines)
    run(whole, "config.yaml", len(LINES))
    expected = snapshot_file(whole)["partitions"]["0"]["entries"]["experiment/search"]  # type: ignore[index]
    assert found["state"]["pair_ties"] != expected["state"]["pair_ties"]
    assert state_hash(found["state"]) == state_hash(expected["state"])


def test_it_is_written_in_the_present_format_at_once(tmp_path: Path) -> None:
    """So that entries with and without checksum are never mixed."""
    folder = saved_run(tmp_path / "continued")
    run(folder, "config.yaml", SECOND)
    entries = snapshot_file(folder)["partitions"]["0"]["entries"]  # type: ignore[index]
    assert {entry["format"] for entry in entries.values()} == {FORMAT}
    assert {f"experiment/{name}" for name in ("search", "ads", "shop", "old")} < set(entries)


@pytest.mark.parametrize("partition", [0, 1])
def test_kafka_entries_of_format_6_are_continued(partition: int) -> None:
    config = load(SAVED / "config.yaml").config
    log = records(partition)
    continued = Output()
    continued.entries = kafka_entries(partition)
    task = PartitionTask(config, TOPIC, partition, dict(continued.entries))
    following = task.next_offset
    assert task.resume_offset is not None
    task.begin(task.resume_offset)
    continued.take(task.take_commit())
    assert formats(continued) == {FORMAT}
    task.fold(log[task.resume_offset :])
    continued.take(task.take_commit())

    whole = Output()
    task = PartitionTask(config, TOPIC, partition)
    task.begin(0)
    task.fold(log[:following])
    whole.take(task.take_commit())
    published, letters = len(whole.assignments), len(whole.dead_letters)
    task.fold(log[following:])
    whole.take(task.take_commit())
    assert continued.assignments == whole.assignments[published:]
    assert continued.dead_letters == whole.dead_letters[letters:]
    found, expected = (
        {name: json.loads(entry) for name, entry in it.entries.items()} for it in (continued, whole)
    )
    assert without_evidence(found) == without_evidence(expected)
    assert len(log) > following


def without_evidence(entries: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Entries without what format 6 lacks, such as times to judge stream time by, and ties."""
    lacking = {"clock", "window_clock", "resets", "checksum", "entries"}
    bare = {}
    for name, entry in entries.items():
        bare[name] = {key: it for key, it in entry.items() if key not in lacking}
        if "state" in entry:
            state = entry["state"].items()
            bare[name]["state"] = {part: it for part, it in state if part not in UNHASHED}
    return bare


def kafka_entries(partition: int) -> dict[str, bytes]:
    found = map(json.loads, (SAVED / "kafka_entries.jsonl").read_text().splitlines())
    return {
        entry["key"]: entry["value"].encode()
        for entry in found
        if entry["partition"] == partition and not entry["key"].startswith("$")
    }


def records(partition: int) -> list[Record]:
    """The click log as it was in Kafka."""
    log: list[Record] = []
    for number, line in enumerate(LINES):
        try:
            key = json.loads(line)["experiment"]
        except (ValueError, LookupError, TypeError):
            key = "search"
        if home_partition(key, 2) == partition:
            stamp = 1_790_000_000_000 + 7 * number
            log.append(Record(len(log), line.rstrip(b"\n"), stamp, key.encode()))
    return log


def formats(output: Output) -> set[int]:
    return {json.loads(entry)["format"] for entry in output.entries.values()}


def test_a_damaged_entry_of_format_6_is_refused() -> None:
    config, entries = load(SAVED / "config.yaml").config, kafka_entries(0)
    for name in entries:
        for damage in (b"", b"{", b"\xff", entries[name][:-9], entries["partition"][:100]):
            with pytest.raises(SnapshotError, match=name):
                PartitionTask(config, TOPIC, 0, {**entries, name: damage})

"""The checks of connectors find faulty ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamduel.connector import PartitionCommit, Poll, load_connector
from streamduel.testing.connectors import (
    CHECKS,
    ConnectorFixture,
    check_a_crash_before_finish_leaves_nothing,
    check_a_finished_commit_is_visible,
    check_a_log_reads_the_same_as_the_source,
)
from streamduel_files.outlet import FileOutlet
from streamduel_files.source import FileSource
from tests.contract.connectors.on_files import on_files


def faulty(folder: Path, **functions: Any) -> ConnectorFixture:
    """The connector `files` with other functions."""
    return on_files(replace(load_connector("files"), **functions), folder)


def with_outlet(kind: type[FileOutlet], folder: Path) -> ConnectorFixture:
    """The connector `files` with another outlet."""
    return faulty(
        folder,
        open_outlet=lambda sink, snapshots, source, failpoint: kind(
            sink.path, snapshots.path, failpoint
        ),
    )


CHANGES: dict[str, Callable[[PartitionCommit], PartitionCommit]] = {
    "no dead letters": lambda it: replace(it, dead_letters=()),
    "each dead letter twice": lambda it: replace(it, dead_letters=[*it.dead_letters] * 2),
    "reversed dead letters": lambda it: replace(it, dead_letters=it.dead_letters[::-1]),
    "one assignment": lambda it: replace(it, assignments=it.assignments[-1:]),
    "an assignment twice": lambda it: replace(
        it, assignments=[*it.assignments, *it.assignments[1:]]
    ),
    "reversed assignments": lambda it: replace(it, assignments=it.assignments[::-1]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_outputs_are_found(change: str, tmp_path: Path) -> None:
    class Changing(FileOutlet):
        def write(self, commits: Sequence[PartitionCommit]) -> None:
            super().write([CHANGES[change](each) for each in commits])

    with pytest.raises(AssertionError, match="_Visible"):
        check_a_finished_commit_is_visible(with_outlet(Changing, tmp_path))


class EarlyCommits(FileOutlet):
    """All commits but the first are visible before `finish`."""

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        super().write(commits)
        if self.load(0) is not None:
            super().finish(commits)


class EarlyOutputs(FileOutlet):
    """The outputs of all commits but the first are visible before the snapshot."""

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        if (found := self.load(0)) is not None:
            early = [replace(it, next_offset=found.next_offset, entries={}) for it in commits]
            super().write(early)
            super().finish(early)
            commits = [replace(it, assignments=(), dead_letters=()) for it in commits]
        super().write(commits)


@pytest.mark.parametrize("outlet", [EarlyCommits, EarlyOutputs])
def test_what_is_visible_before_finish_is_found(outlet: type[FileOutlet], tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="_Visible"):
        check_a_crash_before_finish_leaves_nothing(with_outlet(outlet, tmp_path))


class FromTheBeginning(FileSource):
    """Ignores the offset."""

    def seek(self, partition: int, offset: int | None) -> int:
        super().seek(partition, 0)
        return offset or 0


def test_a_log_that_reads_something_else_is_found(tmp_path: Path) -> None:
    def open_log(settings: Any, options: object) -> FileSource:
        return FromTheBeginning(settings.path, to_end=True, serves=False)

    with pytest.raises(AssertionError, match="one"):
        check_a_log_reads_the_same_as_the_source(faulty(tmp_path, open_log=open_log))


def test_a_log_that_cannot_be_opened_is_found(tmp_path: Path) -> None:
    def open_log(settings: object, options: object) -> FileSource:
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        check_a_log_reads_the_same_as_the_source(faulty(tmp_path, open_log=open_log))


class AheadOfSeek(FileSource):
    """Delivers records before `seek`, and again after each."""

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        found = super().poll(timeout, hold=hold)
        if found.gained:
            super().seek(0, None)
        return found


class Backwards(FileSource):
    """Delivers the records of a poll in another order, also while it is held."""

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        found = super().poll(timeout)
        return replace(found, records={each: found.records[each][::-1] for each in found.records})


class Misinformed(FileSource):
    """Says of itself what is not so."""

    def caught_up(self, partition: int) -> bool:
        return True

    def lags(self, partitions: Sequence[int]) -> dict[int, int]:
        return {0: 0}

    def home(self, experiment: str) -> int:
        return len(experiment) % 2

    def log_id(self, partition: int) -> str:
        return f"log {id(self)}"


@pytest.mark.parametrize(
    ("source", "check"),
    [
        (FromTheBeginning, "seek_to_an_offset"),
        (AheadOfSeek, "a_partition_delivers_nothing_before_seek"),
        (AheadOfSeek, "reannounce_loses_and_gains_the_partition"),
        (Backwards, "records_arrive_in_the_order_of_their_offsets"),
        (Backwards, "a_poll_with_hold_delivers_no_records"),
        (Backwards, "appended_records_are_delivered_in_order"),
        (Misinformed, "caught_up_after_the_last_record"),
        (Misinformed, "lags_count_records_not_delivered"),
        (Misinformed, "every_experiment_has_a_home"),
        (Misinformed, "a_source_describes_itself"),
    ],
)
def test_a_faulty_source_is_found(source: type[FileSource], check: str, tmp_path: Path) -> None:
    def open_source(settings: Any, *_: object) -> FileSource:
        return source(settings.path, to_end=False)

    (checking,) = [each for each in CHECKS if each.__name__ == f"check_{check}"]
    with pytest.raises(AssertionError):
        checking(faulty(tmp_path, open_source=open_source))


class Forgets(FileOutlet):
    """Keeps only the entries of a commit, and after the first one nothing but its offset."""

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        kept = {} if self.load(0) else {"partition": b"{}"}
        super().write([replace(each, entries=kept) for each in commits])


@pytest.mark.parametrize(
    "check", ["entries_that_did_not_change_are_kept", "a_crash_after_finish_loses_nothing"]
)
def test_a_faulty_outlet_is_found(check: str, tmp_path: Path) -> None:
    (checking,) = [each for each in CHECKS if each.__name__ == f"check_{check}"]
    with pytest.raises(AssertionError, match="state"):
        checking(with_outlet(Forgets, tmp_path))

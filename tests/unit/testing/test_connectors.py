"""The checks of connectors find faulty ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streamduel.connector import PartitionCommit, load_connector
from streamduel.testing.connectors import (
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

"""The checks of connectors find faulty ones."""

from __future__ import annotations

import textwrap
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from streamduel.connector import (
    Failpoint,
    LogRecord,
    PartitionCommit,
    Poll,
    Snapshot,
    Source,
    load_connector,
    no_failpoint,
)
from streamduel.errors import Fenced
from streamduel.testing import MemoryOutlet, MemorySource, Record, connectors
from streamduel.testing.connectors import (
    CHECKS,
    ConnectorFixture,
    check_a_crash_before_finish_leaves_nothing,
    check_a_finished_commit_is_visible,
    check_a_former_owner_commits_nothing,
    check_a_log_reads_the_same_as_the_source,
)
from streamduel_files.outlet import FileOutlet
from streamduel_files.source import FileSource
from tests.contract.connectors.in_memory import InMemory
from tests.contract.connectors.on_files import on_files

EXAMPLE_CHECKS = [
    check
    for check in CHECKS
    if "crash" not in check.__name__  # it shows what is not finished
]


@pytest.mark.parametrize("check", EXAMPLE_CHECKS, ids=lambda check: check.__name__)
def test_the_example_runs_the_checks(check: Any, tmp_path: Path) -> None:
    """On the connector `files`, whose outputs have the names of the example."""
    lines = (connectors.__doc__ or "").splitlines()
    code = textwrap.dedent("\n".join(line for line in lines if line.startswith("    ")))
    names: dict[str, Any] = {"pytest": pytest, "connector": load_connector("files")}
    exec(code.replace('"mine"', '"files"'), names)
    names["test_connector"](check, tmp_path)


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


class Changed(FileSource):
    """Delivers other records than those of the file."""

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        found = super().poll(timeout, hold=hold)
        records = {each: [*map(self.change, found.records[each])] for each in found.records}
        return replace(found, records=records)

    def change(self, record: LogRecord) -> LogRecord:
        raise NotImplementedError


class Seconds(Changed):
    """Takes seconds for milliseconds."""

    def change(self, record: LogRecord) -> LogRecord:
        return Record(record.offset, cast(bytes, record.value), 1_790_000_000)


class Tombstones(Changed):
    """Takes an empty value for a tombstone."""

    def change(self, record: LogRecord) -> LogRecord:
        return Record(record.offset, cast(bytes, record.value) or None)


class KeepsReading(FileSource):
    """Delivers records after `reannounce`, before the next `seek`."""

    def reannounce(self) -> None:
        self._announced, self._lost, self._end = False, [0], None


class MovingEnd(FileSource):
    """Takes the present end for that at the time of `seek`."""

    def caught_up(self, partition: int) -> bool:
        return super().caught_up(partition) and self.lags([0]) == {0: 0}


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
        (KeepsReading, "reannounce_loses_and_gains_the_partition"),
        (MovingEnd, "caught_up_after_the_last_record"),
        (Tombstones, "a_value_may_be_any_bytes"),
        (Seconds, "appended_records_are_delivered_in_order"),
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


class Merges(FileOutlet):
    """Writes equal dead letters once."""

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        super().write([replace(it, dead_letters=[*{*it.dead_letters}]) for it in commits])


class OfOneThread(FileOutlet):
    """Loads nothing in another thread."""

    thread = threading.get_ident()

    def load(self, partition: int) -> Snapshot | None:
        return super().load(partition) if threading.get_ident() == self.thread else None


@pytest.mark.parametrize(
    ("outlet", "check"),
    [
        (Merges, "equal_outputs_are_all_visible"),
        (OfOneThread, "a_snapshot_is_loaded_in_another_thread"),
    ],
)
def test_an_outlet_that_loses_something_is_found(
    outlet: type[FileOutlet], check: str, tmp_path: Path
) -> None:
    (checking,) = [each for each in CHECKS if each.__name__ == f"check_{check}"]
    with pytest.raises(AssertionError):
        checking(with_outlet(outlet, tmp_path))


class Unfenced(MemoryOutlet):
    """Commits for anyone."""

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        self._source = None
        super().write(commits)


class FencedTooLate(MemoryOutlet):
    """Says that it has another owner after the commit."""

    def finish(self, commits: Sequence[PartitionCommit]) -> None:
        source, self._source = self._source, None
        super().finish(commits)
        if source is not self._broker.owner:
            self._source = source
            raise Fenced("too late")


class FencedOnce(MemoryOutlet):
    """Cannot be used after it was fenced."""

    def finish(self, commits: Sequence[PartitionCommit]) -> None:
        kept = self._open
        try:
            super().finish(commits)
        except Fenced:
            self._open = kept
            raise


@pytest.mark.parametrize("outlet", [Unfenced, FencedTooLate, FencedOnce])
def test_an_outlet_that_is_not_fenced_is_found(outlet: type[MemoryOutlet]) -> None:
    class WithOutlet(InMemory):
        def outlet(self, source: Source, failpoint: Failpoint = no_failpoint) -> MemoryOutlet:
            return outlet(self.broker, cast(MemorySource, source))

    with pytest.raises(AssertionError):
        check_a_former_owner_commits_nothing(WithOutlet())


@pytest.mark.parametrize(
    "check", ["entries_that_did_not_change_are_kept", "a_crash_after_finish_loses_nothing"]
)
def test_a_faulty_outlet_is_found(check: str, tmp_path: Path) -> None:
    (checking,) = [each for each in CHECKS if each.__name__ == f"check_{check}"]
    with pytest.raises(AssertionError, match="state"):
        checking(with_outlet(Forgets, tmp_path))

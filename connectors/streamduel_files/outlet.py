"""Assignments, dead letters and snapshots in files; the commit is one rename.

A commit appends and syncs the outputs, then writes a new snapshot file, which holds the length of
each output, and renames it over the old one. Bytes of an output beyond that length were never
committed; the next start removes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Annotated, Final

import msgspec
from filelock import lock_descriptor
from msgspec import structs

from streamduel.checksum import is_intact, is_sealed, seal
from streamduel.connector import Failpoint, Message, PartitionCommit, Snapshot, no_failpoint
from streamduel.errors import FOLDED_AGAIN, ConnectorError, SnapshotError, another_format

ASSIGNMENTS: Final = "assignments.jsonl"
DEAD_LETTERS: Final = "dead_letters.jsonl"
SNAPSHOT: Final = "snapshot.json"
LOCK: Final = ".lock"
FORMAT: Final = 3

UNSEALED: Final = 2
"""The only format without a checksum."""

READABLE: Final = range(UNSEALED, FORMAT + 1)
"""The formats that are read."""

RESTORE: Final = (
    "restore it from a backup, or move the snapshots and outputs away to start "
    f"over: {FOLDED_AGAIN}"
)

Length = Annotated[int, msgspec.Meta(ge=0)]


class PartitionSnapshot(msgspec.Struct, frozen=True):
    """One partition in snapshot.json: the next offset and the entries by name."""

    next_offset: Length
    entries: dict[str, msgspec.Raw]


class SnapshotFile(msgspec.Struct, frozen=True):
    """The content of snapshot.json.

    Attributes:
        outputs: the committed length of each output, in bytes.
        partitions: the snapshot of each partition.
    """

    outputs: dict[str, Length]
    partitions: dict[int, PartitionSnapshot]
    format: int = FORMAT

    def load(self, partition: int, path: Path) -> Snapshot | None:
        """The snapshot of a partition, for which the file is at this path; None if it has none."""
        if partition not in self.partitions:
            return None
        found = self.partitions[partition]
        entries = {name: bytes(it) for name, it in found.entries.items()}
        return Snapshot(found.next_offset, entries, f"partition {partition} in {path}")


EMPTY: Final = SnapshotFile({ASSIGNMENTS: 0, DEAD_LETTERS: 0}, {})


class FileArchive:
    """Committed outputs and snapshots, to read only; locks and changes nothing.

    Args:
        outputs: the folder of assignments.jsonl and dead_letters.jsonl.
        snapshots: the folder of snapshot.json.

    Raises:
        SnapshotError: the snapshot file cannot be read.
    """

    compacted = False

    def __init__(self, outputs: Path, snapshots: Path) -> None:
        self._assignments = outputs / ASSIGNMENTS
        self._path = snapshots / SNAPSHOT
        self._snapshot = read_snapshot(self._path) or EMPTY

    def partitions(self) -> Sequence[int]:
        """The partitions that have a snapshot."""
        return sorted(self._snapshot.partitions)

    def load(self, partition: int) -> Snapshot | None:
        """The newest snapshot of a partition."""
        return self._snapshot.load(partition, self._path)

    def published(self) -> Iterator[Message]:
        """The committed assignments, oldest first."""
        length = self._snapshot.outputs.get(ASSIGNMENTS, 0)
        if not length or not self._assignments.exists():
            return
        try:
            with self._assignments.open("rb") as file:
                while length > 0 and (line := file.readline()):
                    length -= len(line)
                    yield Message(None, line.rstrip(b"\n"))
        except OSError as error:
            raise ConnectorError(
                f"{self._assignments} cannot be read: {error.strerror}."
            ) from error

    def close(self) -> None:
        """Do nothing: no file is open."""


class FileOutlet:
    """Outputs and snapshots of one process, which holds a lock on both folders.

    Args:
        outputs: the folder of assignments.jsonl and dead_letters.jsonl.
        snapshots: the folder of snapshot.json.
        failpoint: called between the steps of a commit.

    Raises:
        ConnectorError: another process writes there, or there are outputs without a snapshot.
        SnapshotError: the snapshot file cannot be read, or an output is shorter than it says.
    """

    def __init__(self, outputs: Path, snapshots: Path, failpoint: Failpoint = no_failpoint) -> None:
        for folder in (outputs, snapshots):
            _create(folder)
        self._outputs = outputs
        self._path = snapshots / SNAPSHOT
        self._failpoint = failpoint
        self._files: dict[str, IO[bytes]] = {}
        self._lengths: dict[str, int] = {}  # of the outputs, with what was appended
        with ExitStack() as opened:
            # A second lock on one folder, in whatever spelling, would find the first one.
            folders = {(it.stat().st_dev, it.stat().st_ino): it for it in (snapshots, outputs)}
            for folder in folders.values():
                opened.enter_context(_lock(folder / LOCK))
            try:
                found = read_snapshot(self._path)
                check_outputs(outputs, self._path, found)
                self._snapshot = found or self._first_snapshot()
                for name in (ASSIGNMENTS, DEAD_LETTERS):
                    self._files[name] = opened.enter_context(self._open(name))
            except OSError as error:
                where = error.filename or snapshots
                raise ConnectorError(f"{where} cannot be written to: {error.strerror}.") from error
            self._opened = opened.pop_all()

    def _first_snapshot(self) -> SnapshotFile:
        """Store an empty snapshot, so that outputs without one can only be of an earlier run."""
        self._write_snapshot(EMPTY)
        self._replace_snapshot()
        return EMPTY

    def _open(self, name: str) -> IO[bytes]:
        """Open an output, truncated to its committed length."""
        path, length = self._outputs / name, self._snapshot.outputs.get(name, 0)
        file = path.open("ab", buffering=0)
        if file.tell() > length:
            file.truncate(length)
            file.seek(length)
        self._lengths[name] = length
        return file

    def load(self, partition: int) -> Snapshot | None:
        """The newest snapshot of a partition."""
        return self._snapshot.load(partition, self._path)

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        """Append the outputs, and write the new snapshot next to the old one; sync both."""
        try:
            for commit in commits:
                self._append(ASSIGNMENTS, commit.assignments)
            self._failpoint("files: assignments appended")
            for commit in commits:
                self._append(DEAD_LETTERS, commit.dead_letters)
            self._failpoint("files: outputs appended")
            for name, file in self._files.items():
                os.fsync(file.fileno())
                self._check_in_place(name)
            self._failpoint("files: outputs synced")
        except OSError as error:
            raise _unwritable(self._outputs, error) from error
        try:
            self._write_snapshot(self._following(commits))
        except OSError as error:
            raise _unwritable(self._path.parent, error) from error

    def _check_in_place(self, name: str) -> None:
        """Refuse to commit what no reader would find."""
        path, length = self._outputs / name, self._lengths[name]
        here = os.fstat(self._files[name].fileno())
        try:
            moved = not os.path.samestat(path.stat(), here)
        except FileNotFoundError:
            moved = True
        if moved:
            raise ConnectorError(
                f"{path} was moved or removed while streamduel writes to it; bring it back, and "
                f"the next start continues from the last commit."
            )
        if here.st_size != length:
            raise ConnectorError(
                f"{path} has {here.st_size} bytes instead of {length}: another program has changed "
                f"it; restore it, and the next start continues from the last commit."
            )

    def _append(self, name: str, messages: Sequence[Message]) -> None:
        if messages:
            text = memoryview(b"\n".join([*(message.value for message in messages), b""]))
            self._lengths[name] += len(text)
            while text:  # an unbuffered write may be partial
                text = text[self._files[name].write(text) :]

    def _following(self, commits: Sequence[PartitionCommit]) -> SnapshotFile:
        """The snapshot with these commits."""
        partitions = dict(self._snapshot.partitions)
        for commit in commits:
            former = partitions.get(commit.partition)
            entries = dict(former.entries) if former else {}
            entries.update({name: msgspec.Raw(entry) for name, entry in commit.entries.items()})
            partitions[commit.partition] = PartitionSnapshot(commit.next_offset, entries)
        return SnapshotFile(dict(self._lengths), partitions)

    def _write_snapshot(self, snapshot: SnapshotFile) -> None:
        with self._path.with_suffix(".new").open("wb") as file:
            file.write(seal(msgspec.json.encode(snapshot)))
            file.flush()
            self._failpoint("files: snapshot written")
            os.fsync(file.fileno())
        self._written = snapshot

    def finish(self, commits: Sequence[PartitionCommit]) -> None:  # noqa: ARG002
        """Rename the new snapshot over the old one: the commit."""
        try:
            self._replace_snapshot()
        except OSError as error:
            raise _unwritable(self._path.parent, error) from error
        self._snapshot = self._written

    def _replace_snapshot(self) -> None:
        self._path.with_suffix(".new").replace(self._path)
        self._failpoint("files: snapshot renamed")
        if os.name == "nt":
            return  # Windows cannot sync a folder
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the rename itself survives a power failure
        finally:
            os.close(folder)

    def close(self) -> None:
        """Close the outputs and release the locks."""
        self._opened.close()


def check_outputs(outputs: Path, path: Path, snapshot: SnapshotFile | None) -> None:
    """Refuse outputs that are not those of the snapshot, whose file is at this path.

    Raises:
        ConnectorError: there are outputs without a snapshot.
        SnapshotError: an output is shorter than the snapshot says.
    """
    for name in (ASSIGNMENTS, DEAD_LETTERS):
        output = outputs / name
        size = output.stat().st_size if output.exists() else 0
        if snapshot is None:
            if size:
                raise ConnectorError(
                    f"{output} holds the outputs of an earlier run, but {path} with its snapshot "
                    f"is missing; move one away or bring the other back."
                )
        elif size < (length := snapshot.outputs.get(name, 0)):
            raise SnapshotError(
                f"{output} has {size} bytes, but the snapshot has {length}; restore the file, or "
                f"move the snapshots and outputs away to start again."
            )


def read_snapshot(path: Path) -> SnapshotFile | None:
    """Read a snapshot file; None if there is none.

    Raises:
        SnapshotError: it cannot be read.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SnapshotError(f"the snapshot {path} cannot be read: {error.strerror}.") from error
    return decode_snapshot(text, path)


def decode_snapshot(text: bytes, path: Path) -> SnapshotFile:
    """Check and decode the content of a snapshot file, whose path is for error messages.

    Raises:
        SnapshotError: it is damaged, or of another format.
    """
    try:
        found = msgspec.json.decode(text, type=_Format).format
        if found not in READABLE:
            raise SnapshotError(f"the snapshot {path} has {another_format(found, READABLE)}")
        if (found != UNSEALED or is_sealed(text)) and not is_intact(text):
            raise SnapshotError(f"the snapshot {path} has a wrong checksum; {RESTORE}.")
        return structs.replace(msgspec.json.decode(text, type=SnapshotFile), format=FORMAT)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise SnapshotError(f"the snapshot {path} cannot be read: {error}; {RESTORE}.") from None


class _Format(msgspec.Struct):
    format: int


def _unwritable(folder: Path, error: OSError) -> ConnectorError:
    return ConnectorError(
        f"{folder} cannot be written to: {error.strerror}; the last commit remains valid, and "
        f"the next start continues from it."
    )


def _create(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConnectorError(f"the directory {folder} cannot be made: {error.strerror}.") from error


def _lock(path: Path) -> IO[str]:
    """Lock a file, without waiting; closing it releases the lock."""
    with ExitStack() as opened:
        try:
            file = opened.enter_context(path.open("w"))
            locked = lock_descriptor(file.fileno(), blocking=False)
        except OSError as error:
            raise ConnectorError(
                f"{path.parent} cannot be written to: {error.strerror}."
            ) from error
        if not locked:
            raise ConnectorError(
                f"another streamduel writes to {path.parent}; each needs directories of its own "
                "for its outputs and its snapshots."
            )
        opened.pop_all()
    return file

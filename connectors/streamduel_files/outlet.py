"""Writing assignments, dead letters and snapshots to files, with one rename as the commit.

The outputs are appended and synced first; then a new snapshot, which says how long each output
is, is written beside the old one and renamed over it. Whatever stands in an output beyond the
length that the snapshot knows was never committed, and is cut off at the next start.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Final

import msgspec

from streamduel.connector import Failpoint, Message, PartitionCommit, no_failpoint
from streamduel.errors import ConnectorError, SnapshotError

ASSIGNMENTS: Final = "assignments.jsonl"
DEAD_LETTERS: Final = "dead_letters.jsonl"
SNAPSHOT: Final = "snapshot.json"
LOCK: Final = ".lock"
FORMAT: Final = 1


class SnapshotFile(msgspec.Struct, frozen=True):
    """What snapshot.json holds.

    Attributes:
        outputs: the committed length of each output, in bytes.
        partitions: the snapshot entries of each partition.
    """

    outputs: dict[str, int]
    partitions: dict[int, dict[str, msgspec.Raw]]
    format: int = FORMAT


class FileArchive:
    """What files hold, to read from: it locks nothing and changes nothing."""

    compacted = False

    def __init__(self, outputs: Path, snapshots: Path) -> None:
        self._outputs = outputs
        self._path = snapshots / SNAPSHOT
        self._snapshot = read_snapshot(self._path)

    def partitions(self) -> Sequence[int]:
        """The partitions that have a snapshot."""
        return sorted(self._snapshot.partitions) if self._snapshot else []

    def load(self, partition: int) -> dict[str, bytes]:
        """The newest entries of a partition."""
        if self._snapshot is None:
            return {}
        entries = self._snapshot.partitions.get(partition, {})
        return {name: bytes(entry) for name, entry in entries.items()}

    def published(self) -> Iterator[Message]:
        """The committed assignments, oldest first."""
        length = self._snapshot.outputs.get(ASSIGNMENTS, 0) if self._snapshot else 0
        if not length or not (self._outputs / ASSIGNMENTS).exists():
            return
        with (self._outputs / ASSIGNMENTS).open("rb") as file:
            while length > 0 and (line := file.readline()):
                length -= len(line)
                yield Message(None, line.rstrip(b"\n"))

    def begin(self) -> None:
        """An archive takes no commits."""
        raise ConnectorError("an archive is only read.")

    def write(self, commits: Sequence[PartitionCommit]) -> None:  # noqa: ARG002
        """An archive takes no commits."""
        self.begin()

    save = finish = write

    def close(self) -> None:
        """Nothing is open."""


class FileOutlet(FileArchive):
    """The sink and the snapshot store of one process, which holds a lock on both folders.

    Args:
        outputs: the folder of assignments.jsonl and dead_letters.jsonl.
        snapshots: the folder of snapshot.json.
        failpoint: called between the steps.

    Raises:
        ConnectorError: another process writes there, or the outputs are of another life.
        SnapshotError: the snapshot cannot be read, or knows of more output than there is.
    """

    def __init__(self, outputs: Path, snapshots: Path, failpoint: Failpoint = no_failpoint) -> None:
        for folder in (outputs, snapshots):
            _make(folder)
        self._failpoint = failpoint
        self._locks = [_lock(folder / LOCK) for folder in dict.fromkeys((snapshots, outputs))]
        try:
            super().__init__(outputs, snapshots)
            self._partitions: dict[int, dict[str, msgspec.Raw]] = {}
            if self._snapshot is None:
                self._begin_afresh()
            else:
                self._partitions = {p: dict(e) for p, e in self._snapshot.partitions.items()}
            self._files = {name: self._open(name) for name in (ASSIGNMENTS, DEAD_LETTERS)}
        except BaseException:
            self._unlock()
            raise

    def _begin_afresh(self) -> None:
        """Write an empty snapshot first: then outputs without a snapshot are always another's."""
        for name in (ASSIGNMENTS, DEAD_LETTERS):
            path = self._outputs / name
            if path.exists() and path.stat().st_size:
                raise ConnectorError(
                    f"{path} holds the outputs of an earlier run, but {self._path} with its "
                    f"snapshot is missing; move one away or bring the other back."
                )
        self._replace_snapshot(SnapshotFile({ASSIGNMENTS: 0, DEAD_LETTERS: 0}, {}))

    def _open(self, name: str) -> IO[bytes]:
        """An output, cut back to what the snapshot knows of it."""
        assert self._snapshot is not None
        path, length = self._outputs / name, self._snapshot.outputs.get(name, 0)
        file = path.open("ab", buffering=0)
        size = file.tell()
        if size < length:
            file.close()
            raise SnapshotError(
                f"{path} has {size} bytes, but the snapshot knows of {length}; bring the file "
                f"back, or move the snapshots away to start afresh."
            )
        if size > length:
            file.truncate(length)
            file.seek(length)
        return file

    def begin(self) -> None:
        """Nothing: the rename is the whole commit."""

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        """Append the outputs and force them to the disk."""
        try:
            for commit in commits:
                self._append(ASSIGNMENTS, commit.assignments)
            self._failpoint("files: assignments appended")
            for commit in commits:
                self._append(DEAD_LETTERS, commit.dead_letters)
            self._failpoint("files: outputs appended")
            for file in self._files.values():
                os.fsync(file.fileno())
        except OSError as error:
            raise _unwritable(self._outputs, error) from error

    def _append(self, name: str, messages: Sequence[Message]) -> None:
        if messages:
            text = memoryview(b"\n".join([*(message.value for message in messages), b""]))
            while text:  # an unbuffered file may take less than it is given
                text = text[self._files[name].write(text) :]

    def save(self, commits: Sequence[PartitionCommit]) -> None:
        """Write the snapshot beside the old one and rename it: the commit."""
        for commit in commits:
            entries = self._partitions.setdefault(commit.partition, {})
            entries.update({name: msgspec.Raw(entry) for name, entry in commit.entries.items()})
        lengths = {name: file.tell() for name, file in self._files.items()}
        try:
            self._replace_snapshot(SnapshotFile(lengths, self._partitions))
        except OSError as error:
            raise _unwritable(self._path.parent, error) from error

    def _replace_snapshot(self, snapshot: SnapshotFile) -> None:
        beside = self._path.with_suffix(".new")
        with beside.open("wb") as file:
            file.write(msgspec.json.encode(snapshot))
            file.flush()
            self._failpoint("files: snapshot written")
            os.fsync(file.fileno())
        self._failpoint("files: snapshot synced")
        beside.replace(self._path)
        self._failpoint("files: snapshot renamed")
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the rename itself survives a power cut
        finally:
            os.close(folder)
        self._snapshot = snapshot

    def finish(self, commits: Sequence[PartitionCommit]) -> None:
        """Nothing: the offsets stand in the snapshot."""

    def close(self) -> None:
        """Close the outputs and give up the lock."""
        for file in self._files.values():
            file.close()
        self._unlock()

    def _unlock(self) -> None:
        for lock in self._locks:
            lock.close()


def read_snapshot(path: Path) -> SnapshotFile | None:
    """The snapshot file, or None when there is none.

    Raises:
        SnapshotError: it cannot be read.
    """
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SnapshotError(f"the snapshot {path} cannot be read: {error.strerror}.") from error
    try:
        snapshot = msgspec.json.decode(text, type=SnapshotFile)
    except msgspec.DecodeError as error:
        raise SnapshotError(f"the snapshot {path} cannot be read: {error}.") from None
    if snapshot.format != FORMAT:
        raise SnapshotError(
            f"the snapshot {path} has format {snapshot.format}; this program reads {FORMAT}."
        )
    return snapshot


def _unwritable(folder: Path, error: OSError) -> ConnectorError:
    return ConnectorError(
        f"{folder} cannot be written to: {error.strerror}; the last commit stays in force, and "
        f"the next start goes on from it."
    )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConnectorError(f"the folder {folder} cannot be made: {error.strerror}.") from error


def _lock(path: Path) -> IO[str]:
    try:
        file = path.open("w")
    except OSError as error:
        raise ConnectorError(f"{path.parent} cannot be written to: {error.strerror}.") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ConnectorError(
            f"another streamduel writes to {path.parent}; each needs folders of its own for its "
            f"outputs and its snapshots."
        ) from None
    return file

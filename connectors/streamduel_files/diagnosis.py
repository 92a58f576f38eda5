"""Checks of the files and folders, for `streamduel doctor`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from streamduel.diagnosis import Diagnosis, Finding
from streamduel.errors import SnapshotError, StreamduelError, shortened
from streamduel_files.outlet import (
    ASSIGNMENTS,
    DEAD_LETTERS,
    LOCK,
    SNAPSHOT,
    check_outputs,
    read_snapshot,
)
from streamduel_files.settings import (
    STANDARD_INPUT,
    FileSinkSettings,
    FileSnapshotSettings,
    FileSourceSettings,
)

MAX_PATH: Final = 200
"""Characters of a path that cannot be examined, in a sentence."""


def diagnose(
    source: FileSourceSettings, sink: FileSinkSettings, snapshots: FileSnapshotSettings
) -> Diagnosis:
    """Check that the click log can be read and the folders written."""
    return Diagnosis(
        [
            *_examined("source.path", source.path, _log),
            *_examined("sink.path", sink.path, _folder),
            *_examined("snapshots.path", snapshots.path, _folder),
            *_outputs(sink.path, snapshots.path / SNAPSHOT),
        ]
    )


def _examined(
    name: str, path: Path, examine: Callable[[str, Path], Iterator[Finding]]
) -> Iterator[Finding]:
    try:
        yield from examine(name, path)
    except OSError as error:  # such as a folder above it that this user may not search
        sentence = f"{shortened(str(path), MAX_PATH)} cannot be examined: {error.strerror}."
        yield Finding(name, "failed", sentence)


def _log(name: str, path: Path) -> Iterator[Finding]:
    if path == STANDARD_INPUT:
        yield Finding(name, "unknown", "the click log comes from standard input.")
    elif not path.exists():
        yield Finding(name, "failed", f"{path} does not exist; create it, or correct source.path.")
    elif not os.access(path, os.R_OK) or not path.is_file():
        yield Finding(name, "failed", f"{path} cannot be read as a file by this user.")
    elif path.stat().st_size == 0:
        yield Finding(name, "warning", f"{path} is empty; do the ranker services write to it?")
    else:
        yield Finding(name, "fine", f"{path} can be read.")


def _folder(name: str, folder: Path) -> Iterator[Finding]:
    found = (it for it in (folder, *folder.absolute().parents) if it.exists() or it.is_symlink())
    existing = next(found)
    if not existing.is_dir():
        yield Finding(name, "failed", f"{existing} is not a directory.")
    elif not os.access(existing, os.W_OK | os.X_OK):
        yield Finding(name, "failed", f"this user may not write to {existing}.")
    elif file := next(filter(_closed, map(folder.joinpath, (ASSIGNMENTS, DEAD_LETTERS, LOCK))), ""):
        yield Finding(name, "failed", f"{file} cannot be written as a file by this user.")
    else:
        made = "" if existing == folder else "; `streamduel run` creates it"
        yield Finding(name, "fine", f"{folder} can be written{made}.")


def _outputs(outputs: Path, path: Path) -> Iterator[Finding]:
    """Whether a start would refuse the outputs."""
    try:
        found = read_snapshot(path)
    except SnapshotError:
        return  # the check of the snapshots tells it
    try:
        check_outputs(outputs, path, found)
    except OSError:
        return  # the check of the folder tells it
    except StreamduelError as error:
        yield Finding("outputs", "failed", str(error))


def _closed(file: Path) -> bool:
    return file.exists() and not (file.is_file() and os.access(file, os.W_OK))

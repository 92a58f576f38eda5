"""Appends one record to a click log to which other programs write, too."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Final

from filelock import lock_descriptor

from streamduel.errors import ConfigurationError, ConnectorError, UncertainError
from streamduel_files.settings import STANDARD_INPUT

LOCK_SECONDS: Final = 5.0
"""Other commands hold the lock for some milliseconds."""

RETRY_SECONDS: Final = 0.05


def append_line(path: Path, value: bytes) -> str:
    """Append a line; it is on the disk when this returns.

    Returns:
        The file's path.

    Raises:
        ConfigurationError: no record can be appended to this kind of source.
        ConnectorError: nothing was written.
        UncertainError: whether the line reached the disk is unknown.
    """
    if b"\n" in value:
        raise ValueError("a line must not contain a newline")
    if path == STANDARD_INPUT or path.suffix == ".gz":
        what = "standard input" if path == STANDARD_INPUT else f"the compressed file {path}"
        raise ConfigurationError(f"source.path is {what}, to which no record can be added.")
    try:
        # Checked first: opening creates a missing file, which is more likely a mistaken path than
        # an empty click log, and waits at a pipe without a reader.
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # to open a folder fails below
            raise ConfigurationError(
                f"source.path {path} is not a regular file, so no record can be added to it."
            )
        file = path.open("ab+", buffering=0)
    except OSError as error:
        raise _unwritable(path, error) from error
    with file:  # closing it releases the lock
        _lock(file.fileno(), path)
        _write_line(file.fileno(), path, value)
    return str(path)


def _lock(file: int, path: Path) -> None:
    """Exclude other commands: two of them could both add a missing last newline."""
    deadline = time.monotonic() + LOCK_SECONDS
    try:
        while not lock_descriptor(file, blocking=False):
            if time.monotonic() > deadline:
                raise ConnectorError(
                    f"source.path {path} is locked by another program; nothing was written."
                )
            time.sleep(RETRY_SECONDS)
    except OSError as error:
        raise _unwritable(path, error) from error


def _write_line(file: int, path: Path, value: bytes) -> None:
    try:
        size = os.lseek(file, 0, os.SEEK_END)
        os.lseek(file, max(0, size - 1), os.SEEK_SET)
        complete = os.read(file, 1) in {b"", b"\n"}
        line = value + b"\n" if complete else b"\n" + value + b"\n"
        # One call in append mode: no other writer's bytes can end up inside the line.
        written = os.write(file, line)
    except OSError as error:
        raise _unwritable(path, error) from error
    if written < len(line):
        raise ConnectorError(
            f"source.path {path} took {written} of {len(line)} bytes; is the disk full? "
            f"What it took is a broken line, which becomes a dead letter."
        )
    try:
        os.fsync(file)
    except OSError as error:
        raise UncertainError(
            f"source.path {path} could not be forced to the disk: {error.strerror}."
        ) from error


def _unwritable(path: Path, error: OSError) -> ConnectorError:
    return ConnectorError(
        f"source.path {path} cannot be written to: {error.strerror}; nothing was written."
    )

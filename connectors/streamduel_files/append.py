"""Adding one line to a click log that other programs write to as well."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from pathlib import Path
from typing import Final

from streamduel.errors import ConfigurationError, ConnectorError, UncertainError
from streamduel_files.settings import STANDARD_INPUT

LOCK_SECONDS: Final = 5.0
"""Other commands hold the lock for some milliseconds."""

RETRY_SECONDS: Final = 0.05


def append(path: Path, value: bytes) -> str:
    """Add a line, on the disk when this returns; the file's path.

    Raises:
        ConfigurationError: what the configuration names cannot be added to.
        ConnectorError: nothing was written.
        UncertainError: perhaps it was.
    """
    if b"\n" in value:
        raise ValueError("a line has no newline in it")
    if path == STANDARD_INPUT or path.suffix == ".gz":
        what = "standard input" if path == STANDARD_INPUT else f"the compressed file {path}"
        raise ConfigurationError(f"source.path is {what}, to which no record can be added.")
    try:
        # O_NONBLOCK: to open a pipe that nobody reads must not hang. There is no O_CREAT: a log
        # that is not there is more likely a mistaken path than an empty one.
        file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ConfigurationError(
                f"source.path {path} is no regular file, so no record can be added to it."
            )
        _lock(file, path)
        _write_line(file, path, value)
    finally:
        os.close(file)  # the lock goes with it
    return str(path)


def _lock(file: int, path: Path) -> None:
    """Keep other commands out: two that both miss the last newline would both add one."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise ConnectorError(
                    f"source.path {path} is locked by another program; nothing was written."
                ) from None
            time.sleep(RETRY_SECONDS)
        except OSError as error:
            raise _unwritable(path, error) from error
        else:
            return


def _write_line(file: int, path: Path, value: bytes) -> None:
    try:
        size = os.fstat(file).st_size
        whole = size == 0 or os.pread(file, 1, size - 1) == b"\n"
        line = value + b"\n" if whole else b"\n" + value + b"\n"
        # One call: with O_APPEND no other writer's bytes come in between.
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

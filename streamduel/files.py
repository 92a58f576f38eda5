"""Atomic writes of the files that commands write, and early checks that they can be written."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any, Literal

from streamduel.errors import StreamduelError

Kind = Literal["a file", "a directory", "a device or a pipe", "nothing"]


def kind(path: Path) -> Kind:
    """The kind of a path, symbolic links followed; "nothing" also where permission is missing.

    >>> kind(Path("/")), kind(Path("/dev/null")), kind(Path("/no/such/file"))
    ('a directory', 'a device or a pipe', 'nothing')
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return "nothing"
    if stat.S_ISREG(mode):
        return "a file"
    return "a directory" if stat.S_ISDIR(mode) else "a device or a pipe"


def identity(path: Path) -> Path:
    """A path that is equal for all names of one file, whether the file exists or not."""
    return Path(os.path.realpath(path))


def obstacle(path: Path) -> str:
    """Why `write_whole` could not write a file, or an empty string.

    A disk that fills up later cannot be foreseen.
    """
    try:
        if kind(path) == "a device or a pipe":  # opening a pipe would wait for a reader
            return "" if os.access(path, os.W_OK) else "Permission denied"
        beside = _beside(path)
        beside.open("wb").close()
        beside.unlink()
    except OSError as error:
        return reason(error)
    return ""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: to a temporary file beside it, then one rename.

    An existing file is replaced, and keeps its permissions; a device or a pipe is written to
    directly.

    Raises:
        StreamduelError: the file cannot be written; an existing file is unchanged.
    """
    try:
        if kind(path) == "a device or a pipe":  # must not be replaced
            path.write_bytes(content)
            return
        beside = _beside(path)
        try:
            with beside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                shutil.copymode(path, beside)
            beside.replace(identity(path))
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise StreamduelError(f"'{path}' cannot be written ({reason(error)}).") from error


def write_json(path: Path, report: dict[str, Any]) -> None:
    """Write a report as JSON, as `write_whole` does.

    Raises:
        StreamduelError: the file cannot be written.
    """
    text = json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(path, text.encode())


def _beside(path: Path) -> Path:
    """A temporary name of this process in the directory of the file.

    Symbolic links are followed, so a link such as /dev/stdout stays a link.
    """
    target = identity(path)
    return target.with_name(f".{target.name}.{os.getpid()}")


def reason(error: OSError) -> str:
    """The operating system's message."""
    return error.strerror or str(error) or type(error).__name__

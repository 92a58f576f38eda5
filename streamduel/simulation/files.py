"""Files that a simulation writes: whole or not at all, and refused early if they cannot be."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

from streamduel.errors import StreamduelError

Kind = Literal["a file", "a directory", "a device or a pipe", "nothing"]


def kind(path: Path) -> Kind:
    """What there is of this name, symbolic links followed; nothing, too, where nobody may look.

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
    """The same for all names of one file, whether it is there or not."""
    return Path(os.path.realpath(path))


def obstacle(path: Path) -> str:
    """Why `write_whole` could not write a file, or an empty string; leaves nothing behind.

    Args:
        path: of the file. Whether a disk will be full, nobody can say beforehand.
    """
    try:
        if kind(path) == "a device or a pipe":  # to open a pipe would wait for who reads it
            return "" if os.access(path, os.W_OK) else "Permission denied"
        beside = _beside(path)
        beside.open("wb").close()
        beside.unlink()
    except OSError as error:
        return reason(error)
    return ""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: beside it first, then one rename.

    Args:
        path: an existing file is replaced; a device or a pipe is written to.
        content: of the file.

    Raises:
        StreamduelError: it cannot be written; what was there is as it was.
    """
    try:
        if kind(path) == "a device or a pipe":  # which nothing may replace
            path.write_bytes(content)
            return
        beside = _beside(path)
        try:
            with beside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(identity(path))
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise StreamduelError(f"'{path}' cannot be written ({reason(error)}).") from error


def _beside(path: Path) -> Path:
    """A name of this process's own in the folder where the file really is.

    A link such as /dev/stdout must stay one, so it is the file it names that is replaced.
    """
    target = identity(path)
    return target.with_name(f".{target.name}.{os.getpid()}")


def reason(error: OSError) -> str:
    """What went wrong, as the operating system says it."""
    return error.strerror or str(error) or type(error).__name__

"""Assignments from a file: the one that streamduel's files connector writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from streamduel.client.feed import News

CHUNK_BYTES: Final = 1 << 20
"""Read at a time: some thousand assignments."""


class FileFeed:
    """Follows a file of assignment records, one per line, as it grows.

    Args:
        path: the file; it need not be there yet.
    """

    every = 1.0  # seconds: people who try things out do not wait longer; a look costs nothing

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._file: tuple[int, int] | None = None  # which file it was
        self._read = 0  # bytes of it
        self._rest = b""  # of a line whose end has not been written yet

    def poll(self) -> Iterator[News]:
        """The lines that are new; all of them if the file was replaced or cut short.

        Raises:
            OSError: it cannot be read.
        """
        with self._path.open("rb") as file:
            status = os.fstat(file.fileno())
            if self._file != (status.st_dev, status.st_ino) or status.st_size < self._read:
                self._file, self._read, self._rest = (status.st_dev, status.st_ino), 0, b""
            file.seek(self._read)
            while chunk := file.read(CHUNK_BYTES):
                self._read += len(chunk)
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                for line in lines:
                    yield News(line, status.st_mtime)

    def close(self) -> None:
        """Nothing to let go of: the file is open only while it is read."""

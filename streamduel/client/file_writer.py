"""Writing the click log to a file: to try things without Kafka."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from streamduel.client.outbox import Message, Written
from streamduel.errors import ClientError


class FileWriter:
    """Appends records as lines, as the files connector reads them.

    Several processes may write to one file: each hands over whole lines in one call. The lines are
    the operating system's to put on the disk, so a power cut may take the last seconds of them.

    Args:
        path: the file; made if it is not there.

    Raises:
        ClientError: it cannot be opened.
    """

    def __init__(self, path: str | Path) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            self._file = os.open(path, flags, 0o644)
        except OSError as error:
            raise ClientError(f"the file {path} cannot be written to: {error.strerror}.") from None

    def write(self, messages: Sequence[Message]) -> Written:
        """Append these; what a full disk has cut off is to be tried again, on a line of its own.

        Raises:
            OSError: none of them is written.
        """
        size = os.fstat(self._file).st_size
        torn = size > 0 and os.pread(self._file, 1, size - 1) != b"\n"
        text = b"\n" * torn + b"".join(message.value + b"\n" for message in messages)
        written = os.write(self._file, text)
        return Written(messages[text.count(b"\n", 0, written) - torn :])

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

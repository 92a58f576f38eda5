"""Reading a click log from a file or standard input: one partition, offsets are line numbers."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import math
import os
import select
import stat
import sys
import time
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Final, NamedTuple

import structlog

from streamduel.connector import Poll
from streamduel.errors import ConnectorError, counted
from streamduel.records import Rejected
from streamduel_files.settings import STANDARD_INPUT

log = structlog.stdlib.get_logger(__name__)

CHUNK_BYTES: Final = 1 << 20
"""Size of a read: some thousand records, so that a poll is short and the fold gets a batch."""

MAX_LINE_BYTES: Final = 1 << 24
"""The largest `limits.max_record_bytes`. Of a longer line only the beginning is kept, so that a
file without newlines does not fill memory."""

KEPT_BYTES: Final = 1 << 17
"""Bytes of such a line for its dead letter, which keeps no more of any record."""

COUNTED_CHUNKS: Final = 64
"""Most chunks whose lines one call of `lags` counts for a service: some 30 ms of the fold's thread.
A longer file is counted over several calls."""

WATCH_SECONDS: Final = 0.05
"""Interval of reads at the end of a file, and so the longest delay of a new line."""

SEEK_SECONDS: Final = 1.0
"""How long `seek` of a service counts lines, some 2 GB from memory; `poll` counts the others, so
that a slow disk or a pipe delays neither a stop nor `/healthz`."""

PARTITION: Final = 0

RESTORE: Final = (
    "a click log may only grow. Restore it; or continue with the present state from the beginning "
    "of the new file: 'streamduel repair new-log CONFIG'."
)


class Line(NamedTuple):
    """One line of the log. `timestamp` None: stream time comes from the record's own `ts`."""

    offset: int
    value: bytes | Rejected
    timestamp: None = None
    key: None = None


def _hashed(line: bytes | bytearray) -> str | None:
    """The log id; None if the line is not complete."""
    if line.endswith(b"\n") or len(line) == MAX_LINE_BYTES:
        return f"first line {hashlib.sha256(line).hexdigest()[:16]}"
    return None


class FileSource:
    """A click log in a file: plain text is followed as it grows, `.gz` and `-` end at their end.

    Args:
        path: the file, or `-`.
        to_end: read up to the end at the time of `seek` only; a last line without a newline is then
            complete.
        serves: `lags` and `seek` return quickly: `lags` does not know the end of a large file at
            first, and a truncation that `seek` has not found yet is an error of `poll`.

    Raises:
        ConnectorError: the file cannot be opened.
    """

    partitions = 1
    connected = True

    def __init__(self, path: Path, *, to_end: bool, serves: bool = True) -> None:
        self.topic = "stdin" if path == STANDARD_INPUT else path.name
        self._path = path
        self._grows = path != STANDARD_INPUT and path.suffix != ".gz"
        self._file = self._open()
        self._to_end = to_end
        self._end: int | None = None  # bytes of the file at the time of `seek`
        self._counted_lines = self._counted_bytes = 0
        self._counted_chunks = COUNTED_CHUNKS if serves else sys.maxsize
        self._seek_seconds = SEEK_SECONDS if serves else math.inf
        self._announced = self._positioned = False
        self._lost: list[int] = []
        self._first_line: str | None = None
        self._beginning = bytearray()  # of standard input, up to the end of its first line
        self._reset()

    def _reset(self) -> None:
        self._wanted = 0  # the first line to deliver
        self._lines = 0  # lines read
        self._bytes = 0  # bytes of the file read
        self._ahead = b""  # read from the file, not yet split into lines
        self._rest = bytearray()  # the beginning of a line whose newline was not read yet
        self._rest_size = 0  # bytes of that line, also those that are not kept
        self._open_line = False  # the last line that was skipped has no newline yet
        self._cut_off = False  # the line before was delivered without its newline
        self._at_end = False  # the last read returned nothing
        self._ended = False

    def _open(self, *, by_line: bool = False) -> IO[bytes] | gzip.GzipFile:
        if self._path == STANDARD_INPUT:
            if sys.stdin is None:
                raise ConnectorError("source.path is '-', but there is no standard input.")
            return sys.stdin.buffer
        try:
            mode = self._path.stat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # to open a folder fails below
                raise ConnectorError(
                    f"source.path {self._path} is not a regular file; '-' reads standard input."
                )
            if self._path.suffix == ".gz":
                return gzip.open(self._path)
            # Without a buffer, `readline` reads byte by byte.
            return self._path.open("rb", buffering=CHUNK_BYTES if by_line else 0)
        except OSError as error:
            raise ConnectorError(
                f"source.path {self._path} cannot be read: {error.strerror}."
            ) from error

    def home(self, experiment: str) -> int:  # noqa: ARG002 - a file has one partition
        """Every experiment's home: the only partition."""
        return PARTITION

    def log_id(self, partition: int) -> str | None:  # noqa: ARG002 - there is one
        """The hash of the first line, or of its first 16 MiB, which a copy of the file has, too.

        None as long as it has no complete line; that of standard input is known once it was read.
        """
        if self._first_line is None and self._path != STANDARD_INPUT and self._path.is_file():
            self._first_line = self._hashed_first_line()
        return self._first_line

    def _hashed_first_line(self) -> str | None:
        try:
            with self._open(by_line=True) as file:
                line = file.readline(MAX_LINE_BYTES)
        except (OSError, EOFError, zlib.error) as error:
            raise ConnectorError(f"source.path {self._path} cannot be read: {error}.") from error
        return _hashed(line)

    def _note_beginning(self, found: bytes) -> None:
        """Keep the first line of standard input, which cannot be opened again to read it."""
        line = found[: found.find(b"\n") + 1] or found
        self._beginning += line[: MAX_LINE_BYTES - len(self._beginning)]
        self._first_line = _hashed(self._beginning)

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        """The lines of the next chunk of the file."""
        poll = Poll() if hold else self._poll(timeout)  # a file has one possible owner
        over = self._path == STANDARD_INPUT and not self._to_end and self.caught_up(PARTITION)
        return replace(poll, unreadable="standard input has ended") if over else poll

    def _poll(self, timeout: float) -> Poll:
        if not self._announced:
            self._announced = True
            lost, self._lost = self._lost, []
            return Poll(lost=lost, gained=[PARTITION])
        if not self._positioned:
            time.sleep(min(timeout, WATCH_SECONDS))
            return Poll()
        deadline = time.monotonic() + timeout
        if not self._skipped(deadline):
            return Poll()
        lines = self._read()
        while not lines and (wait := deadline - time.monotonic()) > 0:
            if self._at_end:
                self._wait(min(WATCH_SECONDS, wait))
            lines = self._read()
        return Poll(records={PARTITION: lines} if lines else {})

    def _read(self) -> list[Line]:
        """The complete lines of the next chunk."""
        chunk = self._chunk()
        if not chunk:
            return self._last_line()
        *texts, rest = chunk.split(b"\n")
        lines: list[bytes | Rejected] = [*texts]
        if lines:
            self._extend(texts[0])
            lines[0] = self._completed()
        self._extend(rest)
        if self._cut_off and lines:
            self._cut_off = False
            lines.pop(0)  # the rest of a line that was delivered without its newline
        first, self._lines = self._lines, self._lines + len(lines)
        return [Line(offset, value) for offset, value in enumerate(lines, first)]

    def _extend(self, text: bytes) -> None:
        """Add a part of a line to those that were read before."""
        self._rest_size += len(text)
        self._rest += text[: MAX_LINE_BYTES - len(self._rest)]

    def _completed(self) -> bytes | Rejected:
        """The line that was read in parts."""
        line, size = bytes(self._rest), self._rest_size
        self._rest.clear()
        self._rest_size = 0
        if self._lines == 0:  # a mark of UTF-8 at the beginning of the file is no part of it
            line = line.removeprefix(codecs.BOM_UTF8)
        if size <= MAX_LINE_BYTES:
            return line
        return Rejected(
            "too_large",
            f"the line has {size} bytes; limits.max_record_bytes allows at most {MAX_LINE_BYTES}.",
            beginning=line[:KEPT_BYTES],
            size=size,
        )

    def _chunk(self) -> bytes:
        if self._ahead:
            chunk, self._ahead = self._ahead, b""
            return chunk
        wanted = CHUNK_BYTES if self._end is None else min(CHUNK_BYTES, self._end - self._bytes)
        try:
            found = self._from_file(wanted) if wanted else b""
        except (OSError, EOFError, zlib.error) as error:
            raise ConnectorError(f"source.path {self._path} cannot be read: {error}.") from error
        grown, self._at_end = self._at_end and bool(found), not found
        if found is None:  # an empty pipe
            return b""
        known = self._first_line
        if self._path == STANDARD_INPUT:
            if known is None:
                self._note_beginning(found)
        elif grown and known is not None and known != self._hashed_first_line():
            raise ConnectorError(f"source.path {self._path} was written again; {RESTORE}")
        if not found:
            self._ended = self._end is not None or not self._grows
            if wanted and self._grows:
                self._check_in_place()
        self._bytes += len(found)
        return found

    def _from_file(self, wanted: int) -> bytes | None:
        """Read without waiting; None from an empty pipe, b"" at the end."""
        if self._path != STANDARD_INPUT:
            return self._file.read(wanted)
        # Not with the buffered reader: it waits for all wanted bytes, and no signal ends that.
        ready, _, _ = select.select([self._file], [], [], 0)
        return os.read(self._file.fileno(), wanted) if ready else None

    def _last_line(self) -> list[Line]:
        """At the end: the last line, if it has no newline and counts as complete."""
        if not (self._ended and self._rest):
            return []
        line = Line(self._lines, self._completed())
        self._lines += 1
        self._cut_off = True
        return [line]

    def _check_in_place(self) -> None:
        """Check that the file was neither truncated nor replaced."""
        try:
            there, here = self._path.stat(), os.fstat(self._file.fileno())
        except OSError as error:
            raise ConnectorError(f"source.path {self._path} is gone: {error.strerror}.") from error
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            raise ConnectorError(
                f"source.path {self._path} was replaced by another file; {RESTORE}"
            )
        if there.st_size < (self._end or self._bytes):
            raise ConnectorError(
                f"source.path {self._path} was truncated to {there.st_size} bytes, of which "
                f"{self._bytes} were read already; {RESTORE}"
            )

    def seek(self, partition: int, offset: int | None) -> int:  # noqa: ARG002 - there is one
        """Deliver from this line on; the file is read from its beginning to count lines."""
        self._rewind()
        self._wanted = offset or 0
        self._end = os.fstat(self._file.fileno()).st_size if self._grows and self._to_end else None
        if not self._skipped(time.monotonic() + self._seek_seconds):
            log.warning(
                "position delayed", topic=self.topic, offset=self._wanted,
                advice="the lines before this offset are skipped, which takes longer than usual; "
                "standard input must repeat them",
            )  # fmt: skip
        self._positioned = True
        return self._wanted

    def _skipped(self, deadline: float) -> bool:
        """Skip lines before the wanted one, at least a chunk; False if some are left."""
        while self._lines < self._wanted:
            chunk = self._chunk()
            if chunk:
                self._skip(chunk)
            elif self._ended or self._grows:
                self._end_skipping()
            if self._lines < self._wanted:
                wait = deadline - time.monotonic()
                if wait <= 0:
                    return False
                if not chunk:  # a pipe that has not repeated them yet
                    self._wait(min(WATCH_SECONDS, wait))
        return True

    def _wait(self, seconds: float) -> None:
        """Wait for more; a pipe holds 64 KiB, so its writer waits, too."""
        if self._path == STANDARD_INPUT and not self._ended:
            select.select([self._file], [], [], seconds)
        else:
            time.sleep(seconds)

    def _skip(self, chunk: bytes) -> None:
        lines, left = chunk.count(b"\n"), self._wanted - self._lines
        self._open_line = not chunk.endswith(b"\n")
        if lines >= left:
            self._ahead = chunk.split(b"\n", left)[-1]
        self._lines += min(lines, left)

    def _end_skipping(self) -> None:
        """At the end: only a last line without its newline may be left to skip."""
        if not (self._open_line and self._lines == self._wanted - 1):
            name, restore = f"source.path {self._path}", "it was truncated. Restore it"
            if self._path == STANDARD_INPUT:
                name, restore = "standard input", "repeat the click log from its first line"
            raise ConnectorError(
                f"{name} has {counted(self._lines, 'line')}, but a restart reads it again from "
                f"line {self._wanted + 1} on: {restore}; or continue with the present state from "
                f"its beginning: 'streamduel repair new-log CONFIG'."
            )
        self._lines, self._cut_off = self._wanted, True

    def _rewind(self) -> None:
        if self._bytes and self._path != STANDARD_INPUT:
            self._file.close()
            self._file = self._open()
        self._reset()

    def caught_up(self, partition: int) -> bool:  # noqa: ARG002 - there is one
        """Whether the end has been reached; an empty pipe has none before its writers close it."""
        at_end = self._at_end if self._grows else self._ended
        return at_end and not self._rest and not self._ahead

    def lags(self, partitions: Sequence[int]) -> dict[int, int]:
        """The lines not delivered yet; unknown for a compressed file and for standard input."""
        if not self._grows:
            return {}
        if self._bytes > self._counted_bytes:  # as after a restart far behind the beginning
            self._counted_bytes = self._bytes
            self._counted_lines = self._lines + self._ahead.count(b"\n") - self._cut_off
        try:
            with self._path.open("rb") as file:
                file.seek(self._counted_bytes)
                for _ in range(self._counted_chunks):
                    chunk = file.read(CHUNK_BYTES)
                    if not chunk:
                        lag = max(0, self._counted_lines - max(self._lines, self._wanted))
                        return dict.fromkeys(partitions, lag)
                    self._counted_bytes += len(chunk)
                    self._counted_lines += chunk.count(b"\n")
        except OSError:
            pass  # the next poll reports it
        return {}

    def stable_offset_lags(self, partitions: Sequence[int]) -> dict[int, int]:
        """0: a file has no transactions."""
        return dict.fromkeys(partitions, 0)

    def reannounce(self) -> None:
        """Report the partition as lost and gained at the next poll."""
        self._announced = self._positioned = False
        self._lost = [PARTITION]

    def close(self) -> None:
        """Close the file."""
        if self._path != STANDARD_INPUT:
            self._file.close()

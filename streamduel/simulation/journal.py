"""The journal: finished runs on disk, so that an interrupted simulation can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

import msgspec
from filelock import lock_descriptor

from streamduel.errors import ConfigurationError, StreamduelError
from streamduel.files import kind, reason
from streamduel.simulation.measurement import RunResult
from streamduel.simulation.settings import Settings

FORMAT: Final = 1

_BEGINNING: Final = b'{"journal": '
"""The first bytes of every journal; a file that begins differently is not a journal."""


class Journal:
    """A JSON Lines file: a header with the settings that results depend on, then a line per run.

    The header does not contain the policies nor the number of runs, because the result of a run
    depends on neither: a resumed simulation may have more policies or more runs.

    A last line cut off by a crash is dropped. A file that is refused is not changed. The file is
    locked while it is open.

    Args:
        path: of the file; created if it does not exist.
        settings: of the simulation.

    Raises:
        ConfigurationError: the file is not a journal, has other settings, is in use, or cannot be
            written.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self.path = path
        if (found := kind(path)) == "a device or a pipe":
            raise ConfigurationError(f"the journal '{path}' must be a file (found {found}).")
        try:
            # Unbuffered: bytes that a full disk refused must not be written again on closing.
            self._file = path.open("a+b", buffering=0)
        except OSError as error:
            raise ConfigurationError(
                f"the journal '{path}' cannot be written ({reason(error)})."
            ) from error
        try:
            if not lock_descriptor(self._file.fileno(), blocking=False):
                raise ConfigurationError(
                    f"the journal '{path}' is in use by another simulation; name another file with"
                    " --journal."
                )
            header = json.dumps({"journal": FORMAT, **settings.header()}).encode() + b"\n"
            self._runs = self._read(header, settings)
        except BaseException:
            self._file.close()
            raise

    def _read(self, header: bytes, settings: Settings) -> list[RunResult]:
        """Read the runs, and truncate the file after its last whole line."""
        text = self._text()
        # A crash may have cut off the header, too.
        if header.startswith(text):
            self._write(header[len(text) :])
            return []
        first, newline, rest = text.partition(b"\n")
        if not newline:
            raise self._not_a_journal()
        self._check_header(first, json.loads(header))
        *lines, tail = rest.split(b"\n")
        runs = [self._run(number, line, settings) for number, line in enumerate(lines, start=2)]
        self._file.truncate(len(text) - len(tail))
        return runs

    def _text(self) -> bytes:
        """The content of the file, which is empty or begins like a journal."""
        self._file.seek(0)
        beginning = self._file.read(len(_BEGINNING)) or b""
        if beginning not in {b"", _BEGINNING}:
            raise self._not_a_journal()
        return beginning + self._file.readall()

    def _not_a_journal(self) -> ConfigurationError:
        return ConfigurationError(
            f"'{self.path}' is not a journal of a simulation; name another file with --journal."
        )

    def _check_header(self, line: bytes, header: dict[str, Any]) -> None:
        """Refuse a line that is not this header."""
        try:
            found = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise self._not_a_journal() from None
        for key in [*header, *found]:
            if found.get(key) != header.get(key):
                raise ConfigurationError(
                    f"the journal '{self.path}' holds runs of other settings ({key} was"
                    f" {_shown(found.get(key))}, is {_shown(header.get(key))}); remove it to start"
                    " again, or name another file with --journal."
                )

    def _run(self, number: int, line: bytes, settings: Settings) -> RunResult:
        """The result on a line."""
        try:
            run = msgspec.json.decode(line, type=RunResult)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            run = None
        if run is None or not _fits(run, settings):
            raise ConfigurationError(
                f"line {number} of the journal '{self.path}' is damaged; remove the file to start"
                " again."
            )
        return run

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise StreamduelError(
                f"the journal '{self.path}' cannot be written ({reason(error)}); its finished runs"
                " are kept, and the same command resumes from there."
            ) from error

    def add(self, run: RunResult) -> None:
        """Append a finished run, which is not in the journal yet.

        Raises:
            StreamduelError: the file cannot be written; the runs before this one are kept.
        """
        self._write(msgspec.json.encode(run) + b"\n")

    def __iter__(self) -> Iterator[RunResult]:
        """The runs that were in the file when it was opened."""
        return iter(self._runs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _fits(run: RunResult, settings: Settings) -> bool:
    """Whether the result has what a run of these settings has."""
    has_answer = settings.until_sure is not None
    length = len(settings.checkpoints)
    return len(run.regret) == len(run.right) == length and (run.answer is not None) == has_answer


def _shown(value: object) -> str:
    """A setting as JSON, at most 40 characters."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

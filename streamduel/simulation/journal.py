"""The finished runs of a simulation on disk, so that an interrupted one can go on."""

from __future__ import annotations

import fcntl
import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from streamduel.errors import ConfigurationError, StreamduelError
from streamduel.simulation.files import kind, reason
from streamduel.simulation.measurement import RunResult
from streamduel.simulation.settings import Settings

FORMAT: Final = 1


_BEGINNING: Final = b'{"journal": '
"""Every journal begins so; what does not is somebody's own file."""


class Journal:
    """JSON Lines: a header with all that a run's result depends on, then a line for each run.

    The header does not say which policies are simulated nor how many runs, for the result of a run
    depends on neither: an interrupted simulation may go on with more policies or more runs.

    A last line that was cut off by a crash is dropped. A file that is refused stays as it was. The
    file is locked while it is open.

    Args:
        path: of the file; made if there is none.
        settings: what is simulated.

    Raises:
        ConfigurationError: the file is no journal, or one of other settings, or in use, or cannot
            be written.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self.path = path
        if (found := kind(path)) == "a device or a pipe":
            raise ConfigurationError(f"the journal '{path}' must be a file (found {found}).")
        try:
            # Without a buffer: what a full disk did not take must not be tried again on closing.
            self._file = path.open("a+b", buffering=0)
        except OSError as error:
            raise ConfigurationError(
                f"the journal '{path}' cannot be written ({reason(error)})."
            ) from error
        try:
            self._lock()
            header = _line({"journal": FORMAT, **settings.header()})
            self._runs = self._read(header, len(settings.checkpoints))
        except BaseException:
            self._file.close()
            raise

    def _lock(self) -> None:
        """Keep other simulations out until the file is closed."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigurationError(
                f"the journal '{self.path}' is in use by another simulation; name a file of its own"
                " with --journal."
            ) from None

    def _read(self, header: bytes, length: int) -> list[RunResult]:
        """The runs of the file, which is known to be a journal and ends after a line from here on.

        Only a journal's own last line is ever cut away, and only when all others are sound.
        """
        text = self._text()
        # A crash may have cut off even the header; only one that would be written again is taken
        # for that.
        if header.startswith(text):
            self._write(header[len(text) :])
            return []
        first, newline, rest = text.partition(b"\n")
        if not newline:
            raise self._no_journal()
        self._check_header(_decoded(first), _decoded(header))
        *lines, tail = rest.split(b"\n")
        runs = [self._run(number, line, length) for number, line in enumerate(lines, start=2)]
        self._file.truncate(len(text) - len(tail))
        return runs

    def _text(self) -> bytes:
        """All that is in the file, if it begins like a journal or is empty."""
        self._file.seek(0)
        beginning = self._file.read(len(_BEGINNING)) or b""
        if beginning not in {b"", _BEGINNING}:
            raise self._no_journal()
        return beginning + self._file.readall()

    def _no_journal(self) -> ConfigurationError:
        return ConfigurationError(
            f"'{self.path}' is no journal of a simulation; name another file with --journal."
        )

    def _check_header(self, found: dict[str, Any], header: dict[str, Any]) -> None:
        """Refuse a file that is no journal, or that has another header."""
        if "journal" not in found:
            raise self._no_journal()
        for key in [*header, *found]:
            if found.get(key) != header.get(key):
                raise ConfigurationError(
                    f"the journal '{self.path}' holds runs of other settings ({key} was"
                    f" {_shown(found.get(key))}, is {_shown(header.get(key))}); remove it to begin"
                    " anew, or name another file with --journal."
                )

    def _run(self, number: int, line: bytes, length: int) -> RunResult:
        """A run from its line."""
        with suppress(TypeError):  # other fields than those of a run
            run = RunResult(**_decoded(line))
            if _is_sound(run, length):
                return run
        raise ConfigurationError(
            f"line {number} of the journal '{self.path}' is damaged; remove the file to begin anew."
        )

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            raise StreamduelError(
                f"the journal '{self.path}' cannot be written ({reason(error)}); the runs that it"
                " holds are kept, and the same command goes on from there."
            ) from error

    def add(self, run: RunResult) -> None:
        """Write a finished run down.

        Args:
            run: one that is not in the journal yet.

        Raises:
            StreamduelError: it cannot be written; the runs before it are kept.
        """
        self._write(_line(asdict(run)))

    def __iter__(self) -> Iterator[RunResult]:
        """The runs that were in the file when it was opened."""
        return iter(self._runs)

    def remove(self) -> None:
        """Delete the file: the simulation is finished, and its results are safe."""
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record).encode() + b"\n"


def _is_sound(run: RunResult, length: int) -> bool:
    """Whether each field of a run that was read has its type, and each list its length."""
    return (
        type(run.name) is str
        and isinstance(run.params, dict)
        and type(run.run) is int
        and run.run >= 0
        and _is_list(run.regret, length, _is_amount)
        and _is_list(run.right, length, lambda value: type(value) is bool)
        and _is_amount(run.seconds)
    )


def _is_list(value: object, length: int, is_right: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and len(value) == length and all(map(is_right, value))


def _is_amount(value: object) -> bool:
    """Whether it is a finite number from 0; JSON as Python reads it has NaN and infinity too."""
    return type(value) is float and 0 <= value < math.inf


def _decoded(line: bytes) -> dict[str, Any]:
    """A line's object, or an empty one if it is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _shown(value: object) -> str:
    """A setting in a few words."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

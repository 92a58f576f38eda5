"""The finished runs of a simulation on disk, so that an interrupted one can go on."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from streamduel.errors import ConfigurationError
from streamduel.simulation.play import Run
from streamduel.simulation.settings import Settings

FORMAT: Final = 1


class Journal:
    """JSON Lines: a header with all that a run's result depends on, then a line for each run.

    The header does not say which policies are simulated nor how many runs, for the result of a run
    depends on neither: an interrupted simulation may go on with more policies or more runs.

    A last line that was cut off by a crash is dropped. The file is locked while it is open.

    Args:
        path: of the file; made if there is none.
        settings: what is simulated.

    Raises:
        ConfigurationError: the file is no journal, or one of other settings, or in use, or cannot
            be written.
    """

    def __init__(self, path: Path, settings: Settings) -> None:
        self.path = path
        try:
            self._file = path.open("a+b")
        except OSError as error:
            raise ConfigurationError(
                f"the journal '{path}' cannot be written ({error.strerror})."
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise ConfigurationError(
                f"the journal '{path}' is in use by another simulation; name a file of its own"
                " with --journal."
            ) from None
        try:
            self._runs = self._read(
                {"journal": FORMAT, **settings.header()}, len(settings.checkpoints)
            )
        except BaseException:
            self._file.close()
            raise

    def _read(self, header: dict[str, Any], length: int) -> list[Run]:
        """The runs of the file, which ends after the last whole line from here on."""
        self._file.seek(0)
        whole, _, _ = self._file.read().rpartition(b"\n")
        lines = whole.splitlines()
        self._file.truncate(len(whole) + 1 if whole else 0)
        if not lines:
            self._write(header)
            return []
        self._check_header(lines[0], header)
        return [self._run(number, line, length) for number, line in enumerate(lines[1:], start=2)]

    def _check_header(self, line: bytes, header: dict[str, Any]) -> None:
        """Refuse a file that is no journal, or that has another header."""
        found = _decoded(line)
        if "journal" not in found:
            raise ConfigurationError(
                f"'{self.path}' is no journal of a simulation; name another file with --journal."
            )
        for key in [*header, *found]:
            if found.get(key) != header.get(key):
                raise ConfigurationError(
                    f"the journal '{self.path}' holds runs of other settings ({key} was"
                    f" {_shown(found.get(key))}, is {_shown(header.get(key))}); remove it to begin"
                    " anew, or name another file with --journal."
                )

    def _run(self, number: int, line: bytes, length: int) -> Run:
        """A run from its line."""
        try:
            run = Run(**_decoded(line))
            is_sound = len(run.regret) == len(run.right) == length
        except TypeError:
            is_sound = False
        if not is_sound:
            raise ConfigurationError(
                f"line {number} of the journal '{self.path}' is damaged; remove the file to begin"
                " anew."
            )
        return run

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record).encode() + b"\n")
        self._file.flush()

    def add(self, run: Run) -> None:
        """Write a finished run down.

        Args:
            run: one that is not in the journal yet.
        """
        self._write(asdict(run))

    def __iter__(self) -> Iterator[Run]:
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


def _decoded(line: bytes) -> dict[str, Any]:
    """A line's object, or an empty one if it is none."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _shown(value: object) -> str:
    """A setting in a few words."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."

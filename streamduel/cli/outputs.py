"""Checks of the files that a command will write, before it computes anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from streamduel.errors import ConfigurationError
from streamduel.files import identity, kind, obstacle

Named = tuple[str, Path]
"""An option and the file that it names."""

PIPED: Final = {"--json", "--csv", "--report"}
"""Options of files that may be pipes; a plot is known by its name, a journal is read again."""


def check_places(files: Iterable[Named], inputs: Mapping[Path, str]) -> None:
    """Refuse places that cannot hold a file, and to write a file twice or one that is read.

    Args:
        files: to write.
        inputs: what each file is that the command reads, by its `identity`.

    Raises:
        ConfigurationError: a file is refused.
    """
    seen = dict(inputs)
    for option, path in files:
        if str(path) == "-":
            pipe = f"; in bash, {option} >(COMMAND) pipes it" if option in PIPED else ""
            raise ConfigurationError(
                f"{option} must be a file (found '-', which is not standard output here{pipe})."
            )
        if kind(path) == "a directory":
            raise ConfigurationError(f"{option} must be a file (found the directory '{path}').")
        if kind(path.parent) != "a directory":
            raise ConfigurationError(
                f"{option} must be in a directory that exists (found '{path}')."
            )
        if (same := identity(path)) in seen:
            raise ConfigurationError(
                f"{seen[same]} and {option} must name different files (found '{path}' for both)."
            )
        seen[same] = option


def check_writable(files: Iterable[Named]) -> None:
    """Refuse files that `write_whole` could not write.

    Raises:
        ConfigurationError: a file is refused.
    """
    for option, path in files:
        if why := obstacle(path):
            raise ConfigurationError(
                f"{option} must be a file that can be written (found '{path}': {why})."
            )

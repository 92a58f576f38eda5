"""Arguments and options that several commands take."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from streamduel.config import LoadedConfig, load
from streamduel.errors import StreamduelError, escaped
from streamduel.logging import hide, redact

ConfigPath = Annotated[
    Path,
    typer.Argument(metavar="CONFIG", help="The configuration, a YAML file.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print only errors; see the exit status.")
]


def load_config(path: Path) -> LoadedConfig:
    """Load a configuration; from here on no line of the application log shows its passwords."""
    loaded = load(path)
    hide(loaded.source, loaded.sink, loaded.snapshots)
    return loaded


def print_json(answer: object) -> None:
    """Print a struct, or what JSON can hold, for programs."""
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(answer)) + b"\n")
    sys.stdout.flush()


def sentences(error: StreamduelError) -> list[str]:
    """The sentences of an error, escaped as on standard error: JSON is UTF-8."""
    return [escaped(line) for line in redact(str(error)).splitlines()]


@contextmanager
def errors_as_json(wanted: bool) -> Iterator[None]:
    """Also print an error as JSON, if it is wanted: a program that reads the answer finds it."""
    try:
        yield
    except StreamduelError as error:
        if wanted:
            print_json({"errors": sentences(error)})
        raise

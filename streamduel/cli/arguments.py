"""Arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from streamduel.config import LoadedConfig, load
from streamduel.logging import hide

ConfigPath = Annotated[
    Path,
    typer.Argument(metavar="CONFIG", help="The configuration, a YAML file.", show_default=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def load_config(path: Path) -> LoadedConfig:
    """Load a configuration; from here on no line of the application log shows its passwords."""
    loaded = load(path)
    hide(loaded.source, loaded.sink, loaded.snapshots)
    return loaded

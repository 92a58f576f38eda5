"""`streamduel inspect`."""

from __future__ import annotations

from contextlib import closing
from typing import Final

import typer

from streamduel.cli import tables
from streamduel.cli.app import FAILURE, err, out, say
from streamduel.cli.arguments import AsJson, ConfigPath, errors_as_json, load_config, print_json
from streamduel.config import LoadedConfig
from streamduel.stream import inspection

NO_SNAPSHOT: Final = (
    "streamduel: there is no snapshot of an experiment; start `streamduel run` with this "
    "configuration, or check its section snapshots."
)


def inspect(config: ConfigPath, as_json: AsJson = False) -> None:
    """Show the newest snapshots: champion, confidence, win rates and records by outcome.

    Exit status 1 if there is no snapshot.
    """
    with errors_as_json(as_json):
        report = read_report(load_config(config))
    if as_json:
        print_json(report)
    elif report.experiments:
        tables.print_report(out, report)
    if not report.experiments:
        say(err, NO_SNAPSHOT)
        raise typer.Exit(FAILURE)


def read_report(loaded: LoadedConfig) -> inspection.Report:
    """The report on the newest snapshots of all partitions."""
    with closing(loaded.open_archive()) as archive:
        return inspection.inspect(archive, loaded.config.experiments)

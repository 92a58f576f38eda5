"""`streamduel inspect`."""

from __future__ import annotations

import sys
from contextlib import closing

import msgspec

from streamduel.cli import tables
from streamduel.cli.app import out
from streamduel.cli.arguments import AsJson, ConfigPath, load_config
from streamduel.config import LoadedConfig
from streamduel.stream import inspection


def inspect(config: ConfigPath, as_json: AsJson = False) -> None:
    """Show the newest snapshots: champion, win rates and records by outcome."""
    report = read_report(load_config(config))
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    else:
        tables.print_report(out, report)


def read_report(loaded: LoadedConfig) -> inspection.Report:
    """The report on the newest snapshots of all partitions."""
    with closing(loaded.outlet_connector.open_archive(loaded.sink, loaded.snapshots)) as archive:
        return inspection.inspect(archive)

"""A connector of files, with the checks' fixture around it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from streamduel.connector import Connector
from streamduel.testing.connectors import ConfiguredConnector
from streamduel_files.outlet import DEAD_LETTERS, SNAPSHOT, read_snapshot


def on_files(connector: Connector, folder: Path) -> ConfiguredConnector:
    """The connector `files`, or a faulty one with its settings and files."""
    log, outputs, snapshots = folder / "clicks.jsonl", folder / "out", folder / "state"
    log.touch()

    def append(values: Sequence[bytes]) -> None:
        with log.open("ab") as file:
            file.writelines(value + b"\n" for value in values)

    def dead_letters() -> list[bytes]:
        found = read_snapshot(snapshots / SNAPSHOT)
        committed = found.outputs[DEAD_LETTERS] if found else 0
        return (outputs / DEAD_LETTERS).read_bytes()[:committed].splitlines() if committed else []

    return ConfiguredConnector(
        connector,
        {"connector": "files", "path": log},
        {"connector": "files", "path": outputs},
        {"connector": "files", "path": snapshots},
        append,
        dead_letters,
    )

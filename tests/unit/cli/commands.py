"""Commands in processes of their own, and their configuration."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from streamduel.config import LoadedConfig, load
from streamduel.connector import Archive, Source
from streamduel.service import serve
from tests.command_line import run_command
from tests.logs import ARMS, values
from tests.unit.config.configurations import GOOD, changed, written

LOG = [value for _, value in values(21, 2000, poison=0.005)]
HALF = 1000
SECONDS = 180
"""Limit of each command, with a large margin for a busy machine."""

COMMAND = [sys.executable, "-c", "from streamduel.cli.app import main; main()"]


class Result(NamedTuple):
    """The exit status and the outputs of a command."""

    status: int
    out: str
    err: str


Streamduel = Callable[..., Result]


def run(config: Path, *options: str) -> Result:
    """`streamduel run`, in a process of its own."""
    done = run_command("run", config, *options, seconds=SECONDS)
    return Result(done.returncode, done.stdout, done.stderr)


class Running(LoadedConfig):
    """The configuration of a service that folds and commits on before a command opens anything."""

    def open_log(self, **changed: str | None) -> Source:
        self._commit()
        return super().open_log(**changed)

    def open_archive(self) -> Archive:
        self._commit()
        return super().open_archive()

    def _commit(self) -> None:
        log = self.path.parent / "clicks.jsonl"
        folded = log.read_bytes().count(b"\n")
        with log.open("ab") as file:
            file.writelines(value + b"\n" for value in LOG[folded : folded + 100])
        serve(self, lambda: False, until_end=True)


def running(config: Path) -> Running:
    return Running.model_construct(**dict(load(config)))


def into_closed_pipe(*arguments: object) -> None:
    """A command whose output nobody reads any more, as after `head`."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    process.stdout.close()
    process.wait(SECONDS)


def configure(folder: Path, changes: Mapping[str, Any] | None = None) -> Path:
    path = folder / "search.yaml"
    arms = {"experiments.search.arms": list(ARMS), "experiments.search.seed": 7}
    path.write_text(written(changed({**arms, **(changes or {})}, GOOD)))
    return path


def lines(folder: Path, name: str = "assignments.jsonl") -> list[bytes]:
    return (folder / "out" / name).read_bytes().splitlines(keepends=True)


def table_rows(text: str) -> list[list[str]]:
    """The cells of each row of the tables in a text, without their headings."""
    rows = [line for line in text.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in row.strip("│").split("│")] for row in rows]


def inspected(streamduel: Streamduel, folder: Path) -> dict[str, Any]:
    result = streamduel("inspect", folder / "search.yaml", "--json")
    assert result.status == 0
    report: dict[str, Any] = json.loads(result.out)
    return report

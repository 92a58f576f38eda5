"""What the tests of the command line start from."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.logs import ARMS, values
from tests.unit.config.configurations import GOOD, changed, written

LOG = [value for _, value in values(21, 2000, poison=0.005)]
SECONDS = 60
"""Far more than anything here takes, on a machine with other things to do."""

COMMAND = [sys.executable, "-c", "from streamduel.cli.app import main; main()"]


class Said(NamedTuple):
    """What a command has said, and its exit status."""

    status: int
    out: str
    err: str


Streamduel = Callable[..., Said]


def run(config: Path, *options: str) -> Said:
    """`streamduel run`, in a process of its own."""
    done = subprocess.run(
        [*COMMAND, "run", str(config), *options],
        capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


def configure(folder: Path, changes: Mapping[str, Any] | None = None) -> Path:
    path = folder / "search.yaml"
    arms = {"experiments.search.arms": list(ARMS), "experiments.search.seed": 7}
    path.write_text(written(changed({**arms, **(changes or {})}, GOOD)))
    return path


def lines(folder: Path, name: str = "assignments.jsonl") -> list[bytes]:
    return (folder / "out" / name).read_bytes().splitlines(keepends=True)


def inspected(streamduel: Streamduel, folder: Path) -> dict[str, Any]:
    said = streamduel("inspect", folder / "search.yaml", "--json")
    assert said.status == 0
    report: dict[str, Any] = json.loads(said.out)
    return report

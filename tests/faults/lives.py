"""Running a victim through its lives, and reading what it has made visible."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

LIFETIME = 300
"""Seconds after which a life that does not end is a failure: far more than any log here needs."""


def live(config: Path, **how: object) -> bool:
    """One life; True when it was killed, False when it came to the end of the log.

    Raises:
        AssertionError: it ended in any other way; its standard error is shown.
    """
    ended = subprocess.run(
        [sys.executable, "-m", "tests.faults.victim", str(config), json.dumps(how)],
        cwd=ROOT, capture_output=True, text=True, timeout=LIFETIME,
    )  # fmt: skip
    assert ended.returncode in {0, -signal.SIGKILL}, ended.stderr
    return ended.returncode != 0


def hashes(report: dict[str, Any]) -> dict[str, str]:
    """The state hash of each experiment of an `inspect --json`."""
    return {name: found["state_hash"] for name, found in report["experiments"].items()}


def streamduel(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return subprocess.run(
        [sys.executable, "-m", "streamduel", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, timeout=LIFETIME,
    )  # fmt: skip


def inspect(config: Path) -> dict[str, Any]:
    """What `streamduel inspect --json` says."""
    told = streamduel("inspect", config, "--json")
    assert told.returncode == 0, told.stderr
    report: dict[str, Any] = json.loads(told.stdout)
    return report

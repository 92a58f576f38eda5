"""`streamduel simulate` in a process of its own, and its reports."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.command_line import run_command
from tests.unit.cli.commands import SECONDS, Result

# A shell's background job ignores Ctrl-C, and so does all that it starts: not here.
COMMAND = [
    sys.executable, "-c",
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from streamduel.cli.app import main; main()",
    "simulate",
]  # fmt: skip


def run(*arguments: object, folder: Path) -> Result:
    """The command in a process of its own."""
    done = run_command("simulate", *arguments, seconds=SECONDS, cwd=folder)
    return Result(done.returncode, done.stdout, done.stderr)


def loaded(path: Path) -> dict[str, Any]:
    """A report without its durations."""
    report: dict[str, Any] = json.loads(path.read_text())
    for policy in report["policies"]:
        assert policy.pop("seconds_per_run") > 0
    return report

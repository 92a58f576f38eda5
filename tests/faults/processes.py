"""Running the service and the command line in processes of their own, and killing them.

`run_service` runs the product's own `serve` with a failpoint that sends SIGKILL; the product has no
such switch. Its processes are forks of one that has imported everything, so each starts at once.
"""

from __future__ import annotations

import json
import multiprocessing.process
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamduel.config import load
from streamduel.service import serve
from tests.command_line import FORKS, run_command

ROOT = Path(__file__).parents[2]

TIMEOUT = 300
"""Seconds after which a process has failed: far more than any click log here needs."""

RUN = [sys.executable, "-m", "streamduel", "run"]


class Killer:
    """A failpoint that kills the process.

    Args:
        step: the step at which it does.
        times: how often the step must be reached.
        seconds: instead of a step, the time after the first step of all.
    """

    def __init__(self, step: str = "", times: int = 1, seconds: float | None = None) -> None:
        self._step = step
        self._left = times
        self._seconds = seconds

    def __call__(self, step: str, /) -> None:
        if self._seconds is not None:
            threading.Thread(target=self._wait, args=(self._seconds,), daemon=True).start()
            self._seconds = None
        if step == self._step:
            self._left -= 1
            if self._left == 0:
                die()

    def _wait(self, seconds: float) -> None:
        time.sleep(seconds)
        die()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _serve(config: Path, kill: dict[str, Any]) -> None:
    serve(load(config), lambda: False, until_end=True, failpoint=Killer(**kill))


def fork(target: Callable[..., None], *args: object) -> multiprocessing.process.BaseProcess:
    """Call a function of a module in a process of its own."""
    process = FORKS.Process(target=target, args=args)
    process.start()
    return process


def was_killed(process: multiprocessing.process.BaseProcess) -> bool:
    """Wait for the end; True after SIGKILL, False after success.

    Raises:
        AssertionError: any other end; the captured standard error has the reason.
    """
    process.join(TIMEOUT)
    assert process.exitcode in {0, -signal.SIGKILL}, f"ended with {process.exitcode}"
    return process.exitcode != 0


def start_service(config: Path) -> multiprocessing.process.BaseProcess:
    """Start the service, which ends at the present end of the click log."""
    return fork(_serve, config, {})


def run_service(config: Path, **kill: object) -> bool:
    """Run the service; True when it was killed, False when it reached the end of the click log."""
    return was_killed(fork(_serve, config, kill))


def streamduel(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command line."""
    return run_command(*arguments, seconds=TIMEOUT, cwd=ROOT)


def inspect(config: Path) -> dict[str, Any]:
    """The output of `streamduel inspect --json`."""
    done = streamduel("inspect", config, "--json")
    # Without a snapshot the status is 1, and the report is empty.
    assert done.returncode == 0 or done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def hashes(report: dict[str, Any]) -> dict[str, str]:
    """The state hash of each experiment of an `inspect --json`."""
    return {name: found["state_hash"] for name, found in report["experiments"].items()}

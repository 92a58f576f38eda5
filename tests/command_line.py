"""The command line in processes of their own, which start at once.

They are forks of one process that has imported what the commands need, but not `streamduel.cli`:
its consoles look at the terminal and the environment when they are made.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

IMPORTED = (
    "__main__", "tests.faults.processes", "rich.table", "typer.rich_utils", "uvicorn",
    "streamduel.doctor", "streamduel.logging", "streamduel.monitoring.app",
    "streamduel.monitoring.server", "streamduel.service", "streamduel.simulation.forecast",
    "streamduel.stream.inspection", "streamduel.stream.repair_commits", "streamduel.stream.replay",
    "streamduel_files", "streamduel_kafka.confluent", "streamduel_kafka.kafka_python",
)  # fmt: skip
"""What most commands and services need; `streamduel.cli` is not among it."""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(list(IMPORTED))


def run_command(
    *arguments: object,
    seconds: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Path = Path(os.devnull),
) -> subprocess.CompletedProcess[str]:
    """Run `streamduel` with these arguments, as `subprocess.run` does.

    Raises:
        TimeoutExpired: it did not end in time, and was killed.
    """
    words = ["streamduel", *map(str, arguments)]
    with tempfile.TemporaryDirectory(prefix="streamduel-command-") as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        within = (str(cwd or Path.cwd()), dict(os.environ if env is None else env))
        process = FORKS.Process(target=_main, args=(words, *within, stdin, out, err))
        process.start()
        try:
            process.join(seconds)
            if process.exitcode is None:
                raise subprocess.TimeoutExpired(words, seconds)
        finally:
            process.kill()
            process.join()
        return subprocess.CompletedProcess(
            words, process.exitcode, out.read_text(), err.read_text()
        )


def _main(
    words: list[str], cwd: str, env: dict[str, str], stdin: Path, out: Path, err: Path
) -> None:
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    for number, path, flags in (
        (0, stdin, os.O_RDONLY),
        (1, out, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, err, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.argv = words

    from streamduel.cli.app import main  # noqa: PLC0415 - here its consoles are made

    main()

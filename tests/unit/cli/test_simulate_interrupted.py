"""`streamduel simulate` that is interrupted, killed, or watched in a terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamduel.simulation.matrices import ARXIV
from tests.unit.cli.commands import SECONDS
from tests.unit.cli.simulating import COMMAND, loaded, run

LONG = ["--policy", "uniform", "--horizon", "1000", "--runs", "200", "--no-compile"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The report of the long simulation."""
    folder = tmp_path_factory.mktemp("undisturbed")
    np.savetxt(folder / "arxiv.txt", ARXIV, fmt="%.2f")
    result = run("--matrix", "arxiv.txt", *LONG, "--json", "r.json", folder=folder)
    assert result.status == 0, result.err
    return loaded(folder / "r.json")


def started(folder: Path, *more: str, runs: int = 3) -> subprocess.Popen[str]:
    """A long simulation in the background, some of whose runs are finished."""
    process = subprocess.Popen(
        [*COMMAND, "--matrix", "arxiv.txt", *LONG, "--json", "r.json", *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
    )  # fmt: skip
    journal, deadline = folder / "r.json.journal", time.monotonic() + SECONDS
    while not (journal.exists() and journal.read_bytes().count(b"\n") > runs):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


def gone(pid: int) -> bool:
    """Whether no process has this parent any more."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = status.read_text().splitlines()
        except OSError:  # it has just ended
            continue
        if f"PPid:\t{pid}" in lines and "State:\tZ (zombie)" not in lines:
            return False
    return True


@pytest.mark.parametrize(
    ("jobs", "sent", "status"),
    [
        ("1", signal.SIGINT, 130), ("2", signal.SIGINT, 130),
        ("1", signal.SIGTERM, 143), ("2", signal.SIGTERM, 143),
    ],
)  # fmt: skip
def test_a_signal_shows_finished_runs_and_the_same_command_continues(
    matrix: Path, tmp_path: Path, undisturbed: dict[str, Any], jobs: str, sent: int, status: int
) -> None:
    process = started(tmp_path, "--jobs", jobs)
    process.send_signal(sent)
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == status
    assert "uniform" in out
    assert "Traceback" not in err
    assert err.startswith("Interrupted with ")
    assert err.endswith("kept in r.json.journal; the same command continues from there.\n")
    assert not (tmp_path / "r.json").exists()
    assert (tmp_path / "r.json.journal").exists()
    assert gone(process.pid)
    check_resumed(tmp_path, undisturbed)


def test_without_a_finished_run_nothing_is_said_to_be_kept(matrix: Path, tmp_path: Path) -> None:
    process = started(tmp_path, "--jobs", "1", "--horizon", "1e9", runs=0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (130, "Interrupted with 0 of 200 runs finished.\n")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_after_a_kill_the_same_command_continues(
    matrix: Path, tmp_path: Path, undisturbed: dict[str, Any], jobs: str
) -> None:
    process = started(tmp_path, "--jobs", jobs)
    process.kill()
    process.communicate(timeout=SECONDS)
    check_resumed(tmp_path, undisturbed)


def check_resumed(folder: Path, undisturbed: dict[str, Any]) -> None:
    """A restart plays only the missing runs and gives the results of an undisturbed run."""
    before = (folder / "r.json.journal").read_bytes().count(b"\n") - 1
    assert 3 <= before < 200
    resumed = run("--matrix", "arxiv.txt", *LONG, "--json", "r.json", folder=folder)
    assert resumed.status == 0, resumed.err
    assert not (folder / "r.json.journal").exists()
    assert loaded(folder / "r.json") == undisturbed


def test_ctrl_c_during_the_imports(tmp_path: Path) -> None:
    code = """
import builtins, runpy
real = builtins.__import__
def interrupted(name, globals=None, locals=None, fromlist=(), level=0):
    if name == "streamduel.cli":
        raise KeyboardInterrupt
    return real(name, globals, locals, fromlist, level)
builtins.__import__ = interrupted
runpy.run_module("streamduel", run_name="__main__")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_a_terminal_shows_a_bar(matrix: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "--matrix", "arxiv.txt", *LONG, "--jobs", "1"],
        stdout=subprocess.PIPE, stderr=theirs, cwd=tmp_path,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(theirs)
    seen, deadline = b"", time.monotonic() + SECONDS
    while b"200" not in seen:
        assert time.monotonic() < deadline, seen
        if select.select([ours], [], [], 0.1)[0]:
            seen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    while process.poll() is None:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                seen += os.read(ours, 65536)
            except OSError:  # the terminal is closed
                break
    out, _ = process.communicate(timeout=SECONDS)
    os.close(ours)
    assert process.returncode == 130
    assert b"simulating" in seen
    assert b"with --json or --journal, finished runs would be kept" in seen
    assert b"simulating" not in out

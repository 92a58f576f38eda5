"""Assignments in a process that was forked after they were created."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.client.bed import PATIENCE, alone

FORKED = """
import logging, os, sys, threading
from streamduel.client import Assignments

logging.basicConfig(format="%(levelname)s %(message)s")
assignments = Assignments.from_file(sys.argv[1], keep=60)
assert assignments.wait_for("search")
if sys.argv[2] == "closed":
    assignments.close()
held = threading.Event()

def hold():
    closing = assignments._followers[0]._closing._cond
    with assignments._updated, assignments._sessions._lock, closing:
        held.set()
        threading.Event().wait()

if sys.argv[2] in {"locked", "close"}:
    threading.Thread(target=hold, daemon=True).start()
    held.wait()
if os.fork() == 0:
    if sys.argv[2] == "close":
        assignments.close()
    if sys.argv[2] in {"wait_for", "locked"}:
        assert assignments.wait_for("search", 0)
    for _ in range(3):
        assert assignments.draw("search", sticky_key="me") == ("x", "x", 17)
    assignments.close()
    sys.exit()
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.parametrize(
    ("use", "logged"),
    [
        (
            use,
            ["ERROR the assignments were created before the process forked, and do not change in "
             "this process; create them in each process"],
        )
        for use in ("draw", "wait_for", "locked")
    ] + [(use, []) for use in ("closed", "close")],
)  # fmt: skip
def test_a_forked_process_continues_and_says_once_that_nothing_follows(
    tmp_path: Path, use: str, logged: list[str]
) -> None:
    path = tmp_path / "assignments.jsonl"
    path.write_text(alone("x") + "\n")
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, str(path), use],
        check=True, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert ran.stderr.splitlines() == logged

"""The programs of Debian's package `prometheus`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`.

    Raises:
        AssertionError: it is not installed; the sentence says what to install.
    """
    found = shutil.which(name)
    assert found, f"there is no '{name}' on the PATH; on Debian: apt-get install prometheus"
    return found


def promtool(*arguments: str | Path) -> None:
    """Run promtool.

    Raises:
        AssertionError: it found something; the sentence is what it printed.
    """
    done = subprocess.run(
        [program("promtool"), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr

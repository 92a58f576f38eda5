"""The programs of Debian's package `prometheus`."""

from __future__ import annotations

import shutil


def program(name: str) -> str:
    """The path of `prometheus` or `promtool`.

    Raises:
        AssertionError: it is not installed; the sentence says what to install.
    """
    found = shutil.which(name)
    assert found, f"there is no '{name}' on the PATH; on Debian: apt-get install prometheus"
    return found

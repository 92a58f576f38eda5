"""An archive of the classes that a broker loads: Java starts with it in half the processor time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.cached import cached

ARCHIVE: Final = "classes.jsa"


def class_sharing(java: Path, jars: Path, record: Callable[[str], None]) -> str:
    """The option with which Java reads the archive, made the first time.

    Java ignores an archive of another version of itself, or of other jars; so each has its own.

    Args:
        java: the program.
        jars: the directory of the broker's jars.
        record: runs a broker with an option, and stops it.
    """

    def make(scratch: Path) -> Path:
        directory = scratch / "classes"
        directory.mkdir()
        record(f"-XX:ArchiveClassesAtExit={directory / ARCHIVE}")
        return directory

    program = java.resolve()
    version = f"{jars} {program} {program.stat().st_mtime_ns}"
    digest = hashlib.sha256(version.encode()).hexdigest()[:8]
    return f"-XX:SharedArchiveFile={cached(f'{jars.name}-classes-{digest}', make) / ARCHIVE}"

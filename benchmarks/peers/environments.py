"""Virtual environments and jars of the peers, made once under `build/peers`."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.machine import ROOT
from benchmarks.measure import tell

CACHE = ROOT / "build" / "peers"
HERE = Path(__file__).parent
SECONDS = 900
"""For one installation; Spark is 450 MB."""


class InstallError(Exception):
    """A peer cannot be installed; the message has the reason."""


def python(requirements: Sequence[str]) -> Path:
    """The interpreter of a virtual environment with these packages."""

    def make(folder: Path) -> None:
        _run([sys.executable, "-m", "venv", str(folder)])
        _run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *requirements])

    return _made("\n".join((sys.version, *requirements)).encode(), make) / "bin" / "python"


def jars(folder: str) -> list[Path]:
    """The jars that `mvn package` makes and fetches in a folder beside this file."""
    source = HERE / folder

    def make(target: Path) -> None:
        shutil.copytree(source, target)
        _run(["mvn", "--quiet", "--batch-mode", "package"], target)

    content = b"".join(file.read_bytes() for file in sorted(source.iterdir()))
    return sorted((_made(content, make) / "target").rglob("*.jar"))


def _made(content: bytes, make: Callable[[Path], None]) -> Path:
    """The folder for this content; made again if making it was interrupted."""
    folder = CACHE / hashlib.sha256(content).hexdigest()[:12]
    stamp = folder / "made.stamp"
    if not stamp.exists():
        tell(f"installing into {folder}")
        shutil.rmtree(folder, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        make(folder)
        stamp.touch()
    return folder


def _run(command: list[str], directory: Path = ROOT) -> None:
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise InstallError(str(error)) from error
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise InstallError(lines[-1] if lines else f"{command[0]} failed")

"""The image's base where no registry can be asked for one: Debian's Python, from Debian's packages.

It is made for the Debian that this machine runs, from the archive that its apt is set up with, and
kept in the user's cache as a store that buildah reads images from.
"""

import hashlib
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.made_once import made_once

BASE: Final = "localhost/debian-python"
"""What the Dockerfile is given as its BASE."""

STORAGE_DRIVER: Final = "vfs"
"""Copies where others mount: works within containers too, and a killed run leaves no mount."""

PACKAGES: Final = (
    "python-is-python3", "python3-venv", "ca-certificates", "libstdc++6", "passwd",
)  # fmt: skip
"""What python:3-slim has and is needed: numpy is partly C++, and `passwd` makes the user."""

MAKE_SECONDS: Final = 300.0
"""It takes 30 seconds on two idle cores; 40 MB of packages may come over a slow line."""

APT_OPTIONS: Final = (
    "Acquire::http", "Acquire::https", "Acquire::Check-Date", "Acquire::Check-Valid-Until",
)  # fmt: skip
"""How this machine's apt reaches its archive."""


class BaseImageError(RuntimeError):
    """The base could not be made; the text says why."""


def base_store() -> Path:
    """Return an image store that holds BASE, made now if this machine has none yet."""
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    return made_once(f"image-base-{suite}-{digest}", lambda scratch: _make(scratch, suite))


def _make(scratch: Path, suite: str) -> Path:
    store = scratch / "store"
    with tempfile.TemporaryDirectory(prefix="streamduel-base-") as state:
        buildah = [
            "buildah", f"--root={store}", f"--runroot={state}", f"--storage-driver={STORAGE_DRIVER}"
        ]  # fmt: skip
        container = _output(*buildah, "from", "scratch")
        _install(suite, _output(*buildah, "mount", container), scratch)
        _output(*buildah, "commit", "--quiet", "--rm", container, BASE)
    return store


def _install(suite: str, root: str, scratch: Path) -> None:
    sources, options = scratch / "sources.list", scratch / "apt.conf"
    line = "deb $(REPO_URI) $(RELEASE) $(COMPONENT)"
    archive = _output(
        "apt-get", "indextargets", "--format", line, "Created-By: Packages", "Origin: Debian"
    )
    sources.write_text(archive + "\n", encoding="utf-8")
    options.write_text(_output("apt-config", "dump", *APT_OPTIONS) + "\n", encoding="utf-8")
    _output(
        "mmdebstrap", "--quiet", "--mode=root", "--format=directory", "--variant=essential",
        f"--include={','.join(PACKAGES)}", f"--aptopt={options}",
        *(f"--dpkgopt=path-exclude=/usr/share/{unread}/*" for unread in ("doc", "man", "locale")),
        suite, root, *([str(sources)] if archive else []),
    )  # fmt: skip
    _forget_this_machine(Path(root, "etc"))


def _forget_this_machine(etc: Path) -> None:
    shutil.rmtree(etc / "apt")
    for name in ("hostname", "resolv.conf"):  # they stay, empty: buildah mounts its own over them
        (etc / name).write_bytes(b"")
        (etc / name).chmod(0o644)


def _output(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=MAKE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise BaseImageError(f"{command[0]} did not finish in {MAKE_SECONDS:.0f} s") from None
    if done.returncode:
        raise BaseImageError(f"{command[0]} failed with status {done.returncode}:\n{done.stderr}")
    return done.stdout.strip()

"""A base image without a registry: Debian's Python, installed from Debian's packages.

It has the release of this machine, comes from the archive that apt is configured for, and is cached
in the user's cache directory as a store that buildah reads.
"""

import hashlib
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tests.cached import cached

BASE: Final = "localhost/debian-python"
"""The Dockerfile's build argument BASE."""

STORAGE_DRIVER: Final = "vfs"
"""Copies files instead of mounting: works in containers, and a killed run leaves no mount."""

PACKAGES: Final = (
    "python-is-python3", "python3-venv", "ca-certificates", "libstdc++6", "passwd",
)  # fmt: skip
"""The needed part of python:3-slim: numpy needs libstdc++, and `passwd` creates the user."""

BUILD_SECONDS: Final = 300.0
"""30 s on two idle cores; 40 MB of packages take longer on a slow line."""

APT_OPTIONS: Final = (
    "Acquire::http", "Acquire::https", "Acquire::Check-Date", "Acquire::Check-Valid-Until",
)  # fmt: skip
"""The apt settings that reach this machine's archive."""


class BaseImageError(RuntimeError):
    """The base image could not be built; the message gives the reason."""


def base_store() -> Path:
    """Return an image store that contains BASE; built if it is not cached."""
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    digest = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    return cached(f"image-base-{suite}-{digest}", lambda scratch: _build(scratch, suite))


def _build(scratch: Path, suite: str) -> Path:
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
        *(f"--dpkgopt=path-exclude=/usr/share/{path}/*" for path in ("doc", "man", "locale")),
        suite, root, *([str(sources)] if archive else []),
    )  # fmt: skip
    _remove_host_settings(Path(root, "etc"))


def _remove_host_settings(etc: Path) -> None:
    shutil.rmtree(etc / "apt")
    for name in ("hostname", "resolv.conf"):  # kept empty: buildah mounts its own files over them
        (etc / name).write_bytes(b"")
        (etc / name).chmod(0o644)


def _output(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise BaseImageError(f"{command[0]} did not finish in {BUILD_SECONDS:.0f} s") from None
    if done.returncode:
        raise BaseImageError(f"{command[0]} failed with status {done.returncode}:\n{done.stderr}")
    return done.stdout.strip()

"""Containers without a Docker engine: Debian's buildah builds, and runc runs, as under Docker."""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.image.base import BASE, STORAGE_DRIVER, BaseImageError, base_store
from tests.image.engine import (
    BUILD_SECONDS,
    ROOT,
    EngineUnavailableError,
    Image,
    Start,
    build_arguments,
    output,
)

PROGRAMS: Final = {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "runc": "runc"}
"""Required programs, each with its Debian package."""

TAG: Final = "localhost/streamduel"

CERTIFICATES: Final = "/etc/ssl/certs"
"""This machine's certificate authorities, mounted in the build: a proxy may have its own."""

MEMORY: Final = Path("/dev/shm")
SCRATCH_BYTES: Final = 4 * 2**30
"""Free bytes that the build needs in memory; it copies 1.3 GB. In memory it takes half the time."""

SYSTEM_MOUNTS: Final[tuple[tuple[str, str, list[str]], ...]] = (
    ("proc", "/proc", []),
    ("tmpfs", "/dev", ["nosuid", "mode=755", "size=64k"]),
    ("sysfs", "/sys", ["nosuid", "noexec", "nodev", "ro"]),
    ("tmpfs", "/tmp", ["nosuid", "nodev", "noexec", "mode=1777", "size=16m"]),
)


class Debian:
    """Builds with buildah and runs with runc; needs root."""

    def __init__(self) -> None:
        missing = sorted({package for name, package in PROGRAMS.items() if not shutil.which(name)})
        if missing:
            raise EngineUnavailableError(f"not installed: {', '.join(missing)}")
        if os.getuid() != 0:
            raise EngineUnavailableError("building without Docker needs root")
        self._state = Path(tempfile.mkdtemp(prefix="streamduel-image-", dir=_scratch()))
        try:
            self.image = self._build()
            self._root = output(*self._buildah, "mount", output(*self._buildah, "from", TAG))
        except BaseException:
            self.close()
            raise

    @property
    def _buildah(self) -> list[str]:
        return [
            "buildah", f"--root={self._state}/images", f"--runroot={self._state}/run",
            f"--storage-driver={STORAGE_DRIVER}", f"--storage-opt=vfs.imagestore={self._base}",
        ]  # fmt: skip

    def _build(self) -> Image:
        try:
            self._base = base_store()
        except BaseImageError as error:
            raise EngineUnavailableError(str(error)) from error
        output(
            *self._buildah, "build", "--isolation=chroot", "--pull-never", "--format=docker",
            f"--volume={CERTIFICATES}:{CERTIFICATES}:ro", f"--build-arg=BASE={BASE}",
            *build_arguments(), f"--tag={TAG}", str(ROOT), seconds=BUILD_SECONDS,
        )  # fmt: skip
        found = json.loads(output(*self._buildah, "inspect", "--type=image", TAG))
        layers = json.loads(found["Manifest"])["layers"]
        return Image.inspected(found["Docker"]["config"], sum(layer["size"] for layer in layers))

    def running(self, name: str, start: Start) -> list[str]:
        """The command that runs a container in the foreground and exits with its status."""
        bundle = self._state / name
        bundle.mkdir()
        (bundle / "config.json").write_text(json.dumps(self._specified(name, start)))
        return [*self._runc, "run", "--bundle", str(bundle), name]

    def executing(self, name: str, command: Sequence[str]) -> list[str]:
        """The command that runs another command in a container, as its user."""
        return [*self._runc, "exec", name, *command]

    def signalling(self, name: str, signal: str) -> list[str]:
        """The command that sends a signal to the container's first process."""
        return [*self._runc, "kill", name, signal]

    def close(self) -> None:
        """Remove the image and all files of the build."""
        shutil.rmtree(self._state)

    @property
    def _runc(self) -> list[str]:
        return ["runc", f"--root={self._state}/runc"]

    def _specified(self, name: str, start: Start) -> dict[str, Any]:
        """The container as an OCI runtime specification."""
        uid, _, gid = (start.user or self.image.user).partition(":")
        entrypoint = self.image.entrypoint if start.entrypoint is None else start.entrypoint
        # As in Docker: overriding the entrypoint drops the image's command.
        default = self.image.command if start.entrypoint is None else []
        variables = self.image.environment | dict(start.environment)
        namespaces = ["pid", "ipc", "uts", "mount"]
        if not start.on_host_network:
            namespaces.append("network")
        return {
            "ociVersion": "1.0.0",
            "hostname": name,
            "root": {"path": self._root, "readonly": True},
            "process": {
                "user": {"uid": int(uid), "gid": int(gid or 0)},
                "args": [*entrypoint, *(default if start.command is None else start.command)],
                "env": [f"{variable}={value}" for variable, value in variables.items()],
                "cwd": "/",
                "noNewPrivileges": True,
                "capabilities": {},
            },
            "mounts": [*_system_mounts(), *_mounts(start)],
            "linux": {"namespaces": [{"type": namespace} for namespace in namespaces]},
        }


def _scratch() -> Path | None:
    """The in-memory file system if it has room, else the default directory."""
    return MEMORY if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > SCRATCH_BYTES else None


def _system_mounts() -> list[dict[str, Any]]:
    return [
        {"type": kind, "source": kind, "destination": path, "options": options}
        for kind, path, options in SYSTEM_MOUNTS
    ]


def _mounts(start: Start) -> list[dict[str, Any]]:
    return [
        {
            "type": "bind",
            "source": str(outside),
            "destination": inside,
            "options": ["rbind", "rw" if inside in start.writable else "ro"],
        }
        for inside, outside in start.mounts.items()
    ]

"""The interface of a container engine: builds the image and runs containers."""

import ast
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, Self

from streamduel import __version__

ROOT: Final = Path(__file__).parents[2]

BUILD_SECONDS: Final = 300.0
"""20 s on two idle cores; 20 MB of wheels take longer on a slow line."""


class EngineUnavailableError(RuntimeError):
    """This engine is not available; the message gives the reason."""


class BuildError(RuntimeError):
    """An engine is available, but the image does not build; the message names the failure.

    Another engine is not tried, and the tests are not skipped.
    """


@dataclass(frozen=True)
class Image:
    """An image's configuration, with the names of `docker image inspect`."""

    user: str
    entrypoint: list[str]
    command: list[str]
    environment: dict[str, str]
    labels: dict[str, str]
    ports: list[str]
    health: list[str]
    size: int

    @classmethod
    def inspected(cls, config: Mapping[str, Any], size: int) -> Self:
        """From the section `Config` of an inspection and the bytes of all layers."""
        return cls(
            user=config["User"],
            entrypoint=config["Entrypoint"],
            command=config["Cmd"],
            environment=dict(variable.split("=", 1) for variable in config["Env"]),
            labels=config["Labels"],
            ports=list(config["ExposedPorts"]),
            health=config["Healthcheck"]["Test"],
            size=size,
        )


@dataclass(frozen=True)
class Start:
    """How a container is started. Each has a read-only root, no capabilities, and a /tmp.

    Args:
        command: replaces the image's.
        entrypoint: replaces the image's.
        user: replaces the image's.
        environment: added to the image's.
        mounts: host paths by path in the container.
        writable: the mounted paths that the container may write.
        on_host_network: whether it shares this machine's network; otherwise it has only loopback.
    """

    command: Sequence[str] | None = None
    entrypoint: Sequence[str] | None = None
    user: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, Path] = field(default_factory=dict)
    writable: Sequence[str] = ()
    on_host_network: bool = False


class Engine(Protocol):
    """Has built the image; its methods return the command lines that control containers."""

    image: Image

    def running(self, name: str, start: Start) -> list[str]:
        """The command that runs a container in the foreground and exits with its status."""

    def executing(self, name: str, command: Sequence[str]) -> list[str]:
        """The command that runs another command in a container, as its user."""

    def signalling(self, name: str, signal: str) -> list[str]:
        """The command that sends a signal to the container's first process."""

    def close(self) -> None:
        """Remove the image and all files of the build."""


def output(*command: str, seconds: float = 60.0) -> str:
    """Return a command's standard output.

    Raises:
        BuildError: the command failed or took longer than `seconds`.
    """
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{command[0]} did not finish in {seconds:.0f} s") from None
    if done.returncode:
        raise BuildError(
            f"{command[0]} failed with status {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout.strip()


def build_arguments() -> list[str]:
    """Return build arguments: the version and this machine's package index."""
    arguments = {"VERSION": __version__}
    listed = output(sys.executable, "-m", "pip", "config", "list")
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in {"index-url", "trusted-host"}:
            arguments[f"PIP_{name.upper().replace('-', '_')}"] = ast.literal_eval(value)
    return [f"--build-arg={name}={value}" for name, value in arguments.items()]

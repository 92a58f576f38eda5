"""What the tests ask of whatever builds the image and runs containers of it."""

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
"""It takes 20 seconds on two idle cores; 20 MB of wheels may come over a slow line."""


class EngineUnavailableError(RuntimeError):
    """Containers cannot be had in the way that was tried; the text says why."""


class BuildError(RuntimeError):
    """There is an engine, and the image is wrong: no reason to try another way, or to go without.

    The text says what failed.
    """


@dataclass(frozen=True)
class Image:
    """What an image says of itself; the names are those of `docker image inspect`."""

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
        """Of the section `Config` of an inspection, and the bytes of all layers."""
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
    """How a container is started. All have a read-only root, no capabilities, and a /tmp.

    Args:
        command: in place of the image's.
        entrypoint: in place of the image's.
        user: in place of the image's.
        environment: beside the image's.
        mounts: by path in the container, what is seen there.
        writable: the paths among them where the container may write.
        on_host_network: shares this machine's network; it else has only a loopback of its own.
    """

    command: Sequence[str] | None = None
    entrypoint: Sequence[str] | None = None
    user: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, Path] = field(default_factory=dict)
    writable: Sequence[str] = ()
    on_host_network: bool = False


class Engine(Protocol):
    """Has built the image; its methods are the command lines of a container's life."""

    image: Image

    def running(self, name: str, start: Start) -> list[str]:
        """Runs a container in the foreground, and ends with its status."""

    def executing(self, name: str, command: Sequence[str]) -> list[str]:
        """Runs one more command in a running container, as its user, with its environment."""

    def signalling(self, name: str, signal: str) -> list[str]:
        """Sends the container's first process a signal."""

    def close(self) -> None:
        """Remove the image and all that was made for it."""


def output(*command: str, seconds: float = 60.0) -> str:
    """Return what a command writes.

    Raises:
        BuildError: it failed, or was not done in that many seconds.
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
    """Return the version, and where this machine's pip is told to find packages."""
    arguments = {"VERSION": __version__}
    listed = output(sys.executable, "-m", "pip", "config", "list")
    for line in listed.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in {"index-url", "trusted-host"}:
            arguments[f"PIP_{name.upper().replace('-', '_')}"] = ast.literal_eval(value)
    return [f"--build-arg={name}={value}" for name, value in arguments.items()]

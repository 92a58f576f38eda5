"""Containers of a Docker engine."""

import json
import re
import shutil
import uuid
from collections.abc import Sequence
from typing import Final

from tests.image.engine import (
    BUILD_SECONDS,
    ROOT,
    BuildError,
    EngineUnavailableError,
    Image,
    Start,
    build_arguments,
    output,
)

PING_SECONDS: Final = 10.0
"""An engine answers in 0.1 s; an engine that hangs must not block the tests."""


class Docker:
    """Builds on the base image that the Dockerfile names, from the engine's registry."""

    def __init__(self) -> None:
        if shutil.which("docker") is None:
            raise EngineUnavailableError("there is no 'docker' on the PATH")
        try:
            output("docker", "info", seconds=PING_SECONDS)
        except BuildError:
            raise EngineUnavailableError("no engine answers") from None
        _pull_base()
        self._tag = f"streamduel-test:{uuid.uuid4().hex[:8]}"
        output("docker", "build", "--tag", self._tag, *build_arguments(), str(ROOT),
               seconds=BUILD_SECONDS)  # fmt: skip
        (found,) = json.loads(output("docker", "image", "inspect", self._tag))
        self.image = Image.inspected(found["Config"], found["Size"])

    def running(self, name: str, start: Start) -> list[str]:
        """The command that runs a container in the foreground and exits with its status."""
        command = list(start.command or ())
        options = []
        if start.entrypoint is not None:
            first, *rest = start.entrypoint
            options += ["--entrypoint", first]
            command = [*rest, *command]
        if start.user is not None:
            options += ["--user", start.user]
        for variable, value in start.environment.items():
            options += ["--env", f"{variable}={value}"]
        for inside, outside in start.mounts.items():
            mode = "rw" if inside in start.writable else "ro"
            options += ["--volume", f"{outside}:{inside}:{mode}"]
        network = "host" if start.on_host_network else "none"
        return [
            "docker", "run", "--rm", "--name", name, "--network", network, "--read-only",
            "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
            *options, self._tag, *command,
        ]  # fmt: skip

    def executing(self, name: str, command: Sequence[str]) -> list[str]:
        """The command that runs another command in a container, as its user."""
        return ["docker", "exec", name, *command]

    def signalling(self, name: str, signal: str) -> list[str]:
        """The command that sends a signal to the container's first process."""
        return ["docker", "kill", "--signal", signal, name]

    def close(self) -> None:
        """Remove the image."""
        output("docker", "image", "rm", "--force", self._tag)


def _pull_base() -> None:
    """Pull the base image unless the engine has it already: the registry may be unreachable."""
    found = re.search(r"^ARG BASE=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert found, "the Dockerfile lacks ARG BASE=..."
    try:
        output("docker", "image", "inspect", found[1])
    except BuildError:
        try:
            output("docker", "pull", "--quiet", found[1], seconds=BUILD_SECONDS)
        except BuildError as error:
            raise EngineUnavailableError(f"{found[1]} is not available: {error}") from None

"""The image under test, and containers of it."""

import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Final, Self

from tests.image.engine import Engine, Image, Start

TIMEOUT_SECONDS: Final = 180.0
"""Timeout of each wait for a container; on an idle machine each takes two seconds."""

POLL_SECONDS: Final = 0.1
"""Between two checks; a check starts a process in the container, which takes as long."""


class Container:
    """A running container; `log` has its standard output and error. Leaving it kills it.

    Args:
        engine: runs the container.
        start: how it is started.
    """

    def __init__(self, engine: Engine, start: Start) -> None:
        self._engine = engine
        self._name = f"streamduel-{uuid.uuid4().hex[:12]}"
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed when the container is left
        self._process = subprocess.Popen(
            engine.running(self._name, start),
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._kill()
        self._log.close()

    @property
    def log(self) -> str:
        """The output of its processes so far."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run another command in the container."""
        return subprocess.run(
            self._engine.executing(self._name, command),
            capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS,
        )  # fmt: skip

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds()` is true; fail if the container exits first."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not holds():
            assert self._process.poll() is None, f"the container has exited:\n{self.log}"
            assert time.monotonic() < deadline, f"timed out:\n{self.log}"
            time.sleep(POLL_SECONDS)

    def signal(self, signal: str) -> None:
        """Send a signal, such as `TERM`, to the first process."""
        self._send(signal).check_returncode()

    def ended(self) -> int:
        """Wait for the exit; return the status."""
        return self._process.wait(TIMEOUT_SECONDS)

    def _send(self, signal: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self._engine.signalling(self._name, signal),
            capture_output=True, check=False, timeout=TIMEOUT_SECONDS,
        )  # fmt: skip

    def _kill(self) -> None:
        """Kill the container, and the engine's process if the container does not exist yet."""
        try:
            if self._send("KILL").returncode == 0:
                self._process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            pass  # a hanging engine must not hide the test's own error
        finally:
            self._process.kill()
            self._process.wait()


class Containers:
    """Starts containers of the image under test.

    Args:
        engine: has built the image.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def image(self) -> Image:
        """The image's configuration."""
        return self._engine.image

    def start(self, start: Start) -> Container:
        """Start a container; it runs until it exits or is left."""
        return Container(self._engine, start)

    def run(self, start: Start) -> tuple[int, str]:
        """Run a container to its exit; return its status and output."""
        with self.start(start) as container:
            return container.ended(), container.log

    def shell(self, program: str, user: str | None = None) -> str:
        """Run a shell program instead of streamduel; return its output, fail if it fails."""
        shell: Sequence[str] = ("/bin/sh", "-euc")
        status, log = self.run(Start(command=[program], entrypoint=shell, user=user))
        assert status == 0, log
        return log

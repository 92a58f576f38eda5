"""The image under test, and containers of it."""

import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

from tests.image.engine import Engine, Image, Start

PATIENCE: Final = 60.0
"""Seconds for anything that a container is waited for: all of it takes two on an idle machine."""

POLL_SECONDS: Final = 0.1
"""Between two looks; each starts a process in the container, which takes as long."""


class Container:
    """A running container, its standard output and error in `log`; it is gone when left.

    Args:
        engine: runs it.
        start: how.
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._kill()
        self._log.close()

    @property
    def log(self) -> str:
        """What its processes have written so far."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run one more command in it."""
        return subprocess.run(
            self._engine.executing(self._name, command),
            capture_output=True, text=True, check=False, timeout=PATIENCE,
        )  # fmt: skip

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait until it does; the container must not end meanwhile."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert self._process.poll() is None, f"it has ended:\n{self.log}"
            assert time.monotonic() < deadline, f"it still does not:\n{self.log}"
            time.sleep(POLL_SECONDS)

    def signal(self, signal: str) -> None:
        """Send its first process a signal, such as `TERM`."""
        self._send(signal).check_returncode()

    def ended(self) -> int:
        """Wait for its end; its status."""
        return self._process.wait(PATIENCE)

    def _send(self, signal: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self._engine.signalling(self._name, signal),
            capture_output=True, check=False, timeout=PATIENCE,
        )  # fmt: skip

    def _kill(self) -> None:
        """End it however far it has come: what is not made yet hears no signal."""
        try:
            if self._send("KILL").returncode == 0:
                self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            pass  # an engine that hangs; what the test has to say matters more
        finally:
            self._process.kill()
            self._process.wait()


class Containers:
    """Starts containers of the image under test.

    Args:
        engine: has built it.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def image(self) -> Image:
        """What the image says of itself."""
        return self._engine.image

    def start(self, start: Start) -> Container:
        """Start one; it runs until it is left, or ends."""
        return Container(self._engine, start)

    def run(self, start: Start) -> tuple[int, str]:
        """Run one to its end; its status, and what it wrote."""
        with self.start(start) as container:
            return container.ended(), container.log

    def shell(self, program: str, user: str | None = None) -> str:
        """Run a shell program in place of streamduel, and see it succeed; what it wrote."""
        shell: Sequence[str] = ("/bin/sh", "-euc")
        status, log = self.run(Start(command=[program], entrypoint=shell, user=user))
        assert status == 0, log
        return log

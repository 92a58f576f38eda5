"""A container whose start has not finished is killed when its test fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.image.container import Container
from tests.image.engine import Image, Start


class Slow:
    """An engine that never finishes starting its container."""

    image: Image

    def running(self, name: str, start: Start) -> list[str]:
        """Prints its process id and runs for an hour."""
        return ["sh", "-c", "echo I am $$; exec sleep 3600"]

    def executing(self, name: str, command: Sequence[str]) -> list[str]:
        """Fails: there is no such container."""
        return ["false"]

    def signalling(self, name: str, signal: str) -> list[str]:
        """Fails: there is no such container."""
        return ["false"]

    def close(self) -> None:
        """Nothing to remove."""


def test_a_failing_test_reports_its_error_and_leaves_no_process() -> None:
    processes = []

    def fail_while_it_runs() -> None:
        with Container(Slow(), Start()) as container:
            container.until(lambda: "I am" in container.log)
            (number,) = re.findall(r"\d+", container.log)
            processes.append(Path("/proc", number))
            assert processes[0].exists()
            raise ValueError("the test's own")

    with pytest.raises(ValueError, match="the test's own"):
        fail_while_it_runs()
    assert not processes[0].exists()

"""A container that is not made yet when its test has failed is ended all the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.image.container import Container
from tests.image.engine import Image, Start


class Slow:
    """An engine that is still at work on its first container, and knows of none."""

    image: Image

    def running(self, name: str, start: Start) -> list[str]:
        """Says who it is, and takes an hour."""
        return ["sh", "-c", "echo I am $$; exec sleep 3600"]

    def executing(self, name: str, command: Sequence[str]) -> list[str]:
        """Fails: there is no such container."""
        return ["false"]

    def signalling(self, name: str, signal: str) -> list[str]:
        """Fails: there is no such container."""
        return ["false"]

    def close(self) -> None:
        """Nothing was made."""


def test_the_error_of_the_test_is_seen_and_no_process_is_left() -> None:
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

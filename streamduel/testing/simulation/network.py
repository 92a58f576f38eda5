"""The connection of a simulated process to the cluster.

Every request may be the last thing that the process does, may fail, may be answered too late or
never, and may be overtaken by any request of another process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from streamduel.testing.simulation.cluster import Cluster

Answer = TypeVar("Answer")


class Unreachable(Exception):  # noqa: N818 - as the network puts it
    """No answer came; the request may have been executed, or may be executed later."""


class Network(Protocol):
    """The connection of one process to the cluster."""

    name: str
    cluster: Cluster

    def sleep(self, seconds: float) -> None:
        """Let other processes act for a time."""

    def request(self, step: str, request: Callable[[], Answer]) -> Answer:
        """Let other processes act, and execute a request.

        Raises:
            Unreachable: there is no answer.
            Refused: the cluster refuses it.
            NotReady: the cluster cannot answer yet.
        """

"""Where assignments come from: what a source of them must be able to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol


class News(NamedTuple):
    """One assignment record that was read, be it new or known already.

    Attributes:
        value: its JSON.
        at: when streamduel gave this sign of life, in seconds since 1970; None for just now.
    """

    value: bytes | str
    at: float | None = None


class Feed(Protocol):
    """A source of assignments. All its methods are called from one thread, which is its own.

    Attributes:
        every: seconds to wait between two calls of `poll`; 0 where `poll` itself waits.
    """

    every: float

    def poll(self) -> Iterable[News]:
        """What has come since the last call; old epochs, and any order, do no harm.

        It should return within a second or so, since `Assignments.close` waits for it. Whatever
        it raises is logged, and it is called again after a pause that grows from one second to
        half a minute.
        """
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class Given:
    """Assignments that are simply given: for tests of a ranker service.

    Args:
        *values: assignment records as JSON; later ones with `add`.
    """

    every = 0.02  # nobody notices that a test waits for it

    def __init__(self, *values: bytes | str) -> None:
        self._values = list(values)

    def add(self, value: bytes | str) -> None:
        """One more record."""
        self._values.append(value)

    def poll(self) -> Iterable[News]:
        """All of them, again and again."""
        return [News(value) for value in self._values]

    def close(self) -> None:
        """Nothing to let go of."""

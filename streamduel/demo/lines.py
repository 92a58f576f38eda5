"""The demo where there is no terminal, such as in a pipe: a line now and then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from rich.console import Console

from streamduel.demo.picture import Picture

EVERY_SECONDS: Final = 5.0
"""Between two lines: a dozen in a minute, and somebody who waits sees that it goes on."""


class ProgressLines(AbstractContextManager["ProgressLines"]):
    """The demo as lines of text.

    Args:
        console: where to.
        clock: seconds that only grow.
    """

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console, self._clock = console, clock
        self._next = clock()

    def show(self, picture: Picture) -> None:
        """A line, if it is time for one."""
        now = self._clock()
        if now < self._next:
            return
        if not picture.impressions and picture.url:
            say(self._console, f"status page and metrics: {picture.url}")
        self._next = now + EVERY_SECONDS
        view = picture.view
        so_far = " " * (7 - len(f"{picture.impressions:,}")) + picture.counted
        so_far += f", {picture.lasted}" if picture.timed else ""
        champion = view.arms[view.champion] if picture.impressions else "not known yet"
        say(
            self._console,
            f"{so_far}, epoch {view.epoch:,}: champion {champion}, confidence "
            f"{view.confidence:.3f}",
        )

    def __exit__(self, *_: object) -> None:
        """Nothing is left to be done."""


def say(console: Console, text: str) -> None:
    """A line as it is, however long."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)

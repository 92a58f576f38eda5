"""The progress of the demo, as lines of text, and the end of an interactive demo."""

from __future__ import annotations

import math
import select
import sys
import termios
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

from rich.console import Console

from streamduel.demo.search import Visit
from streamduel.monitoring.views import ExperimentView

LINE_SECONDS: Final = 5.0
"""Seconds between two lines: a dozen a minute."""

MAX_SLEEP: Final = 0.1
"""Seconds of one sleep: Ctrl-C takes effect within it."""


@dataclass(frozen=True, eq=False)
class Progress:
    """The state of the demo at one moment.

    Per ranker, `shares` are those of the recent lists and `shown` counts all impressions. The demo
    ends at `limit` impressions, or at `time_limit` seconds if that is finite.
    """

    policy: str
    view: ExperimentView
    shares: Sequence[float]
    shown: Sequence[int]
    visit: Visit | None
    impressions: int
    limit: int
    speed: float
    seconds: float
    url: str | None
    time_limit: float = math.inf

    @property
    def timed(self) -> bool:
        """Whether a time ends the demo."""
        return math.isfinite(self.time_limit)

    @property
    def impressions_text(self) -> str:
        """The impressions so far, and their limit."""
        whole = "" if self.timed else f" of {self.limit:,}"
        return f"{self.impressions:,}{whole} impressions"

    @property
    def seconds_text(self) -> str:
        """The seconds so far, and their limit."""
        whole = f" of {self.time_limit:g}" if self.timed else ""
        return f"{self.seconds:.0f}{whole} s"


class ProgressLines(AbstractContextManager["ProgressLines"]):
    """The progress as lines of text, for a pipe or a file."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console, self._clock = console, clock
        self._next = clock()

    def show(self, progress: Progress) -> None:
        """Print a line every `LINE_SECONDS` seconds."""
        now = self._clock()
        if now < self._next:
            return
        if not progress.impressions and progress.url:
            print_line(self._console, f"status page and metrics: {progress.url}")
        self._next = now + LINE_SECONDS
        view = progress.view
        so_far = " " * (7 - len(f"{progress.impressions:,}")) + progress.impressions_text
        so_far += f", {progress.seconds_text}" if progress.timed else ""
        champion = view.arms[view.champion] if progress.impressions else "not known yet"
        print_line(
            self._console,
            f"{so_far}, epoch {view.epoch:,}: champion {champion}, confidence "
            f"{view.confidence:.3f}",
        )

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


def print_line(console: Console, text: str) -> None:
    """Print a line without wrapping or markup."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def is_interactive() -> bool:
    """Whether standard input and output are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def wait_for_enter(console: Console, url: str, stop: Callable[[], bool]) -> None:
    """Wait for the Enter key, the end of the input, or `stop()`."""
    termios.tcflush(sys.stdin, termios.TCIFLUSH)  # discard keys pressed earlier
    print_line(console, f"The page {url} stays until you press Enter.")
    while not stop():
        if select.select([sys.stdin], [], [], MAX_SLEEP)[0]:
            sys.stdin.readline()  # otherwise the shell would read it
            return

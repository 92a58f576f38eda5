"""Progress bars on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from streamduel.stream.observer import Observer


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(show_speed=True),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


class FoldProgress(Observer):
    """A bar over the records that `run --until-end` folds."""

    def __init__(self, console: Console) -> None:
        self._progress = _bar(console)
        self._bar = self._progress.add_task("folding", total=None)
        self._done = 0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def polled(self, records: int) -> None:
        """Advance the bar."""
        self._done += records
        self._progress.update(self._bar, completed=self._done)

    def lagging(self, lags: Mapping[int, int]) -> None:
        """Set the bar's total to the records folded and the lag."""
        if lags:
            self._progress.update(self._bar, total=self._done + sum(lags.values()))


@contextmanager
def counting_progress(console: Console, what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for work of known size, such as "replaying"; without a terminal nothing is shown.

    Yields a function to call with the units done and the total.
    """
    if not console.is_terminal:
        yield lambda _done, _total: None
        return
    with _bar(console) as progress:
        bar = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(bar, completed=done, total=total)

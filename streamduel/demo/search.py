"""The demo's search service: it follows assignments, interleaves rankings, and logs clicks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

from streamduel.client import Assignments, Draw, EventLog, FeedRecord, Interleaver, Merged
from streamduel.client.feeds import FileFeed
from streamduel.demo.rankers import LENGTH, Rankers
from streamduel.errors import StreamduelError

EXPERIMENT: Final = "recipes"

FILE_TIMEOUT: Final = 10.0
"""Seconds to write a few hundred bytes to a local file, or to read them."""

IDLE: Final = 0.2
"""Seconds between two checks whether the demo has ended, by the thread that reads assignments."""


class _RequestedFeed(FileFeed):
    """Reads new assignments on request; the feed of a real service polls every second.

    The next impressions therefore follow the newest assignment on a machine of any speed.
    """

    every = 0.0  # `poll` itself waits

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._requested, self._read_all = threading.Event(), threading.Event()

    def poll(self) -> Iterator[FeedRecord]:
        if self._requested.wait(IDLE):
            self._requested.clear()
            yield from super().poll()
            self._read_all.set()

    def read(self) -> bool:
        """Read the file to its end; whether it succeeded."""
        self._read_all.clear()
        self._requested.set()
        return self._read_all.wait(FILE_TIMEOUT)


class Visit(NamedTuple):
    """One user's search: the query's index, the list shown, and the clicked ranks."""

    query: int
    draw: Draw
    page: Merged[int]
    clicks: Sequence[int]

    def clicks_on(self, team: str) -> int:
        """The number of clicks on the documents of a side."""
        return sum(self.page.teams[rank] == team for rank in self.clicks)


class RecipeSearch:
    """A search service that uses streamduel's client, as a real service does.

    Args:
        assignments: the file to follow.
        clicks: the click log to write.
        now: the time of an impression, in milliseconds since the Unix epoch, from its number.
    """

    def __init__(
        self, rankers: Rankers, assignments: Path, clicks: Path, now: Callable[[int], int]
    ) -> None:
        self._rankings = dict(zip(rankers.arms, rankers.rankings, strict=True))
        self._now = now
        self._feed = _RequestedFeed(assignments)
        self._assignments = Assignments(self._feed)
        self._events = EventLog.to_file(clicks)
        self._interleaver = Interleaver("team_draft", LENGTH)
        self.impressions = 0

    def update(self) -> None:
        """Read the newest assignment.

        Raises:
            StreamduelError: the file cannot be read.
        """
        if not self._feed.read():
            raise StreamduelError(
                "the assignments can no longer be read: was the directory removed?"
            )

    def show(self, query: int) -> tuple[Draw, Merged[int]]:
        """The rankers and the list for the next user."""
        user = f"user {self.impressions}"
        draw = self._assignments.draw(EXPERIMENT, sticky_key=user)
        lists = self._rankings[draw.a][query], self._rankings[draw.b][query]
        return draw, self._interleaver.merge(draw, *lists, sticky_key=user)

    def log(self, visit: Visit) -> None:
        """Log an impression and its clicks."""
        number = self.impressions
        self._events.interleaving(
            EXPERIMENT, visit.draw, visit.page, visit.clicks,
            record_id=f"i-{number}", ts=self._now(number),
        )  # fmt: skip
        self.impressions += 1

    def flush(self) -> None:
        """Wait until everything is written to the click log.

        Raises:
            StreamduelError: it cannot be written, for example to a full disk.
        """
        if not self._events.flush(FILE_TIMEOUT):
            raise StreamduelError("the click log cannot be written: is the disk full?")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._events.close(IDLE)  # everything was flushed before
        self._assignments.close()

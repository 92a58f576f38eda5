"""The demo's ranker service: it follows assignments, interleaves two rankings, and logs clicks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from streamduel.client import Assignments, Draw, EventLog, FeedRecord, Interleaver, Merged
from streamduel.client.feeds import FileFeed
from streamduel.demo.world import LENGTH, World
from streamduel.errors import StreamduelError

EXPERIMENT: Final = "recipes"

PATIENCE: Final = 10.0
"""Seconds for a few hundred bytes to reach a file of this machine, or to be read from one."""

IDLE: Final = 0.2
"""Seconds after which the thread that reads assignments looks whether the demo is over."""


class _FileOnCall(FileFeed):
    """Reads new assignments when told to, and says when it has; a service looks each second.

    So the next impressions go by the newest assignment, however fast the machine is.
    """

    every = 0.0  # `poll` itself waits

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._called, self._read_all = threading.Event(), threading.Event()

    def poll(self) -> Iterator[FeedRecord]:
        if self._called.wait(IDLE):
            self._called.clear()
            yield from super().poll()
            self._read_all.set()

    def look(self) -> bool:
        """Have everything read that stands in the file; whether it was."""
        self._read_all.clear()
        self._called.set()
        return self._read_all.wait(PATIENCE)


class Visit(NamedTuple):
    """One user's search.

    Attributes:
        query: what was asked for.
        draw: whose results were shown.
        page: the list, and whose each document is.
        clicks: the clicked ranks.
    """

    query: int
    draw: Draw
    page: Merged[int]
    clicks: Sequence[int]

    def clicks_on(self, team: str) -> int:
        """How many clicks speak for a side."""
        return sum(self.page.teams[rank] == team for rank in self.clicks)


class RecipeSearch:
    """A search service as streamduel's users have one, with the client that they would use.

    Args:
        world: the rankers.
        assignments: the file to follow.
        clicks: the click log to write.
        now: milliseconds since 1970 of an impression, from its number.
    """

    def __init__(
        self, world: World, assignments: Path, clicks: Path, now: Callable[[int], int]
    ) -> None:
        self._rankings = dict(zip(world.arms, world.rankings, strict=True))
        self._now = now
        self._feed = _FileOnCall(assignments)
        self._assignments = Assignments(self._feed)
        self._events = EventLog.to_file(clicks)
        self._interleaver = Interleaver("team_draft", LENGTH)
        self.impressions = 0

    def look(self) -> None:
        """Follow the newest assignment from now on.

        Raises:
            StreamduelError: the file cannot be read.
        """
        if not self._feed.look():
            raise StreamduelError("the assignments cannot be read any more: is the folder gone?")

    def show(self, query: int) -> tuple[Draw, Merged[int]]:
        """Whose results the next user gets, and which."""
        user = f"user {self.impressions}"
        draw = self._assignments.draw(EXPERIMENT, sticky_key=user)
        lists = self._rankings[draw.a][query], self._rankings[draw.b][query]
        return draw, self._interleaver.merge(draw, *lists, sticky_key=user)

    def log(self, visit: Visit) -> None:
        """Write down what was shown and clicked."""
        number = self.impressions
        self._events.interleaving(
            EXPERIMENT, visit.draw, visit.page, visit.clicks,
            record_id=f"i-{number}", ts=self._now(number),
        )  # fmt: skip
        self.impressions += 1

    def flush(self) -> None:
        """Wait until all of it stands in the click log.

        Raises:
            StreamduelError: it does not, such as on a full disk.
        """
        if not self._events.flush(PATIENCE):
            raise StreamduelError("the click log cannot be written: is the disk full?")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._events.close(IDLE)  # after each flush there is nothing left to be written
        self._assignments.close()

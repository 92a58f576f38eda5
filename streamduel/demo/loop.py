"""The closed loop: users, search service and streamduel take turns.

Between two polls streamduel asks whether to stop. The demo uses this call for a turn of the users:
ten of them search and click under the newest assignment. Then streamduel folds their records,
commits, and asks again. Nothing depends on the speed of the machine, and equal seeds give equal
demos.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, NamedTuple

from streamduel.demo.display import MAX_SLEEP, Progress
from streamduel.demo.search import RecipeSearch, Visit
from streamduel.demo.statistics import Statistics
from streamduel.demo.users import Users
from streamduel.monitoring.collector import Metrics
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask

TURN: Final = 10
"""Impressions between two commits, and duels between two decisions: at 50 impressions a second the
assignment changes five times a second, as fast as a viewer can follow."""

MEASURED_SECONDS: Final = 3.0
"""Seconds over which the present speed is measured: long enough for a steady figure."""


class Limit(NamedTuple):
    """The end of the demo, whichever comes first."""

    impressions: int
    seconds: float


class Loop(Observer):
    """Takes turns with a running streamduel, as the `stop` and an observer of `serve`.

    Args:
        metrics: an observer of the same streamduel, which provides the figures to display.
        show: shows the progress; may skip some calls.
        policy: its name, with parameters.
    """

    def __init__(
        self,
        users: Users,
        search: RecipeSearch,
        statistics: Statistics,
        metrics: Metrics,
        pace: Pace,
        limit: Limit,
        stop: Callable[[], bool],
        show: Callable[[Progress], None],
        policy: str,
        url: str | None,
    ) -> None:
        self._users, self._search, self._statistics = users, search, statistics
        self._metrics, self._pace, self._limit, self._stop = metrics, pace, limit, stop
        self._show, self._policy, self._url = show, policy, url
        self._folded = -1  # lines of the click log; nothing is assigned yet
        self._visit: Visit | None = None

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:  # noqa: ARG002
        """Note up to which offset the click log is folded and assignments are written."""
        self._folded = max(task.next_offset for task in tasks)

    def __call__(self) -> bool:
        """Whether to stop; if not, and if streamduel has folded all records, a turn of the users.

        Raises:
            StreamduelError: the files can no longer be read or written.
        """
        if self._folded < self._search.impressions:
            return False  # also before stopping: all clicks are folded
        if self._stop():
            return True
        self._show(self.progress())
        left = self._limit.impressions - self._statistics.impressions
        rest = self._limit.seconds - self._pace.seconds
        if left <= 0 or rest <= 0:
            return True
        turn = self._pace.wait(min(left, TURN), rest)
        if not self._stop():
            self._search.update()
            visits = [self._serve() for _ in range(turn)]
            self._search.flush()
            self._visit = _most_informative(visits)
        return False

    def _serve(self) -> Visit:
        """Serve one user, from the query to the record in the click log."""
        query = self._users.query()
        draw, page = self._search.show(query)
        visit = Visit(query, draw, page, self._users.clicks(query, page.docs))
        self._search.log(visit)
        self._statistics.count(draw)
        return visit

    def progress(self) -> Progress:
        """The present state of the demo."""
        return Progress(
            policy=self._policy,
            view=next(self._metrics.figures.experiments()),
            shares=self._statistics.recent_shares(),
            shown=list(self._statistics.shown),
            visit=self._visit,
            impressions=self._statistics.impressions,
            limit=self._limit.impressions,
            speed=self._pace.measured,
            seconds=self._pace.seconds,
            url=self._url,
            time_limit=self._limit.seconds,
        )


def _most_informative(visits: Sequence[Visit]) -> Visit:
    """The visit that shows a duel best: one of two rankers, with clicks, if there is one."""
    return max(reversed(visits), key=lambda visit: (not visit.draw.alone, bool(visit.clicks)))


class Pace:
    """Limits the impressions per second, and measures how many there are.

    Delays, on a slow machine or while the process was suspended, are not made up for.

    Args:
        speed: impressions a second; infinite for no limit.
    """

    def __init__(
        self,
        speed: float,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        stop: Callable[[], bool],
    ) -> None:
        self._speed, self._clock, self._sleep, self._stop = speed, clock, sleep, stop
        self._began = self._due = clock()
        self._marks = deque([(self._began, 0)])
        self._done = 0

    def wait(self, impressions: int, seconds: float = inf) -> int:
        """Wait until so many more impressions are due, the time is over, or `stop()` is true.

        Returns the number that is due, at least one.
        """
        end = self._clock() + seconds
        due = self._due + impressions / self._speed
        if due > end:  # never at an infinite speed
            impressions = max(1, impressions - round((due - end) * self._speed))
            due = min(end, self._due + impressions / self._speed)
        self._due = max(self._clock(), due)
        while (rest := self._due - self._clock()) > 0 and not self._stop():
            self._sleep(min(MAX_SLEEP, rest))
        self._done += impressions
        self._marks.append((self._clock(), self._done))
        while self._marks[-1][0] - self._marks[0][0] > MEASURED_SECONDS and len(self._marks) > 2:
            self._marks.popleft()
        return impressions

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self._clock() - self._began

    @property
    def measured(self) -> float:
        """Recent impressions a second; 0 before the first."""
        (began, before), (now, done) = self._marks[0], self._marks[-1]
        return (done - before) / (now - began) if now > began else 0.0

"""The closed loop, in turns: users, ranker service, streamduel, and users again.

streamduel asks between two polls whether it is to stop. In the demo, this is when the users have
their turn: ten of them search and click, by the newest assignment; then streamduel folds what
they did and commits; then it asks again. So nothing depends on how fast the machine is, and equal
seeds give equal demos.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from streamduel.demo.ledger import Ledger
from streamduel.demo.pace import Pace
from streamduel.demo.picture import Display, Picture
from streamduel.demo.search import RecipeSearch, Visit
from streamduel.demo.users import Users
from streamduel.monitoring.metrics import Metrics
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask

TURN: Final = 10
"""Impressions between two commits, and duels between two decisions: at fifty a second the
assignment changes five times a second, about as fast as one can look."""


class Bound(NamedTuple):
    """When it is over, whichever comes first."""

    impressions: int
    seconds: float


class Loop(Observer):
    """Takes turns with a running streamduel; to be handed to `serve` as `stop` and as observer.

    Args:
        users: who search and click.
        search: the service that they use.
        ledger: is told of every impression.
        metrics: an observer of the same streamduel, from which the picture is made.
        pace: how fast the users come.
        bound: when it is over.
        stop: whether somebody wants it to be over now.
        display: where it is to be seen.
        policy: what streamduel's is called.
        url: of the status page, if there is one.
    """

    def __init__(
        self,
        users: Users,
        search: RecipeSearch,
        ledger: Ledger,
        metrics: Metrics,
        pace: Pace,
        bound: Bound,
        stop: Callable[[], bool],
        display: Display,
        policy: str,
        url: str | None,
    ) -> None:
        self._users, self._search, self._ledger = users, search, ledger
        self._metrics, self._pace, self._bound, self._stop = metrics, pace, bound, stop
        self._display, self._policy, self._url = display, policy, url
        self._folded = -1  # of the click log, so many lines; nothing is assigned yet
        self._visit: Visit | None = None

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:  # noqa: ARG002
        """Learn up to where the click log is folded, and the assignments are written."""
        self._folded = max(task.next_offset for task in tasks)

    def __call__(self) -> bool:
        """Whether it is over; if not, and if streamduel has done its part, it is the users' turn.

        Raises:
            StreamduelError: the files cannot be read or written any more.
        """
        if self._folded < self._search.impressions:
            return False  # also if it is to stop: what was clicked is folded before
        if self._stop():
            return True
        self._display.show(self.picture())
        left = self._bound.impressions - self._ledger.impressions
        rest = self._bound.seconds - self._pace.seconds
        if left <= 0 or rest <= 0:
            return True
        turn = self._pace.wait(min(left, TURN), rest)
        if not self._stop():
            self._search.look()
            visits = [self._serve() for _ in range(turn)]
            self._search.flush()
            self._visit = _telling(visits)
        return False

    def _serve(self) -> Visit:
        """One user, from the query to the record in the log."""
        query = self._users.query()
        draw, page = self._search.show(query)
        visit = Visit(query, draw, page, self._users.clicks(query, page.docs))
        self._search.log(visit)
        self._ledger.count(draw)
        return visit

    def picture(self) -> Picture:
        """What there is to be seen at present."""
        return Picture(
            policy=self._policy,
            view=next(self._metrics.figures.experiments()),
            shares=self._ledger.recent_shares(),
            shown=list(self._ledger.shown),
            visit=self._visit,
            impressions=self._ledger.impressions,
            bound=self._bound.impressions,
            speed=self._pace.measured,
            seconds=self._pace.seconds,
            url=self._url,
            lasts=self._bound.seconds,
        )


def _telling(visits: Sequence[Visit]) -> Visit:
    """The visit that shows best how a duel is decided: of two rankers, with clicks, if there is."""
    return max(reversed(visits), key=lambda visit: (not visit.draw.alone, bool(visit.clicks)))

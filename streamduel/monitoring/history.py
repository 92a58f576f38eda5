"""How confidence and regret came to be what they are, since the process started.

Prometheus keeps such curves for months. This is for whoever has only a browser at hand: some
hundred points of each experiment, in memory, gone with the process.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple
from weakref import WeakValueDictionary

from streamduel.monitoring.assessment import CHEAP_ARMS
from streamduel.monitoring.assessments import Assessments
from streamduel.monitoring.views import ExperimentView, Figures

MOST_POINTS: Final = 240
"""Of an experiment: as many as a curve 500 pixels wide can show, in 10 kB."""

LOOK_SECONDS: Final = 1.0
"""Between two looks at all experiments; they change with a commit, some twice a second."""

WORK_SECONDS: Final = 0.002
"""At least so long is worked between two rests: to get the interpreter, and the fold to get it
back, costs up to half a millisecond."""

REST: Final = 50
"""After some points, so many times as long as they took is rested: bounds of confidence and regret
cost 0.3 ms for 16 arms and seconds for 1000, and may cost the fold at most 2 % of a core."""


class Point(NamedTuple):
    """What was known of an experiment at one moment.

    Attributes:
        at: in seconds since 1970.
        duels: all so far.
        confidence: that the champion is the winner, at least.
        regret: what the duels have cost, as estimated.
        regret_bound: what they have cost at most.
    """

    at: float
    duels: float
    confidence: float
    regret: float
    regret_bound: float

    @classmethod
    def of(cls, view: ExperimentView, at: float) -> Point:
        """The present one; takes arithmetic, unless somebody has asked for it before."""
        kind = regret_kind(view)
        return cls(at, view.duels, view.confidence, view.regret[kind], view.regret_bound[kind])


def regret_kind(view: ExperimentView) -> Literal["condorcet", "copeland"]:
    """The regret by which the policy is to be judged: that of the winner it seeks."""
    return view.seeks


class Trail:
    """The points of one experiment: a bounded number of them, spread over all that came.

    When it is full, every second point goes, and from then on only every second one is kept; and
    so on. The newest is always there.

    >>> trail = Trail(most=4)
    >>> for duels in range(10):
    ...     trail.add(Point(0.0, duels, 0.0, 0.0, 0.0))
    >>> [int(point.duels) for point in trail.points()]
    [0, 4, 8, 9]

    Args:
        most: how many points there are at most, at least 2.
    """

    __slots__ = ("_came", "_kept", "_most", "_stride", "newest")

    def __init__(self, most: int = MOST_POINTS) -> None:
        self._most = most
        self._begin()

    def _begin(self) -> None:
        self._kept = array("d")  # point after point: an eighth of what tuples would take
        self._stride, self._came = 1, 0
        self.newest: Point | None = None

    def add(self, point: Point) -> None:
        """Take in the next one. Fewer duels than before are those of an experiment begun anew."""
        if self.newest is not None and point.duels < self.newest.duels:
            self._begin()
        self.newest = point
        if self._came % self._stride == 0:
            if len(self._kept) == (self._most - 1) * len(point):
                self._thin(len(point))
            if self._came % self._stride == 0:
                self._kept.extend(point)
        self._came += 1

    def _thin(self, width: int) -> None:
        kept = self._kept
        starts = range(0, len(kept), 2 * width)
        self._kept = array("d", (kept[at + field] for at in starts for field in range(width)))
        self._stride *= 2

    def points(self) -> list[Point]:
        """All that are left, the oldest first."""
        numbers = iter(self._kept)
        points = [Point(*fields) for fields in zip(*[numbers] * len(Point._fields), strict=True)]
        if self.newest is not None and points[-1] != self.newest:
            points.append(self.newest)
        return points


class History:
    """The trails of all experiments that this process has held.

    Args:
        clock: seconds since 1970.
        assessments: for the metrics, which want of the newest points what is in them, too.

    Attributes:
        since: when it began.
    """

    def __init__(
        self, clock: Callable[[], float] = time.time, assessments: Assessments | None = None
    ) -> None:
        self._clock = clock
        self._assessments = assessments or Assessments()
        self.since = clock()
        self._trails: dict[str, Trail] = {}
        self._seen: WeakValueDictionary[str, ExperimentView] = WeakValueDictionary()
        self._reached: dict[str, int] = {}
        self._lock = threading.Lock()  # held for some additions at a time, never by the fold

    def look(self, figures: Figures) -> Iterator[float]:
        """Add a point to the trail of each experiment that has changed since the last look.

        All points are of the moment of the figures, however long the caller rests in between. What
        an experiment of many arms wants worked out is so afterwards.

        Yields after each point how many seconds of work it was, so that the caller can rest.
        """
        at = self._clock()
        for view in figures.experiments():
            if self._seen.get(view.name) is not view:
                self._seen[view.name] = view
                began = time.thread_time()
                point = Point.of(view, at)
                view.work_out()
                self._assessments.keep(view, figures.now)
                with self._lock:
                    self._trails.setdefault(view.name, Trail()).add(point)
                    self._reached[view.name] = view.records
                yield time.thread_time() - began

    def points(self, name: str) -> list[Point]:
        """The trail of an experiment, the oldest point first; empty if there is none yet."""
        with self._lock:
            return self._points(name)

    def _points(self, name: str) -> list[Point]:
        trail = self._trails.get(name)
        return trail.points() if trail is not None else []

    def newest(self, name: str) -> Point | None:
        """The latest point of an experiment; None if there is none yet."""
        trail = self._trails.get(name)
        return trail.newest if trail is not None else None

    def upto(self, view: ExperimentView) -> list[Point]:
        """The trail of an experiment up to now; up to the last look, if to look takes long.

        A look may have been at a newer state already.
        """
        with self._lock:
            points = self._points(view.name)
            reached = self._reached.get(view.name, 0)
        if len(view.arms) <= CHEAP_ARMS and view.records >= reached:
            now = Point.of(view, self._clock())
            if points and now.duels < points[-1].duels:
                return [now]  # begun anew
            if points and now.duels == points[-1].duels:
                points.pop()
            points.append(now)
        return points


class Historian:
    """Looks at the experiments from a thread of its own, as often as it may.

    Not an observer: what it works out would hold up the fold.

    Args:
        history: where the points go.
        figures: asked for what is known at the moment.
    """

    def __init__(self, history: History, figures: Callable[[], Figures]) -> None:
        self._history = history
        self._figures = figures
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    def start(self) -> None:
        """Look from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; a point that is being worked out dies with the process."""
        self._stopped.set()

    def _run(self) -> None:
        worked = 0.0
        while not self._stopped.wait(LOOK_SECONDS):
            for spent in self._history.look(self._figures()):
                worked += spent
                if worked >= WORK_SECONDS:
                    if self._stopped.wait(worked * REST):
                        return
                    worked = 0.0

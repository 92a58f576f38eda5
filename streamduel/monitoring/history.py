"""Confidence and regret since the process started.

Prometheus keeps such curves for months. These are for a browser alone: some hundred points per
experiment, in memory, lost with the process.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import structlog

from streamduel.monitoring.figures import Figures
from streamduel.monitoring.forecasts import Forecasts
from streamduel.monitoring.views import MAX_ARMS_ON_DEMAND, ExperimentView
from streamduel.preference.evidence import Winner

log = structlog.stdlib.get_logger(__name__)

MAX_POINTS: Final = 240
"""Per experiment: as many as a curve 500 pixels wide can show, in 10 kB."""

INTERVAL_SECONDS: Final = 1.0
"""The time between two updates; experiments change with a commit, some twice a second."""

WORK_SECONDS: Final = 0.002
"""At least this long is worked between two pauses: acquiring the GIL, and the fold acquiring it
again, costs up to half a millisecond."""

PAUSE: Final = 50
"""A pause is this many times as long as the work before it: bounds of confidence and regret cost
0.3 ms for 16 arms and seconds for 1000, and may take at most 2 % of a core from the fold."""


FORECAST_SECONDS: Final = 0.05
"""Between two parts of the work on forecasts, of 2 ms each: at most 4 % of a core."""

FORECAST_PAUSE: Final = 25
"""If a part takes longer, the pause after it is this many times as long."""

FAILED_SECONDS: Final = 60.0
"""The pause after a failure, which would otherwise be logged with every update."""


class Point(NamedTuple):
    """An experiment at one moment.

    Attributes:
        at: in seconds since 1970.
        duels: all so far.
        confidence: lower bound that the champion is the winner sought.
        regret: estimate of the cumulative regret.
        regret_bound: its upper bound.
        progress: how much of the evidence for a sure champion there is, from 0 to 1.
    """

    at: float
    duels: float
    confidence: float
    regret: float
    regret_bound: float
    progress: float = 0.0

    @classmethod
    def of(cls, view: ExperimentView, at: float) -> Point:
        """The present point; costly unless the view's figures have been computed already."""
        kind = view.seeks  # the regret by which the policy is judged: of the winner it seeks
        verdict = view.verdict
        return cls(
            at,
            view.duels,
            verdict.confidence,
            view.regret[kind],
            view.regret_bound[kind],
            verdict.progress,
        )


class PointSeries:
    """A bounded number of points of one experiment, spread evenly over all that were added.

    When the series is full, every second point is removed, and from then on only every second one
    is kept; and so on. The newest is always there.

    >>> series = PointSeries(max_points=4)
    >>> for duels in range(10):
    ...     series.add(Point(0.0, duels, 0.0, 0.0, 0.0))
    >>> [int(point.duels) for point in series.points()]
    [0, 4, 8, 9]

    Args:
        max_points: at least 2.

    Attributes:
        newest: the point added last; None before the first.
    """

    __slots__ = ("_added", "_kept", "_max_points", "_stride", "newest")

    def __init__(self, max_points: int = MAX_POINTS) -> None:
        self._max_points = max_points
        self._clear()

    def _clear(self) -> None:
        self._kept = array("d")  # point after point: an eighth of the memory of tuples
        self._stride, self._added = 1, 0
        self.newest: Point | None = None

    def add(self, point: Point) -> None:
        """Add the next point. Fewer duels than before mean that the experiment was reset."""
        if self.newest is not None and point.duels < self.newest.duels:
            self._clear()
        self.newest = point
        if self._added % self._stride == 0:
            if len(self._kept) == (self._max_points - 1) * len(point):
                self._thin(len(point))
            if self._added % self._stride == 0:
                self._kept.extend(point)
        self._added += 1

    def _thin(self, width: int) -> None:
        kept = self._kept
        starts = range(0, len(kept), 2 * width)
        self._kept = array("d", (kept[at + field] for at in starts for field in range(width)))
        self._stride *= 2

    def points(self) -> list[Point]:
        """The points that are kept, the oldest first."""
        numbers = iter(self._kept)
        points = [Point(*fields) for fields in zip(*[numbers] * len(Point._fields), strict=True)]
        if self.newest is not None and points[-1] != self.newest:
            points.append(self.newest)
        return points


class History:
    """The points of all experiments that this process has held.

    Args:
        clock: seconds since 1970.

    Attributes:
        since: when it began.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.since = clock()
        self._series: dict[str, PointSeries] = {}
        self._latest: WeakValueDictionary[str, ExperimentView] = WeakValueDictionary()
        self._versions: dict[str, int] = {}
        self._kinds: dict[str, Winner] = {}  # of regret, and of the winner of the confidence
        self._lock = threading.Lock()  # held for some additions at a time, never by the fold

    def update(self, figures: Figures) -> Iterator[float]:
        """Add a point for each experiment that has changed since the last update.

        All points have the time of the figures, however long the caller pauses in between. The
        costly assessment of experiments of many arms is computed on the way. A policy that seeks
        another winner begins the points again: its regret is of another kind.

        Yields:
            Seconds of work after each point, so that the caller can pause.
        """
        at = self._clock()
        for view in figures.experiments():
            if self._latest.get(view.name) is not view:
                self._latest[view.name] = view
                began = time.thread_time()
                point = Point.of(view, at)
                view.assess_many_arms()
                with self._lock:
                    if self._kinds.get(view.name) != view.seeks:
                        self._kinds[view.name] = view.seeks
                        self._series[view.name] = PointSeries()
                    self._series[view.name].add(point)
                    self._versions[view.name] = view.version
                yield time.thread_time() - began

    def points(self, name: str) -> list[Point]:
        """The points of an experiment, the oldest first; empty if there are none yet."""
        with self._lock:
            return self._points(name)

    def _points(self, name: str) -> list[Point]:
        series = self._series.get(name)
        return series.points() if series is not None else []

    def newest(self, name: str) -> Point | None:
        """The newest point of an experiment; None if there is none yet."""
        series = self._series.get(name)
        return series.newest if series is not None else None

    def up_to(self, view: ExperimentView) -> list[Point]:
        """The points of an experiment up to this view; up to the last update for many arms.

        The last update may already have seen a newer view. Points of another kind are left out.
        """
        with self._lock:
            same = self._kinds.get(view.name) == view.seeks
            points = self._points(view.name) if same else []
            newest_version = self._versions.get(view.name, 0)
        if len(view.arms) <= MAX_ARMS_ON_DEMAND and view.version >= newest_version:
            now = Point.of(view, self._clock())
            if points and now.duels < points[-1].duels:
                return [now]  # reset
            if points and now.duels == points[-1].duels:
                points.pop()
            points.append(now)
        return points


class HistoryThread:
    """Updates the history in a thread of its own, within a bounded share of a core.

    It is not an observer, because its computations would delay the fold.

    Args:
        history: to be updated.
        figures: returns the present figures.
        forecasts: to be updated, and worked on, too; None for no forecasts.
    """

    def __init__(
        self,
        history: History,
        figures: Callable[[], Figures],
        forecasts: Forecasts | None = None,
    ) -> None:
        self._history = history
        self._forecasts = forecasts
        self._figures = figures
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="history", daemon=True)

    def start(self) -> None:
        """Begin to update."""
        self._thread.start()

    def stop(self) -> None:
        """Stop updating; a point that is being computed ends with the process."""
        self._stopped.set()

    def _run(self) -> None:
        while True:
            try:
                self._update()
            except Exception:
                # Of a policy that fails in a simulation: the figures of all others go on.
                log.exception("figures delayed", seconds=FAILED_SECONDS)
                if not self._stopped.wait(FAILED_SECONDS):
                    continue
            return

    def _update(self) -> None:
        """Update until the thread is stopped."""
        worked = 0.0
        while not self._wait():
            for spent in self._history.update(self._figures()):
                worked += spent
                if worked >= WORK_SECONDS:
                    if self._stopped.wait(worked * PAUSE):
                        return
                    worked = 0.0

    def _wait(self) -> bool:
        """Wait until the next update, and work on forecasts meanwhile; True to stop."""
        if self._forecasts is None:
            return self._stopped.wait(INTERVAL_SECONDS)
        until = time.monotonic() + INTERVAL_SECONDS
        began = time.thread_time()
        self._forecasts.update(self._figures())
        spent = time.thread_time() - began
        while True:
            if self._stopped.wait(max(FORECAST_SECONDS, FORECAST_PAUSE * spent)):
                return True
            if time.monotonic() >= until:
                return False
            spent = self._forecasts.work(WORK_SECONDS)

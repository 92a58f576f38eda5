"""When each experiment will be sure, at today's traffic: computed in small parts.

A forecast in duels is costly, so it is made when the duels have grown by some per cent. With the
rate of duels of the last day it becomes a time, every second.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from math import nan
from typing import Final

from streamduel.errors import PolicyError
from streamduel.monitoring.figures import Figures
from streamduel.monitoring.outlook import SURE, Outlook, WhyNot
from streamduel.monitoring.views import ExperimentView
from streamduel.preference.logarithm import ln
from streamduel.simulation.forecast import Forecast, Situation, forecast

MAX_ARMS: Final = 50
"""Preparing a simulation of more arms would delay the fold for too long."""

LEAST_DUELS: Final = 10
"""Duels for each arm before a forecast: with fewer, it would only reflect its prior."""

AGAIN: Final = 1.05
"""A forecast is made again when there are that many times the duels."""

WINDOW_MS: Final = 86_400_000
"""Traffic is that of the last day, of nights and days alike, in stream time."""

LEAST_MS: Final = 10_000
LEAST_TRAFFIC: Final = 20
"""The least stream time and the fewest duels for a rate."""

LEAST_FOR_TIES: Final = 200
"""The fewest duels for a share of ties: its standard error is at most 3.5 points."""

SILENCE_SECONDS: Final = 600.0
SILENT_GAPS: Final = 50
"""No traffic: nothing for ten minutes and for as long as fifty records take."""

_SPACING_MS: Final = WINDOW_MS // 64
"""The time between two samples of the traffic."""


class Traffic:
    """Duels and their ties over stream time, of which a bounded number of samples is kept.

    >>> traffic = Traffic()
    >>> for second in range(0, 4000, 10):
    ...     traffic.add(1000 * second, 2 * second)
    >>> traffic.rate
    2.0
    """

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: list[tuple[int, int, int]] = []

    def add(self, at: int, duels: int, ties: int = 0) -> None:
        """Note the duels so far.

        Args:
            at: stream time in milliseconds.
            duels: fewer than before mean that the experiment was reset.
            ties: of these duels.
        """
        kept, sample = self._samples, (at, duels, ties)
        if kept and any(new < old for new, old in zip(sample, kept[-1], strict=True)):
            kept.clear()
        if len(kept) > 1 and at - kept[-2][0] < _SPACING_MS:
            kept.pop()  # the newest sample moves on until it is far enough from the one before
        kept.append(sample)
        while len(kept) > 2 and kept[1][0] <= at - WINDOW_MS:
            del kept[0]

    @property
    def rate(self) -> float | None:
        """Duels per second; None if there are too few."""
        if not self._samples:
            return None
        (began, before, _), (at, now, _) = self._samples[0], self._samples[-1]
        if at - began < LEAST_MS or now - before < LEAST_TRAFFIC:
            return None
        return 1000 * (now - before) / (at - began)

    @property
    def tie_share(self) -> float | None:
        """The share of ties; None if there are too few duels."""
        if not self._samples:
            return None
        (_, before, tied), (_, now, ties) = self._samples[0], self._samples[-1]
        duels = now - before
        return None if duels < LEAST_FOR_TIES else (ties - tied) / duels


class _Experiment:
    """What is known of one experiment: its traffic, and the newest forecast.

    Attributes:
        fought: the traffic of duels of two different arms.
        forecast: in duels; None before the first.
        of: the view that the forecast is of; without a forecast, its policy cannot be simulated.
    """

    __slots__ = ("_crediting", "_traffic", "forecast", "fought", "of")

    def __init__(self) -> None:
        self._traffic, self.fought = Traffic(), Traffic()
        self._crediting: tuple[object, ...] | None = None
        self.forecast: Forecast | None = None
        self.of: ExperimentView | None = None

    def note(self, at: int, view: ExperimentView) -> None:
        """Note the duels so far.

        A pause serves the champion alone, so it tells nothing; nor do duels credited otherwise.
        """
        running, crediting = view.status == "running", view.wanted.crediting
        if not running or crediting != self._crediting:
            self._traffic, self.fought, self._crediting = Traffic(), Traffic(), crediting
        if running:
            self._traffic.add(at, view.duels)
            self.fought.add(at, view.fought, int(view.ties.sum()) // 2)

    @property
    def rate(self) -> float | None:
        """Duels per second, of those that the forecast counts; None if there are too few."""
        alone = self.forecast is not None and self.forecast.alone
        return self.rate_of_all if alone else self.fought.rate

    @property
    def rate_of_all(self) -> float | None:
        """All duels per second; None if there are too few."""
        return self._traffic.rate

    def is_due(self, view: ExperimentView) -> bool:
        """Whether another forecast is worth its cost."""
        if self.of is None or not _applies(self.of, view):
            return True
        if self.forecast is None:
            return False
        grown = view.fought >= AGAIN * self.of.fought
        return grown or _is_outlived(self.forecast, self.of, view)


class Forecasts:
    """The outlook of all experiments that this process holds.

    One thread calls `update` and `work`; others may read.

    Attributes:
        outlooks: by experiment, replaced as a whole.
    """

    def __init__(self) -> None:
        self.outlooks: Mapping[str, Outlook] = {}
        self._known: dict[str, _Experiment] = {}
        self._due: list[ExperimentView] = []
        self._at_work: tuple[ExperimentView, Generator[None, None, Forecast]] | None = None

    def update(self, figures: Figures) -> None:
        """Note the present figures: traffic, and the forecasts to compute."""
        known, due = dict[str, _Experiment](), list[ExperimentView]()
        outlooks = dict[str, Outlook]()
        at_work = self._at_work and self._at_work[0].name  # due again only when it is finished
        for partition in figures.partitions.values():
            for name, view in partition.experiments.items():
                own = known[name] = self._known.get(name) or _Experiment()
                if partition.stream_time:
                    own.note(partition.stream_time, view)
                found = outlook(view, own.forecast, own.of, own.rate, figures.now, own.rate_of_all)
                is_due = own.is_due(view)
                waits = view.recredited and own.fought.tie_share is None
                if found.why_not == "computing" and not is_due:
                    found = Outlook.unknown("policy")
                elif found.why_not == "computing" and waits:
                    found = Outlook.unknown("few_duels")
                outlooks[name] = found
                wanted = found is not SURE and _why_not(view) is None
                if wanted and is_due and not waits and name != at_work:
                    due.append(view)
        self._known, self.outlooks, self._due = known, outlooks, due

    def work(self, seconds: float) -> float:
        """Compute forecasts for about so long.

        Args:
            seconds: of work; one step, some 100 µs, may follow them.

        Returns:
            Seconds of work.
        """
        began = time.thread_time()
        while (spent := time.thread_time() - began) < seconds:
            if self._at_work is None:
                view = self._next()
                if view is None:
                    break
                situation = _situation(view, self._known[view.name].fought.tie_share)
                self._at_work = view, forecast(situation, seed=view.duels)
            self._step(*self._at_work)
        return spent

    def _next(self) -> ExperimentView | None:
        """The experiment whose forecast is missing, or the oldest in duels."""

        def progress(view: ExperimentView) -> float:
            of = self._known[view.name].of
            return 0.0 if of is None else of.duels / max(1, view.duels)

        if not self._due:
            return None
        view = min(self._due, key=progress)
        self._due.remove(view)
        return view

    def _step(self, view: ExperimentView, ahead: Generator[None, None, Forecast]) -> None:
        """Continue a forecast; store it when it is complete."""
        try:
            next(ahead)
        except StopIteration as ended:
            self._finish(view, ended.value)
        except PolicyError:  # such as a policy whose parameters depend on its history
            self._finish(view, None)

    def _finish(self, view: ExperimentView, made: Forecast | None) -> None:
        self._at_work = None
        own = self._known.get(view.name)
        if own is not None:
            own.forecast, own.of = made, view


def outlook(
    view: ExperimentView,
    made: Forecast | None,
    of: ExperimentView | None,
    rate: float | None,
    now: float,
    rate_of_all: float | None = None,
) -> Outlook:
    """When an experiment will be sure.

    Args:
        view: the experiment at present.
        made: the newest forecast.
        of: the view that it is of.
        rate: duels per second, of those that the forecast counts.
        now: by the observer's clock.
        rate_of_all: all duels per second, which `min_duels` counts; None: as `rate`.
    """
    why_not = _why_not(view)
    if why_not != "many_arms" and view.is_sure:
        return SURE
    if why_not is not None:
        return Outlook.unknown(why_not)
    if made is None or of is None or not _applies(of, view) or _is_outlived(made, of, view):
        return Outlook.unknown("computing")
    if made.median is None or made.low is None:
        return Outlook.unknown("no_end")
    silent = now - view.last_record_at
    if rate is None or silent > max(SILENCE_SECONDS, SILENT_GAPS / rate):
        return Outlook.unknown("no_traffic")

    waits = (view.wanted.min_duels - view.duels) / (rate_of_all or rate)
    if made.alone and view.guardrails:  # which serve an arm alone, too
        rate *= 1.0 - view.guardrails.share
    since = made.began_at + _since(made, of, view)

    def seconds(duels: int) -> float:
        return max(0.0, waits, (duels - since) / rate)

    high = nan if made.high is None else seconds(made.high)
    return Outlook(seconds(made.median), seconds(made.low), high)


def _applies(of: ExperimentView, view: ExperimentView) -> bool:
    """Whether a forecast of a former view applies: same arms and settings, and not reset."""
    return view.continues(of) and view.wanted == of.wanted


def _is_outlived(made: Forecast, of: ExperimentView, view: ExperimentView) -> bool:
    """Whether an experiment has had as many duels as half of the simulations needed.

    Before `min_duels`, which the simulations do not wait for, that does not contradict them.
    """
    if made.median is None or view.duels < view.wanted.min_duels:
        return False
    return _since(made, of, view) >= max(1, made.median - made.began_at)


def _since(made: Forecast, of: ExperimentView, view: ExperimentView) -> int:
    """Duels since the forecast, of those that it counts.

    Guardrails and pauses serve an arm alone, which brings an answer no closer, and where lists
    without clicks are dropped, such duels are more frequent than others.
    """
    return view.duels - of.duels if made.alone else view.fought - of.fought


def _why_not(view: ExperimentView) -> WhyNot | None:
    """Why there can be no forecast, whatever the simulations say."""
    if view.status != "running":
        return "finished" if view.status == "finished" else "paused"
    if view.guardrails and view.guardrails.share >= 1:
        return "frozen"
    if len(view.arms) > MAX_ARMS:
        return "many_arms"
    required = -ln(1 - view.wanted.confidence)
    if view.seeks == "condorcet" and view.verdict.evidence.min() >= required:
        return "no_winner"
    if view.wins.sum() < LEAST_DUELS * len(view.arms):
        return "few_duels"
    return None


def _situation(view: ExperimentView, tie_share: float | None) -> Situation:
    wanted = view.wanted
    return Situation(
        wanted.policy,
        wanted.parameters,
        view.wins,
        view.ties,
        view.seeks,
        wanted.confidence,
        tie_share,
        alone=view.duels - view.fought,
    )

"""When the figures that take arithmetic are worked out anew for the metrics.

Regret, its bound and confidence take some 0.3 ms for an experiment of 16 arms, in which the fold
waits for the interpreter. With a hundred busy experiments and a scrape a second that would be 3 %
of a core, for figures that hardly move from one second to the next. The history works them out
anyway, for its curves, and as often as it may. So a scrape takes them from there. Only what is new,
or what the history does not get round to, is worked out for the scrape, and no more than some of
them in a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from streamduel.monitoring.assessment import CHEAP_ARMS, Assessment
from streamduel.monitoring.views import ExperimentView

FRESH_SECONDS: Final = 10.0
"""So long an assessment does: nobody stops an experiment, or sounds an alarm, within seconds. A
Prometheus that asks every 15 s, as most do, always gets new ones."""

MOST_PER_SECOND: Final = 20
"""Assessments that scrapes may make anew in each second since the last one: less than 1 % of a core
with 16 arms. Up to some 400 experiments the history is fast enough, and scrapes make none."""


class _Held(NamedTuple):
    """What is known of an experiment.

    Attributes:
        view: the state of the experiment it is of.
        about: the champion, the arms and what else makes it comparable.
        made_at: when.
        assessment: the figures.
    """

    view: ExperimentView
    about: tuple[object, ...]
    made_at: float
    assessment: Assessment


class Assessments:
    """Keeps the assessments of all experiments from one scrape to the next.

    That of an experiment that stands still is of its last state, at the latest when it is due. A
    new experiment, and one with another champion or other arms, is assessed at once: a confidence
    must never be that of somebody else. Experiments of many arms are not assessed here at all: each
    time, what is known of them is asked for.
    """

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._looked_at = 0.0
        self._allowed = 0.0

    def keep(self, view: ExperimentView, now: float) -> None:
        """Have the assessment of an experiment that is being looked at anyway.

        May be called by another thread than `of`: at worst, what it has kept is made again. Where
        something newer is known already, it changes nothing.

        Args:
            view: of the experiment.
            now: by the clock of `of`.
        """
        former = self._held.get(view.name)
        if len(view.arms) <= CHEAP_ARMS and (former is None or former.made_at < now):
            self._held[view.name] = _hold(view, now)

    def of(self, views: Sequence[ExperimentView], now: float) -> list[Assessment]:
        """The assessments of these experiments; what is known of others is dropped.

        Args:
            views: of the experiments.
            now: by a clock that only grows.
        """
        self._allow(now)
        held: dict[str, _Held] = {}
        due = []
        for view in views:
            former = self._held.get(view.name)
            if len(view.arms) > CHEAP_ARMS or former is None or former.about != _about(view):
                former = _hold(view, now)
            elif former.view is not view and now - former.made_at >= FRESH_SECONDS:
                due.append((former.made_at, view))
            held[view.name] = former
        due.sort(key=lambda each: each[0])
        for _, view in due[: int(self._allowed)]:
            held[view.name] = _hold(view, now)
            self._allowed -= 1
        self._held = held
        return [held[view.name].assessment for view in views]

    def _allow(self, now: float) -> None:
        """As many more as the time since the last call is worth; none are saved up for long."""
        most = MOST_PER_SECOND * max(1.0, now - self._looked_at)
        self._allowed = min(most, self._allowed + MOST_PER_SECOND * (now - self._looked_at))
        self._looked_at = now


def _hold(view: ExperimentView, now: float) -> _Held:
    return _Held(view, _about(view), now, view.assessment)


def _about(view: ExperimentView) -> tuple[object, ...]:
    return view.champion, view.shape

"""What somebody who reads the log would want to have been told: the turns that experiments take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final, NamedTuple

import structlog

from streamduel.stream.experiment import Experiment
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask

log = structlog.stdlib.get_logger(__name__)

REIGN_SECONDS: Final = 60.0
"""Between two lines about the champion of one experiment. While two arms are about equal the
champion may change with every decision, and a thousand experiments share one log."""

STATUS_EVENTS: Final = {
    "paused": "experiment paused",
    "finished": "experiment finished",
    "running": "experiment resumed",
}


class _Chapter(NamedTuple):
    """What an experiment is at, as far as a change of it is worth a line."""

    status: str
    stage: str
    batch: int | None
    arms: tuple[str, ...]
    frozen: tuple[str, str] | None

    @classmethod
    def of(cls, experiment: Experiment) -> _Chapter:
        """The present one."""
        arms, frozen = tuple(experiment.roster.arms), experiment.guardrails.frozen
        batch = experiment.batch[0] if experiment.batch else None
        return cls(experiment.status, experiment.policy.stage, batch, arms, frozen)


@dataclass
class _Reign:
    """The champion of an experiment, and what was told of it.

    Attributes:
        told: the champion of the last line.
        told_at: when that was.
        champion: the present one.
        changes: how often it has changed since that line.
        epoch: of the assignment that names it.
        duels: how many there had been.
    """

    told: str
    told_at: float
    champion: str
    changes: int
    epoch: int
    duels: int


class Chronicle(Observer):
    """Writes a line when an experiment changes its champion, status, arms, batch or algorithm.

    Lines come when a commit has made the change visible, so that a fenced process tells of nothing
    that did not happen. They are told at level info: each is something that people did or wait
    for, and nothing that anybody has to mend.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._chapters: dict[str, _Chapter] = {}
        self._reigns: dict[str, _Reign] = {}
        self._untold: set[str] = set()

    def restored(self, task: PartitionTask) -> None:
        """What was so before is no news."""
        for name, experiment in task.experiments.items():
            self._chapters[name] = _Chapter.of(experiment)
            self._untold.discard(name)
            if experiment.plan is not None:
                now = experiment.plan.champion
                duels = experiment.policy.duels
                self._reigns[name] = _Reign(now, -inf, now, 0, experiment.epoch, duels)

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:  # noqa: ARG002
        """Tell what has changed."""
        for task in tasks:
            for name, experiment in task.experiments.items():
                before = self._chapters.get(name)
                now = self._chapters[name] = _Chapter.of(experiment)
                if before is not None and now != before:
                    for event, what in _news(experiment, before, now):
                        log.info(event, experiment=name, **what, epoch=experiment.epoch)
                self._look_at_champion(experiment)
        self.turned()

    def _look_at_champion(self, experiment: Experiment) -> None:
        if experiment.plan is None:
            return
        name, champion = experiment.name, experiment.plan.champion
        epoch, duels = experiment.epoch, experiment.policy.duels
        reign = self._reigns.get(name)
        if reign is None:  # the first one is who happens to come first
            self._reigns[name] = _Reign(champion, -inf, champion, 0, epoch, duels)
        elif champion != reign.champion:
            reign.changes += 1
            reign.champion, reign.epoch, reign.duels = champion, epoch, duels
            self._untold.add(name)

    def turned(self) -> None:
        """Tell of the champions that it is time to tell of."""
        if not self._untold:  # nearly always
            return
        now = self._clock()
        for name in sorted(self._untold):
            reign = self._reigns[name]
            if now - reign.told_at < REIGN_SECONDS:
                continue
            self._untold.remove(name)
            if reign.champion == reign.told:
                continue
            log.info(
                "champion changed", experiment=name, champion=reign.champion, before=reign.told,
                changes=reign.changes, duels=reign.duels, epoch=reign.epoch,
            )  # fmt: skip
            reign.told, reign.told_at, reign.changes = reign.champion, now, 0


def _news(
    experiment: Experiment, before: _Chapter, now: _Chapter
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is different: events, with what belongs to them."""
    if now.stage != before.stage:
        policy = experiment.settings.policy.name
        yield "algorithm changed", {"policy": policy, "stage": now.stage, "before": before.stage}
    # With a reset, or with other arms, batches are counted anew: that closes none.
    if before.batch is not None and now.batch is not None and now.batch > before.batch:
        yield "batch closed", {"batch": before.batch, "next": now.batch}
    for arm in now.arms:
        if arm not in before.arms:
            yield "arm joined", {"arm": arm}
    for arm in before.arms:
        if arm not in now.arms:
            yield "arm retired", {"arm": arm}
    if now.frozen != before.frozen:
        pair = now.frozen or before.frozen
        yield ("pair frozen" if now.frozen else "pair unfrozen"), {"pair": pair}
    if now.status != before.status:
        champion = experiment.plan.champion if experiment.plan else None
        yield STATUS_EVENTS[now.status], {"champion": champion}

"""What somebody who reads the log would want to have been told: the turns that experiments take."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from streamduel.stream.experiment import Experiment
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask

log = logging.getLogger(__name__)


class _Chapter(NamedTuple):
    """What an experiment is at, as far as a change of it is worth a line."""

    status: str
    stage: str
    arms: tuple[str, ...]
    frozen: tuple[str, str] | None

    @classmethod
    def of(cls, experiment: Experiment) -> _Chapter:
        """The present one."""
        arms, frozen = tuple(experiment.roster.arms), experiment.guardrails.frozen
        return cls(experiment.status, experiment.policy.stage, arms, frozen)


class Chronicle(Observer):
    """Writes a line when an experiment ends, pauses, changes its arms or its algorithm.

    Lines come when a commit has made the change visible, so that a fenced process tells of nothing
    that did not happen. They are warnings: few, and each of them something that people did or wait
    for.
    """

    def __init__(self) -> None:
        self._chapters: dict[str, _Chapter] = {}

    def restored(self, task: PartitionTask) -> None:
        """What was so before is no news."""
        for name, experiment in task.experiments.items():
            self._chapters[name] = _Chapter.of(experiment)

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:  # noqa: ARG002
        """Tell what has changed."""
        for task in tasks:
            for name, experiment in task.experiments.items():
                before = self._chapters.get(name)
                now = self._chapters[name] = _Chapter.of(experiment)
                if before is not None and now != before:
                    for line in _news(experiment, before, now):
                        log.warning("experiment '%s': %s (epoch %d)", name, line, experiment.epoch)


def _news(experiment: Experiment, before: _Chapter, now: _Chapter) -> Iterator[str]:
    """What is different, a line each."""
    if now.stage != before.stage:
        policy = experiment.settings.policy.name
        yield f"policy '{policy}' goes on as '{now.stage}', before as '{before.stage}'"
    for arm in now.arms:
        if arm not in before.arms:
            yield f"arm '{arm}' has joined"
    for arm in before.arms:
        if arm not in now.arms:
            yield f"arm '{arm}' was retired"
    if now.frozen != before.frozen:
        pair = now.frozen
        yield f"the pair '{pair[0]}' and '{pair[1]}' is frozen" if pair else "no pair is frozen now"
    if now.status != before.status:
        champion = experiment.plan.champion if experiment.plan else "?"
        yield f"{now.status}, before {before.status}; the champion is '{champion}'"

"""Log events of experiments: changes of champion, status, arms, batch, algorithm, frozen pair."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from streamduel.connector import PartitionCommit
from streamduel.record_rules import ACTION_FIELDS
from streamduel.stream.experiment import Experiment
from streamduel.stream.observer import Observer
from streamduel.stream.task import PartitionTask

log = structlog.stdlib.get_logger(__name__)

CHAMPION_SECONDS: Final = 60.0
"""The time between two lines about the champion of one experiment. While two arms are about equal
the champion may change with every decision, and a thousand experiments share one application
log."""

STATUS_EVENTS: Final = {
    "paused": "experiment paused",
    "finished": "experiment finished",
    "running": "experiment resumed",
}


class _State(NamedTuple):
    """The parts of an experiment whose changes are logged immediately."""

    status: str
    stage: str
    batch: int | None
    arms: tuple[str, ...]
    frozen: tuple[str, str] | None

    @classmethod
    def of(cls, experiment: Experiment) -> _State:
        """The present state."""
        decisions, arms = experiment.decisions, tuple(experiment.roster.arms)
        batch, frozen = decisions.batch[0] if decisions.batch else None, decisions.guardrails.frozen
        return cls(decisions.status_in_force, experiment.policy.stage, batch, arms, frozen)


@dataclass
class _Champion:
    """The champion of an experiment, whose changes are logged once per interval.

    Attributes:
        name: the present one.
        epoch: of the assignment that names it.
        duels: how many there were by then.
        changes: since the last line.
        logged: the champion of the last line.
        logged_at: when that line was written.
    """

    name: str
    epoch: int
    duels: int
    changes: int
    logged: str
    logged_at: float


class ExperimentEvents(Observer):
    """Logs a line when an experiment changes its champion, status, arms, batch or algorithm.

    A line is written when a commit has made the change visible, so a fenced process logs nothing
    that did not happen. The level is info: an operator caused the change or waits for it, and has
    nothing to fix.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._states: dict[str, _State] = {}
        self._champions: dict[str, _Champion] = {}
        self._changed: set[str] = set()
        self._names: dict[int, list[str]] = {}

    def restored(self, task: PartitionTask) -> None:
        """Remember the restored states: changes before them were logged by an earlier process."""
        self._names[task.partition] = list(task.experiments)
        for name, experiment in task.experiments.items():
            self._states[name] = _State.of(experiment)
            self._changed.discard(name)
            if experiment.decisions.plan is not None:
                self._champions[name] = _present_champion(
                    experiment, experiment.decisions.plan.champion
                )

    def lost(self, partitions: Sequence[int]) -> None:
        """Log no earlier changes of their experiments: another process may have changed them."""
        for partition in partitions:
            self._changed.difference_update(self._names.pop(partition, ()))

    def committed(self, tasks: Sequence[PartitionTask], seconds: float) -> None:  # noqa: ARG002
        """Log the changes that have become visible."""
        for task in tasks:
            for name, experiment in task.experiments.items():
                before = self._states.get(name)
                now = self._states[name] = _State.of(experiment)
                if before is not None and now != before:
                    for event, fields in _changes(experiment, before, now):
                        log.info(event, experiment=name, **fields, epoch=experiment.decisions.epoch)
                self._update_champion(experiment)
        self.turned()

    def published(self, commits: Sequence[PartitionCommit]) -> None:
        """Log the control records that took effect, each with its actor."""
        for commit in commits:
            for control in commit.controls:
                values = msgspec.json.decode(msgspec.json.encode(control))  # settings are raw JSON
                fields = {name: values.get(name) for name in ACTION_FIELDS[control.action]}
                log.info(
                    "control applied", experiment=control.experiment, action=control.action,
                    **fields, actor=control.actor, id=control.id,
                )  # fmt: skip

    def _update_champion(self, experiment: Experiment) -> None:
        if experiment.decisions.plan is None:
            return
        name, champion = experiment.name, experiment.decisions.plan.champion
        known = self._champions.get(name)
        if known is None:  # the first champion of an experiment is arbitrary
            self._champions[name] = _present_champion(experiment, champion)
        elif champion != known.name:
            known.changes += 1
            known.name, known.epoch = champion, experiment.decisions.epoch
            known.duels = experiment.policy.duels
            self._changed.add(name)

    def turned(self) -> None:
        """Log changed champions whose interval is over."""
        if not self._changed:
            return
        now = self._clock()
        for name in sorted(self._changed):
            champion = self._champions[name]
            if now - champion.logged_at < CHAMPION_SECONDS:
                continue
            self._changed.remove(name)
            if champion.name == champion.logged:
                continue
            log.info(
                "champion changed", experiment=name, champion=champion.name,
                before=champion.logged, changes=champion.changes, duels=champion.duels,
                epoch=champion.epoch,
            )  # fmt: skip
            champion.logged, champion.logged_at, champion.changes = champion.name, now, 0


def _present_champion(experiment: Experiment, name: str) -> _Champion:
    return _Champion(name, experiment.decisions.epoch, experiment.policy.duels, 0, name, -inf)


def _changes(
    experiment: Experiment, before: _State, now: _State
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events between two states, with their fields."""
    if now.stage != before.stage:
        policy = experiment.settings.policy.name
        yield "algorithm changed", {"policy": policy, "stage": now.stage, "before": before.stage}
    # A reset and a change of arms restart the numbering of batches, which closes none.
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
        champion = experiment.decisions.plan.champion if experiment.decisions.plan else None
        yield STATUS_EVENTS[now.status], {"champion": champion}

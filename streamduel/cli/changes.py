"""How a configuration differs from the experiments of the newest snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from typing import Any, Final, NamedTuple

import msgspec

from streamduel.cli.pending import Pending, read_pending
from streamduel.config import LoadedConfig
from streamduel.config.changes import Difference, changed, check_change
from streamduel.errors import ConfigurationError, shown
from streamduel.records import Control, Rejected
from streamduel.stream import (
    continuity,
    control,
    control_order,
    saved_state,
    settings_change,
    snapshot,
    snapshot_reading,
)
from streamduel.stream.experiment import Experiment
from streamduel.stream.partition_context import PartitionContext

NOT_STARTED: Final = "No experiment runs yet: there is no snapshot to compare with."


class Change(NamedTuple):
    """How a configuration differs from an experiment of the newest snapshots.

    Attributes:
        experiment: its name.
        differences: settings with other values; those that are fixed cannot be applied.
        refused: why the experiment cannot continue, or cannot take the settings; None if it can.
        pending: the settings that are written, and not in effect yet.
    """

    experiment: str
    differences: Sequence[Difference]
    refused: str | None = None
    pending: Sequence[str] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """The new values that a control record can apply, by key."""
        return {it.key: it.configured for it in self.differences if not it.fixed}

    @property
    def partly_applicable(self) -> bool:
        """Whether a control record can apply some of the differences."""
        return self.refused is None and bool(self.settings)

    @property
    def applicable(self) -> bool:
        """Whether a control record can apply all differences."""
        return self.refused is None and not any(it.fixed for it in self.differences)

    def __str__(self) -> str:
        lines = [f"{self.experiment}:"]
        for it in self.differences:
            note = "  (cannot change while it runs; use a new experiment name)"
            lines.append(f"  {it}{note if it.fixed else ''}")
        if self.refused:
            lines.append(f"  refused: {self.refused}")
        if self.pending:
            lines.append(f"  written already, not in effect yet: {', '.join(self.pending)}")
        return "\n".join(lines)


def read_changes(loaded: LoadedConfig, *, after_pending: bool = False) -> list[Change] | None:
    """How the configuration differs from the newest snapshots, by experiment; None without any.

    Args:
        loaded: the configuration.
        after_pending: compare it with the settings after the control records that the service has
            not read yet.

    Raises:
        SnapshotError: a snapshot cannot be read.
        ConnectorError: the log cannot be read.
    """
    with closing(loaded.open_archive()) as archive:
        saved = [found for _, found in snapshot_reading.newest(archive)]
    if not saved:
        return None
    for it in saved:
        control_order.check_topic(it.partition.control, loaded.config.control_topic)
    pending: Pending = {}
    if after_pending:
        pending = read_pending(loaded, {it.partition.partition: it.partition for it in saved})
    return list(_changes(loaded, saved, pending))


def _changes(
    loaded: LoadedConfig, saved: Sequence[snapshot_reading.Saved], pending: Pending
) -> Iterator[Change]:
    for it in saved:
        for name, entry in sorted(it.experiments.items()):
            if name not in loaded.config.experiments:
                continue
            with snapshot_reading.restoring(snapshot.EXPERIMENT_PREFIX + name, it.place):
                experiment = _restored(loaded, it.partition, entry)
                written = _apply(
                    experiment, pending.get((it.partition.partition, name), ()), it.partition.next
                )
                change = _change(experiment, written, it.partition.next)
            if change.differences or change.refused or change.pending:
                yield change


def _restored(
    loaded: LoadedConfig, partition: snapshot.PartitionEntry, saved: snapshot.ExperimentEntry
) -> Experiment:
    """An experiment that answers as the fold would, and is then thrown away."""
    saved_state.check(saved.experiment, saved.state)
    config = loaded.config
    context = PartitionContext.detached(partition.partition, config.dedupe.window_ms, config.limits)
    begun = continuity.begun(saved)
    experiment = Experiment(saved.experiment, begun, context, 0, saved.started_at, saved.state)
    experiment.configured = config.experiments[saved.experiment]
    return experiment


def _apply(experiment: Experiment, pending: Sequence[Control], offset: int) -> list[str]:
    """Apply the pending records; the settings that they change."""
    keys: dict[str, None] = {}
    for each in pending:
        with suppress(Rejected):  # a dead letter
            control.apply(each, experiment, offset)
            if each.action == "apply":
                keys |= dict.fromkeys(each.settings or {})
            elif each.arm is not None:
                keys["arms"] = None
    return list(keys)


def _change(experiment: Experiment, written: Sequence[str], offset: int) -> Change:
    name, roster, running = experiment.name, experiment.roster, experiment.settings
    change = Change(name, settings_change.pending(experiment), pending=written)
    if not change.settings:
        return change
    wanted, retired = change.settings.get("arms"), roster.state()["retired"]
    if taken := [arm for arm in wanted or () if arm in retired]:
        return change._replace(
            refused=f"experiments.{name}.arms has {shown(taken[0])}, which was retired, and its "
            f"name stays taken; leave it out."
        )
    values = {key: msgspec.Raw(msgspec.json.encode(it)) for key, it in change.settings.items()}
    try:
        after, where = changed(running, change.settings), f"experiments.{name}"
        check_change(running, after, wanted or roster.arms, where)
        settings_change.apply(experiment, values, offset)
    except (ConfigurationError, Rejected) as error:
        return change._replace(refused=str(error))
    return change

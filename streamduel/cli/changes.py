"""How a configuration differs from the experiments of the newest snapshots."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

from streamduel.cli.pending import Pending, decoded, read_pending
from streamduel.config import LoadedConfig
from streamduel.config.changes import Difference, changed, check_change, differences
from streamduel.config.experiment import ExperimentSettings
from streamduel.errors import ConfigurationError, shown
from streamduel.records import Control
from streamduel.stream import continuity, control_order, saved_state, snapshot, snapshot_reading

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
                saved_state.check(name, entry.state)
                written = pending.get((it.partition.partition, name), ())
                change = _change(loaded, entry, written)
            if change.differences or change.refused or change.pending:
                yield change


def _change(
    loaded: LoadedConfig, saved: snapshot.ExperimentEntry, pending: Sequence[Control]
) -> Change:
    name = saved.experiment
    running, present, written, retired = _after(saved, pending)
    found = differences(running, present, loaded.config.experiments[name])
    change = Change(name, found, pending=written)
    arms = change.settings.get("arms", ())
    if taken := [arm for arm in arms if arm in retired]:
        return change._replace(
            refused=f"experiments.{name}.arms has {shown(taken[0])}, which was retired, and its "
            f"name stays taken; leave it out."
        )
    after, where = changed(running, change.settings), f"experiments.{name}"
    try:
        check_change(running, after, after.arms if "arms" in change.settings else present, where)
    except ConfigurationError as error:
        return change._replace(refused=str(error))
    return change


def _after(
    saved: snapshot.ExperimentEntry, pending: Sequence[Control]
) -> tuple[ExperimentSettings, Sequence[str], Sequence[str], Collection[str]]:
    """Settings and arms after the pending records, the keys that these change, retired arms."""
    settings, arms = continuity.in_force(saved), saved.state["arms"]
    retired = set(saved.state["retired"])
    keys: dict[str, None] = {}
    for control in pending:
        values = decoded(control)
        if control.action == "retire_arm":
            values = {"arms": [arm for arm in arms if arm != control.arm]}
        elif control.action == "add_arm":
            values = {"arms": list(dict.fromkeys([*arms, control.arm]))}
        try:
            after = changed(settings, values)
        except ConfigurationError:
            continue  # a dead letter
        if retired.intersection(values.get("arms", ())):
            continue  # a dead letter, too
        settings = after if control.action == "apply" else settings
        retired |= {arm for arm in arms if arm not in values.get("arms", arms)}
        arms = values.get("arms", arms)
        keys |= dict.fromkeys(values)
    return settings, arms, tuple(keys), retired

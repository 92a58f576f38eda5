"""Continuity: whether a configuration and a click log continue a snapshot."""

from __future__ import annotations

from typing import Any

from streamduel.config.changes import changed
from streamduel.config.experiment import ExperimentSettings
from streamduel.errors import SnapshotError
from streamduel.formats import FormatSettings
from streamduel.stream.routing import ClickLog
from streamduel.stream.snapshot import ExperimentEntry, PartitionEntry


def check_log(entry: PartitionEntry, log: ClickLog, partition: int) -> None:
    """Refuse the snapshot of another click log, or of one that was repartitioned or recreated.

    Raises:
        SnapshotError: topic, the number of partitions or the id differ.
    """
    topic, partitions = log.topic, log.partitions
    if entry.topic != topic:
        raise SnapshotError(
            f"the snapshot of partition {partition} belongs to '{entry.topic}' (found in place of "
            f"'{topic}'); keep the snapshots of another log in another place, or continue with the "
            f"present state from the start of '{topic}': 'streamduel repair new-log CONFIG'."
        )
    if entry.partitions != partitions:
        raise SnapshotError(
            f"the snapshot was made with {entry.partitions} partitions of '{topic}' (found "
            f"{partitions} now); experiments would change partitions: move them with 'streamduel "
            f"repair repartition CONFIG --from FORMER', or use a new topic."
        )
    found = log.log_id(partition)
    if found is not None and entry.log_id not in {None, found}:
        raise SnapshotError(
            f"the snapshot of partition {partition} was made from '{topic}' with the id "
            f"{entry.log_id} (found {found} now): it was deleted and created again, or replaced, "
            f"and offset {entry.next} is another record now. Continue with the present state from "
            f"the start of the new log: 'streamduel repair new-log CONFIG'; or start over with new "
            f"snapshots, on Kafka also with a new group."
        )


def cut_off(log: ClickLog, partition: int, end: int, offset: int) -> str:
    """The sentence about a click log that ends before the offset of the snapshot."""
    return (
        f"partition {partition} of '{log.topic}' ends at offset {end}, before the next offset of "
        f"the snapshot, {offset}: it was truncated. Restore it; or continue with the "
        f"present state: 'streamduel repair new-log CONFIG' folds it again from its beginning, and "
        f"with --at-end from its present end."
    )


def described(log_format: FormatSettings | None) -> dict[str, Any] | None:
    """The settings of a foreign format as a snapshot contains them."""
    return None if log_format is None else log_format.model_dump(mode="json")


def check_format(entry: PartitionEntry, log_format: FormatSettings | None) -> None:
    """Refuse to continue a click log in another format.

    Raises:
        SnapshotError: the format or its settings differ.
    """
    if entry.log_format != described(log_format):
        before = "none" if entry.log_format is None else f"'{entry.log_format.get('name')}'"
        raise SnapshotError(
            f"source.format must stay what it was, {before} with its settings, while the log is "
            f"read; restore it, or start over with other snapshots."
        )


def begun(saved: ExperimentEntry) -> ExperimentSettings:
    """The settings with which a running experiment began.

    They are validated again, so that a setting of a later release has its default.

    Raises:
        ValueError: they are not allowed, or not those of the state.
    """
    settings = ExperimentSettings.model_validate(saved.settings)
    strange = set(saved.state["arms"]).difference(settings.arms, saved.state["added"])
    if strange:
        raise ValueError(f"arm '{min(strange)}' has never joined")
    return settings


def in_force(saved: ExperimentEntry) -> ExperimentSettings:
    """The settings in force in a snapshot: those that it began with, and those applied later.

    Raises:
        ConfigurationError: the entry has a value that is not allowed.
    """
    return changed(begun(saved), saved.state.get("applied", {}))

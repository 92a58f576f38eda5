"""Continuity: whether a configuration and a click log continue a snapshot."""

from __future__ import annotations

from typing import Any

import msgspec

from streamduel.config.experiment import ExperimentSettings
from streamduel.errors import SnapshotError, shortened
from streamduel.formats import FormatSettings
from streamduel.stream.routing import ClickLog
from streamduel.stream.snapshot import ExperimentEntry, PartitionEntry


def check_log(entry: PartitionEntry, log: ClickLog, partition: int) -> None:
    """Refuse the snapshot of another click log, or of one that was repartitioned or recreated.

    Raises:
        SnapshotError: topic, partition, the number of partitions or the id differ.
    """
    topic, partitions = log.topic, log.partitions
    if (entry.topic, entry.partition) != (topic, partition):
        raise SnapshotError(
            f"the snapshot belongs to partition {entry.partition} of '{entry.topic}' (found in "
            f"place of partition {partition} of '{topic}'); keep the snapshots of another log in "
            f"another place, or continue with the present state from the start of '{topic}': "
            f"'streamduel repair new-log CONFIG'."
        )
    if entry.partitions != partitions:
        raise SnapshotError(
            f"the snapshot was made with {entry.partitions} partitions of '{topic}' (found "
            f"{partitions} now); experiments would change partitions: move them with 'streamduel "
            f"repair repartition CONFIG', or use a new topic."
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


def continued(saved: ExperimentEntry, settings: ExperimentSettings) -> ExperimentSettings:
    """The settings with which a running experiment continues.

    They are those of the configuration. But if it does not name the policy, the experiment keeps
    the one that it began with: the default of another release may be another policy.

    Args:
        saved: the experiment in the snapshot.
        settings: its section of the configuration.

    Raises:
        SnapshotError: a setting differs, or the experiment has ended.
    """
    name = saved.experiment
    if saved.ended_at is not None:
        raise SnapshotError(
            f"experiments.{name} was removed from the configuration at offset {saved.ended_at}, "
            f"and its records since then became dead letters, so it cannot continue; use a "
            f"new experiment name."
        )
    # Validated again, so that a setting of a later release has its default.
    begun = ExperimentSettings.model_validate(saved.settings)
    if not settings.policy.is_named:
        policy = settings.policy.model_copy(update={"name": begun.policy.name})
        settings = settings.model_copy(update={"policy": policy})
    former = begun.model_dump(mode="json")
    for key, value in settings.model_dump(mode="json").items():
        if former[key] != value:
            raise SnapshotError(
                f"experiments.{name}.{key} must stay {_json(former[key])} while the "
                f"experiment runs (found {_json(value)}); restore the value, or "
                f"use a new experiment name."
            )
    return settings


def _json(value: Any) -> str:
    return shortened(msgspec.json.encode(value).decode(), 200)

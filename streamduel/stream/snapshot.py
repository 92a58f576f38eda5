"""Snapshots: the hard state of a partition as named entries of canonical JSON.

The entry `partition` has the offset up to which the other entries are current. Each experiment has
an entry of its own, so that a commit rewrites only what changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec
from msgspec import structs

from streamduel.config.experiment import ExperimentSettings
from streamduel.errors import SnapshotError, shortened
from streamduel.formats import FormatSettings
from streamduel.records import Reason
from streamduel.stream.dedupe import WindowStart
from streamduel.stream.experiment import Experiment
from streamduel.stream.recovery import Mark

FORMAT: Final = 6
"""Grows when the meaning of an entry changes, so that an old program refuses a newer state."""

PARTITION_ENTRY: Final = "partition"
_EXPERIMENT_PREFIX: Final = "experiment/"

Entry = TypeVar("Entry", "PartitionEntry", "ExperimentEntry")


class PartitionEntry(msgspec.Struct, frozen=True):
    """The state of the partition itself.

    Attributes:
        topic: name of the click log.
        partition: the partition.
        partitions: the number of partitions of the click log.
        next: the first offset that is not folded yet.
        stream_time: after the record before `next`.
        window: where a restart starts to re-read the click log, to rebuild the dedupe window and
            what is open.
        open_since: the first offset whose impressions and clicks are re-applied; None if nothing is
            open.
        mark: the newest `Mark` at or before `open_since`; `Marks` continues from it.
        dead_letters: by reason, since the beginning of the click log.
        ignored: ignored records of a foreign click log, by reason.
        log_format: the settings of a foreign format.
    """

    topic: str
    partition: int
    partitions: int
    next: int
    stream_time: int
    window: WindowStart
    open_since: int | None
    mark: Mark
    dead_letters: dict[Reason, int]
    ignored: dict[str, int]
    log_format: dict[str, Any] | None
    format: int = FORMAT


class ExperimentEntry(msgspec.Struct, frozen=True):
    """The state of one experiment.

    Attributes:
        experiment: its name.
        settings: the configuration that it ran with.
        started_at: the first offset that could belong to it.
        state: its hard state.
        ended_at: the offset from which on it was no longer configured; None if it still is.
    """

    experiment: str
    settings: dict[str, Any]
    started_at: int
    state: dict[str, Any]
    ended_at: int | None = None
    format: int = FORMAT


def canonical(value: Any) -> bytes:
    """The JSON text of a value: sorted keys, no blanks, shortest exact numbers.

    >>> canonical({"b": 1.0, "a": [0.5, None]})
    b'{"a":[0.5,null],"b":1.0}'
    """
    return msgspec.json.encode(value, order="sorted")


def state_hash(state: Mapping[str, Any]) -> str:
    """The hash of an experiment's hard state, equal on every machine.

    >>> state_hash({})
    'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a'
    """
    return "sha256:" + hashlib.sha256(canonical(state)).hexdigest()


def encode_experiment(experiment: Experiment) -> tuple[str, bytes]:
    """The name and the bytes of an experiment's entry."""
    entry = ExperimentEntry(
        experiment=experiment.name,
        settings=experiment.settings.model_dump(mode="json"),
        started_at=experiment.started_at,
        state=experiment.state(),
    )
    return _EXPERIMENT_PREFIX + experiment.name, canonical(entry)


def encode_ended(saved: ExperimentEntry, offset: int) -> tuple[str, bytes]:
    """The entry of an experiment that was removed from the configuration at an offset."""
    ended = structs.replace(saved, ended_at=offset)
    return _EXPERIMENT_PREFIX + saved.experiment, canonical(ended)


def partition_entry(entries: Mapping[str, bytes], partition: int) -> PartitionEntry:
    """The partition's entry of a snapshot.

    Raises:
        SnapshotError: it is missing, or cannot be read.
    """
    if PARTITION_ENTRY not in entries:
        raise SnapshotError(
            f"the snapshot of partition {partition} lacks its '{PARTITION_ENTRY}' entry."
        )
    return _decode(entries[PARTITION_ENTRY], PartitionEntry, PARTITION_ENTRY)


def experiment_entries(entries: Mapping[str, bytes]) -> dict[str, ExperimentEntry]:
    """The experiments of a snapshot, by name."""
    return {
        name.removeprefix(_EXPERIMENT_PREFIX): _decode(entry, ExperimentEntry, name)
        for name, entry in entries.items()
        if name.startswith(_EXPERIMENT_PREFIX)
    }


def _decode(text: bytes, kind: type[Entry], name: str) -> Entry:
    try:
        entry = msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise SnapshotError(f"the snapshot's entry '{name}' cannot be read: {error}.") from None
    if entry.format != FORMAT:
        raise SnapshotError(
            f"the snapshot's entry '{name}' has format {entry.format}; this release reads "
            f"format {FORMAT}."
        )
    return entry


def check_log(entry: PartitionEntry, topic: str, partition: int, partitions: int) -> None:
    """Refuse the snapshot of another click log, or of one that was repartitioned.

    Raises:
        SnapshotError: topic, partition or the number of partitions differ.
    """
    if (entry.topic, entry.partition) != (topic, partition):
        raise SnapshotError(
            f"the snapshot belongs to partition {entry.partition} of '{entry.topic}' (found in "
            f"place of partition {partition} of '{topic}'); keep the snapshots of another log "
            f"in another place."
        )
    if entry.partitions != partitions:
        raise SnapshotError(
            f"the snapshot was made with {entry.partitions} partitions of '{topic}' (found "
            f"{partitions} now); experiments would change partitions, so use a new topic."
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
        before = "none" if entry.log_format is None else f"'{entry.log_format['name']}'"
        raise SnapshotError(
            f"source.format must stay what it was, {before} with its settings, while the log is "
            f"read; restore it, or start over with other snapshots."
        )


def check_settings(saved: ExperimentEntry, settings: ExperimentSettings) -> None:
    """Refuse a configuration that contradicts a running experiment, or restarts an ended one.

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
    present = settings.model_dump(mode="json")
    # Validated again, so that a setting of a later release has its default.
    former = ExperimentSettings.model_validate(saved.settings).model_dump(mode="json")
    for key, value in present.items():
        if former[key] != value:
            raise SnapshotError(
                f"experiments.{name}.{key} must stay {_json(former[key])} while the "
                f"experiment runs (found {_json(value)}); restore the value, or "
                f"use a new experiment name."
            )


def _json(value: Any) -> str:
    return shortened(msgspec.json.encode(value).decode(), 200)

"""Snapshots: the hard state of a partition as named entries of canonical JSON.

The entry `partition` has the offset up to which the other entries are current. Each experiment has
an entry of its own, so that a commit rewrites only what changed; the entry `experiments` lists
them. Every entry has a checksum, and the partition's entry the checksum of all others together:
`snapshot_reading` refuses a damaged, missing or older entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType, structs

from streamduel.checksum import seal
from streamduel.records import Reason
from streamduel.stream.control_order import ControlEntry
from streamduel.stream.dedupe import Mark, WindowStart
from streamduel.stream.experiment import Experiment
from streamduel.stream.record_limits import RecordLimits
from streamduel.stream.repairs import Repair
from streamduel.stream.stream_time import ClockReset, ClockState

FORMAT: Final = 7
"""Grows when the meaning of an entry changes, so that an old program refuses a newer state."""

UNSEALED: Final = 6
"""The only format whose entries have no checksum."""

READABLE: Final = range(UNSEALED, FORMAT + 1)
"""The formats that are read; older entries are written again, in the present format, at the first
commit."""

PARTITION_ENTRY: Final = "partition"
EXPERIMENTS_ENTRY: Final = "experiments"
ORIGIN_PREFIX: Final = "origin/"
"""Of the entries with which the state began in this click log, if `streamduel repair` moved it."""
EXPERIMENT_PREFIX: Final = "experiment/"


class PartitionEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of the partition itself.

    Attributes:
        topic: name of the click log.
        partition: the partition.
        partitions: the number of partitions of the click log.
        next: the first offset that is not folded yet.
        stream_time: after the record before `next`.
        window: where a restart starts to re-read the click log, to rebuild the dedupe window and
            what is open; in format 6 it may be after `mark.start`.
        open_since: the first offset whose impressions and clicks are re-applied; None if nothing is
            open.
        mark: the newest `Mark` at or before `open_since`; `Marks` continues from it.
        dead_letters: by reason, since the beginning of the click log.
        ignored: ignored records of a foreign click log, by reason.
        log_format: the settings of a foreign format.
        entries: the checksum of all other entries together; None in format 6.
        log_id: of the click log; None if it has none, and in format 6.
        repairs: what `streamduel repair` did since the state began in this click log.
        control: of control records; None if all came in the click log.
        clock: the state of the clock of stream time; None in format 6.
        window_clock: its state at `window`; None where format 6 was folded.
        resets: where stream time was set since `window`: by a repair, or by a restart whose
            re-read records led to another one.
        evicted: the last offset since `open_since` that was evicted; left out if none was.
        limits: of the records since `window`; left out by releases that did not note them.
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
    control: ControlEntry | None = None
    format: int = FORMAT
    entries: str | None = None
    log_id: str | None = None
    repairs: list[Repair] = []
    clock: ClockState | None = None
    window_clock: ClockState | None = None
    resets: list[ClockReset] = []
    evicted: int | UnsetType = UNSET
    limits: list[RecordLimits] | UnsetType = UNSET


class ExperimentEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of one experiment.

    Attributes:
        experiment: its name.
        settings: those with which it began; its state has those that were applied later.
        started_at: the first offset that could belong to it.
        state: its hard state.
        ended_at: the offset from which on it was no longer configured; None if it still is.
        gaps: the offsets from and until which it was not configured before; left out if it was.
    """

    experiment: str
    settings: dict[str, Any]
    started_at: int
    state: dict[str, Any]
    ended_at: int | None = None
    gaps: list[tuple[int, int]] | UnsetType = UNSET
    format: int = FORMAT


class ExperimentsEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The names of all experiments that have an entry, ended ones included."""

    names: list[str]
    format: int = FORMAT


def canonical(value: Any) -> bytes:
    """The JSON text of a value: sorted keys, no blanks, shortest exact numbers.

    >>> canonical({"b": 1.0, "a": [0.5, None]})
    b'{"a":[0.5,null],"b":1.0}'
    """
    return msgspec.json.encode(value, order="sorted")


def experiment_entry(experiment: Experiment) -> ExperimentEntry:
    """The entry of a running experiment."""
    return ExperimentEntry(
        experiment=experiment.name,
        settings=experiment.begun.in_fold(),
        started_at=experiment.started_at,
        state=experiment.state(),
        gaps=experiment.gaps or UNSET,
    )


class Entries:
    """The entries of one partition, as they are written.

    It knows the checksum of every entry, so that the checksum of all together costs no more than
    encoding those that change.

    Args:
        stored: the entries that are stored already, intact and with checksums.
    """

    def __init__(self, stored: Mapping[str, bytes] | None = None) -> None:
        self._checksums = {
            name: _checksum(text)
            for name, text in (stored or {}).items()
            if name != PARTITION_ENTRY
        }
        self._together = 0
        for each in self._checksums.values():
            self._together ^= each
        self._listed = self._names()
        self._changed: dict[str, bytes] = {}

    def __len__(self) -> int:
        """The number of entries that have changed since `take`."""
        return len(self._changed)

    @property
    def together(self) -> str:
        """The checksum of all entries but the partition's, whatever their order."""
        return f"sha256:{self._together:064x}"

    def put(self, entry: ExperimentEntry) -> None:
        """Write the entry of an experiment with the next commit."""
        self._put(EXPERIMENT_PREFIX + entry.experiment, structs.replace(entry, format=FORMAT))

    def put_origin(self, entries: Mapping[str, bytes]) -> None:
        """Write the entries with which the state begins in another click log."""
        for name, text in entries.items():
            self._put_text(ORIGIN_PREFIX + name, text)

    def take(self, partition: PartitionEntry) -> dict[str, bytes]:
        """Everything to write: the changed entries, and the partition's."""
        names = self._names()
        if names != self._listed or EXPERIMENTS_ENTRY not in self._checksums:
            self._put(EXPERIMENTS_ENTRY, ExperimentsEntry(sorted(names)))
            self._listed = names
        changed, self._changed = self._changed, {}
        entry = structs.replace(partition, entries=self.together, format=FORMAT)
        changed[PARTITION_ENTRY] = seal(canonical(entry))
        return changed

    def _put(self, name: str, entry: msgspec.Struct) -> None:
        self._put_text(name, seal(canonical(entry)))

    def _put_text(self, name: str, text: bytes) -> None:
        new = _checksum(text)
        self._together ^= self._checksums.get(name, 0) ^ new
        self._checksums[name] = new
        self._changed[name] = text

    def _names(self) -> set[str]:
        return {
            name.removeprefix(EXPERIMENT_PREFIX)
            for name in self._checksums
            if name.startswith(EXPERIMENT_PREFIX)
        }


def origin(entries: Mapping[str, bytes]) -> dict[str, bytes]:
    """The stored entries with which the state began in this click log, which never change."""
    return {name: text for name, text in entries.items() if name.startswith(ORIGIN_PREFIX)}


def origin_entries(entries: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those entries as a snapshot; empty if the state began in this click log."""
    return {name.removeprefix(ORIGIN_PREFIX): text for name, text in origin(entries).items()}


def _checksum(sealed: bytes) -> int:
    return int(sealed[-66:-2], 16)

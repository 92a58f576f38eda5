"""Snapshots: the hard state of a partition as named entries of canonical JSON.

The entry `partition` has the offset up to which the other entries are current. Each experiment has
an entry of its own, so that a commit rewrites only what changed; the entry `experiments` lists
them. Every entry has a checksum, and the partition's entry the checksum of all others together: a
damaged, missing or older entry is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, UnsetType, structs

from streamduel.checksum import is_intact, is_sealed, seal, unsealed
from streamduel.connector import Archive, Snapshot
from streamduel.errors import SnapshotError, StreamduelError, shortened
from streamduel.records import Reason
from streamduel.stream.control_order import ControlEntry
from streamduel.stream.dedupe import WindowStart
from streamduel.stream.experiment import Experiment
from streamduel.stream.recovery import Mark
from streamduel.stream.repairs import Repair
from streamduel.stream.stream_time import ClockReset, ClockState

FORMAT: Final = 7
"""Grows when the meaning of an entry changes, so that an old program refuses a newer state."""

UNSEALED: Final = 6
"""The only older format that is read: its entries have no checksum. They are written again, in the
present format, at the first commit."""

PARTITION_ENTRY: Final = "partition"
EXPERIMENTS_ENTRY: Final = "experiments"
ORIGIN_PREFIX: Final = "origin/"
"""Of the entries with which the state began in this click log, if `streamduel repair` moved it."""
EXPERIMENT_PREFIX: Final = "experiment/"

START_OVER: Final = (
    "restore the snapshots from a backup, or start over with new snapshots (on Kafka also with a "
    "new group): the click log is then folded again from its beginning, with the same result if "
    "it is complete"
)

MAX_INTEGER: Final = 2**63 - 1
"""Of an offset or a timestamp, in Kafka."""

UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)
"""What a JSON decoder raises; a ValueError for text that is not UTF-8."""

UNFIT: Final = (
    StreamduelError, msgspec.MsgspecError, LookupError, TypeError, ValueError, ArithmeticError,
    AttributeError, AssertionError, RecursionError,
)  # fmt: skip
"""What restoring an intact entry with impossible content raises."""


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
        resets: where stream time was set since `window`, by a repair or a change of the
            configuration.
        evicted: the last offset since `open_since` that was evicted; left out if none was.
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


class Saved(NamedTuple):
    """A snapshot whose entries are intact and belong together.

    Attributes:
        partition: the partition's entry.
        experiments: the experiments' entries, by name.
        place: where they are stored, for error messages.
    """

    partition: PartitionEntry
    experiments: dict[str, ExperimentEntry]
    place: str


Entry = TypeVar("Entry", PartitionEntry, ExperimentEntry, ExperimentsEntry)


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
        stored: the entries that are stored already, intact and in the present format.
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


def origin_entries(entries: Mapping[str, bytes]) -> dict[str, bytes]:
    """The entries with which the state began in this click log; empty if it began there."""
    return {
        name.removeprefix(ORIGIN_PREFIX): text
        for name, text in entries.items()
        if name.startswith(ORIGIN_PREFIX)
    }


def _checksum(sealed: bytes) -> int:
    return int(sealed[-66:-2], 16)


def read(entries: Mapping[str, bytes], partition: int, place: str = "") -> Saved:
    """Check and decode a snapshot.

    Args:
        entries: its entries, by name.
        partition: whose snapshot it is.
        place: where the entries are stored, for error messages.

    Raises:
        SnapshotError: an entry is damaged, missing, older than the others, of another partition, or
            of a newer format.
    """
    place = place or f"the snapshot of partition {partition}"
    if PARTITION_ENTRY not in entries:
        raise _refused(PARTITION_ENTRY, place, "is missing")
    entry = _decode(entries[PARTITION_ENTRY], PartitionEntry, PARTITION_ENTRY, place)
    if entry.partition != partition:
        raise _refused(PARTITION_ENTRY, place, f"is that of partition {entry.partition}")
    experiments = {}
    for name, text in sorted(entries.items()):
        if name.startswith(EXPERIMENT_PREFIX):
            saved = experiments[name] = _decode(text, ExperimentEntry, name, place)
            if name != EXPERIMENT_PREFIX + saved.experiment:
                raise _refused(name, place, f"is that of experiment '{saved.experiment}'")
            if saved.format != entry.format:
                raise _refused(
                    name, place, f"has format {saved.format}, the partition's {entry.format}"
                )
        elif entry.format != UNSEALED and not is_intact(text):
            raise _refused(name, place, "has a wrong checksum")
    if entry.format != UNSEALED:
        _check_together(entries, entry, place)
    _check_offsets(entry, place)
    return Saved(entry, {it.experiment: it for it in experiments.values()}, place)


def _check_together(entries: Mapping[str, bytes], entry: PartitionEntry, place: str) -> None:
    if EXPERIMENTS_ENTRY not in entries:
        raise _refused(EXPERIMENTS_ENTRY, place, "is missing")
    listed = _decode(entries[EXPERIMENTS_ENTRY], ExperimentsEntry, EXPERIMENTS_ENTRY, place)
    for name in listed.names:
        if EXPERIMENT_PREFIX + name not in entries:
            raise _refused(EXPERIMENT_PREFIX + name, place, "is missing")
    if entry.entries != Entries(entries).together:
        raise _refused(
            PARTITION_ENTRY, place, "was written with other entries than those found: one is "
            "older or newer than the others",
        )  # fmt: skip


def _check_offsets(entry: PartitionEntry, place: str) -> None:
    """Refuse offsets that cannot be."""
    window, mark = entry.window, entry.mark
    offsets = [window.offset, mark.offset, mark.start.offset]
    offsets += [it for it in (entry.open_since, entry.evicted) if isinstance(it, int)]
    times = [entry.stream_time, window.stream_time, mark.start.stream_time]
    for repair in entry.repairs:
        offsets.append(min(repair.at, 0))
        times.append(repair.to if repair.to is not None else -(repair.action == "time"))
    within = max(offsets) <= entry.next <= MAX_INTEGER and max(times) <= MAX_INTEGER
    if min(offsets) < 0 or min(times) < 0 or not within:
        raise _refused(PARTITION_ENTRY, place, "has impossible offsets or times")


def newest(archive: Archive) -> Iterator[tuple[Snapshot, Saved]]:
    """The newest snapshot of each partition that has one.

    Raises:
        SnapshotError: a snapshot cannot be read.
    """
    for partition in archive.partitions():
        if (found := archive.load(partition)) is not None:
            saved = read(found.entries, partition, found.place)
            check_offset(found, saved.partition.next)
            yield found, saved


def check_offset(found: Snapshot, following: int) -> None:
    """Refuse a snapshot whose offset, which has no checksum, is not that of its entries.

    Args:
        found: the snapshot.
        following: `next` of its partition entry.

    Raises:
        SnapshotError: they differ.
    """
    if found.next_offset != following:
        raise SnapshotError(
            f"another program wrote to {found.place or 'the snapshot'}: {found.offset_place} is "
            f"{found.next_offset}, but the commit went to offset {following}. Stop that program, "
            f"and write {following} there."
        )


def _refused(name: str, place: str, what: str) -> SnapshotError:
    what = shortened(" ".join(what.split()), 300)
    return SnapshotError(f"the entry {_quoted(name)} of {place} {what}; {START_OVER}.")


def _quoted(name: str) -> str:
    """A name, of which a damaged one may have any characters."""
    return shortened(repr(name), 300)


class _Format(msgspec.Struct):
    format: int


def _decode(text: bytes, kind: type[Entry], name: str, place: str) -> Entry:
    """Decode an entry; its format comes first, since a newer one may have another checksum."""
    try:
        found = msgspec.json.decode(text, type=_Format).format
    except UNREADABLE as error:
        raise _refused(name, place, f"cannot be read: {error}") from None
    if found not in {UNSEALED, FORMAT}:
        raise SnapshotError(
            f"the entry {_quoted(name)} of {place} has format {found}; this release reads formats "
            f"{UNSEALED} and {FORMAT}: use the release that wrote it, or a later one."
        )
    if (found == FORMAT or is_sealed(text)) and not is_intact(text):
        raise _refused(name, place, "has a wrong checksum")
    try:
        return msgspec.json.decode(unsealed(text), type=kind)
    except UNREADABLE as error:
        raise _refused(name, place, f"cannot be read: {error}") from None


@contextmanager
def restoring(name: str, place: str) -> Iterator[None]:
    """Refuse an entry that is intact and has impossible content.

    Args:
        name: the entry's.
        place: where it is stored.

    Raises:
        SnapshotError: the block raised what such content causes.
    """
    try:
        yield
    except SnapshotError:
        raise
    except UNFIT as error:
        raise _refused(name, place, f"has an impossible content ({error})") from error

"""Reading snapshots: entries that are damaged, or do not belong together, are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeVar

import msgspec

from streamduel.checksum import is_intact, is_sealed, unsealed
from streamduel.connector import Archive, Snapshot
from streamduel.errors import (
    FOLDED_AGAIN,
    SnapshotError,
    StreamduelError,
    another_format,
    shortened,
)
from streamduel.stream.snapshot import (
    EXPERIMENT_PREFIX,
    EXPERIMENTS_ENTRY,
    ORIGIN_PREFIX,
    PARTITION_ENTRY,
    READABLE,
    UNSEALED,
    Entries,
    ExperimentEntry,
    ExperimentsEntry,
    PartitionEntry,
)

START_OVER: Final = (
    "restore the snapshots from a backup, or start over with new snapshots (on Kafka also with a "
    f"new group): {FOLDED_AGAIN}"
)

LATER: Final = "use that one, or a later one"
"""The advice about an intact entry that a later release wrote."""

MAX_INTEGER: Final = 2**63 - 1
"""The largest offset or timestamp of Kafka."""

UNREADABLE: Final = (msgspec.DecodeError, ValueError, RecursionError)
"""What a JSON decoder raises; a ValueError for text that is not UTF-8."""

UNFIT: Final = (
    StreamduelError, msgspec.MsgspecError, LookupError, TypeError, ValueError, ArithmeticError,
    AttributeError, AssertionError, RecursionError,
)  # fmt: skip
"""What restoring an intact entry with impossible content raises."""


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


def read(entries: Mapping[str, bytes], partition: int, place: str = "") -> Saved:
    """Check and decode a snapshot.

    Args:
        entries: its entries, by name.
        partition: whose snapshot it is.
        place: where the entries are stored, for error messages.

    Raises:
        SnapshotError: an entry is damaged, missing, older than the others, of another partition, or
            of a format that this release does not read.
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
            if name in {PARTITION_ENTRY, EXPERIMENTS_ENTRY} or name.startswith(ORIGIN_PREFIX):
                raise _refused(name, place, "has a wrong checksum")
            raise SnapshotError(
                f"the entry {_quoted(name)} of {place} was not written by streamduel: find the "
                f"program that writes there; on Kafka, a record with this key and a null value "
                f"removes the entry."
            )
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
            "older or newer than the others, or another service writes there, too",
        )  # fmt: skip


def _check_offsets(entry: PartitionEntry, place: str) -> None:
    """Refuse impossible offsets."""
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


def _refused(name: str, place: str, what: str, advice: str = START_OVER) -> SnapshotError:
    what = shortened(" ".join(what.split()), 300)
    return SnapshotError(f"the entry {_quoted(name)} of {place} {what}; {advice}.")


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
    if found not in READABLE:
        raise SnapshotError(
            f"the entry {_quoted(name)} of {place} has {another_format(found, READABLE)}"
        )
    if (found != UNSEALED or is_sealed(text)) and not is_intact(text):
        raise _refused(name, place, "has a wrong checksum")
    try:
        return msgspec.json.decode(unsealed(text), type=kind)
    except UNREADABLE as error:
        # The checksum is right, so nothing but a program that knows the field has written it.
        if is_sealed(text) and "unknown field" in str(error):
            what = f"was written by a later release ({error})"
            raise _refused(name, place, what, LATER) from None
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
        advice = f"if a later release wrote it, {LATER}; else {START_OVER}"
        what = f"has an impossible content ({error})"
        raise _refused(name, place, what, advice) from error

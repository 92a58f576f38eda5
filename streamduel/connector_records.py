"""What passes between the stream and a connector: records in, commits and snapshots out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from streamduel.records import Assignment, Control, DeadLetter, Rejected


class LogRecord(Protocol):
    """One record of the click log; the client's own record class can be used if it fits."""

    @property
    def offset(self) -> int:
        """The position in the partition: from 0, increasing; there may be gaps."""

    @property
    def timestamp(self) -> int | None:
        """The timestamp of the Kafka record, in milliseconds since the epoch; negative: none.

        None in a click log without timestamps: stream time then comes from the record's `ts`.
        """

    @property
    def key(self) -> bytes | None:
        """The experiment's name, or None."""

    @property
    def value(self) -> bytes | Rejected | None:
        """The record's text, or None (a tombstone).

        A `Rejected` stands for records that the source could not read, such as a batch that is
        too large: it becomes the dead letter of them all, at the last one's offset.
        """


class ControlRecord(NamedTuple):
    """A record of the control topic, with its offset there; `value` is as in a `LogRecord`."""

    offset: int
    key: bytes | None
    value: bytes | Rejected | None


class ControlMarker(NamedTuple):
    """A `LogRecord` at whose place in the click log records of the control topic take effect.

    Attributes:
        offset: of the marker in the click log, as `timestamp` and `key`.
        controls: the records; empty if they were delivered with an earlier marker.
        value: always None.
        skipped: `streamduel repair` skips it, and with it the records.
    """

    offset: int
    timestamp: int | None
    key: bytes | None
    controls: Sequence[ControlRecord]
    value: None = None
    skipped: bool = False


class Message(NamedTuple):
    """One output.

    Attributes:
        key: its key.
        value: its text.
        content: the struct that `value` encodes, if streamduel built the message.
        experiment: the one that counts a dead letter; None if it is of no experiment.
    """

    key: bytes | None
    value: bytes
    content: Assignment | DeadLetter | None = None
    experiment: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionCommit:
    """What a commit makes visible for one partition.

    Attributes:
        partition: the partition of the click log.
        next_offset: the first offset that is not part of this commit.
        assignments: for the assignments topic, in order.
        dead_letters: for the dead-letter topic, in order.
        entries: the snapshot entries that changed, by name. A name starts with a letter.
        controls: the control records that took effect, in order; no connector needs them.
    """

    partition: int
    next_offset: int
    assignments: Sequence[Message] = ()
    dead_letters: Sequence[Message] = ()
    entries: Mapping[str, bytes] = field(default_factory=dict)
    controls: Sequence[Control] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of one partition as of its last visible commit.

    Attributes:
        next_offset: the `next_offset` of that commit.
        entries: the newest value of every entry ever committed, by name.
        place: where it is stored, for error messages.
        offset_place: where `next_offset` is stored in it, for them, too.
        group: the consumer group that wrote it; None if there was none, or it is unknown.
        assignments: where its assignments were published; None if that is unknown.
        moved: whether the outlet that loaded it publishes assignments elsewhere: the next commit
            then has the last assignment of each experiment again.
    """

    next_offset: int
    entries: Mapping[str, bytes]
    place: str = field(default="", compare=False)
    offset_place: str = field(default="its next offset", compare=False)
    group: str | None = field(default=None, compare=False)
    assignments: str | None = field(default=None, compare=False)
    moved: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Poll:
    """The result of one poll of a source.

    Attributes:
        lost: partitions that this process no longer owns; handle them before `gained`.
        gained: partitions that it owns now; they deliver nothing before `Source.seek`.
        records: per partition, in the order of their offsets.
        missed: partitions whose next records were deleted before they were delivered, each with the
            first offset that is left. Never in a poll with `hold`, whose task is behind.
        unreadable: why some of this process's partitions cannot be read although the click log can
            be reached, without a full stop; empty if all can be read.
    """

    lost: Sequence[int] = ()
    gained: Sequence[int] = ()
    records: Mapping[int, Sequence[LogRecord]] = field(default_factory=dict)
    missed: Mapping[int, int] = field(default_factory=dict)
    unreadable: str = ""

"""A model of a Kafka cluster: the click log, transactions, read_committed and committed offsets."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from streamduel.connector import ControlRecord, Snapshot
from streamduel.testing.broker import START
from streamduel.testing.records import Record
from streamduel.testing.simulation.group import Group, Refused
from streamduel.testing.simulation.workload import home

ASSIGNMENTS: Final = ("assignments", 0)
DEAD_LETTERS: Final = ("dead-letters", 0)
OFFSETS: Final = ("__consumer_offsets", 0)
SNAPSHOTS: Final = "snapshots"
NEXT_OFFSET: Final = "_next"
"""The key under which a commit keeps its `next_offset`; no entry's name begins with '_'."""

LOG_ID: Final = "simulated"
"""The id of the click log's first topic."""

NO_METADATA: Final = -1
"""The metadata of an offset that an administrator has set."""

Place = tuple[str, int]
"""A topic and one of its partitions."""


class NotReady(Exception):  # noqa: N818 - no error: the client asks again
    """A transaction is not decided, or not marked everywhere yet."""


class Write(NamedTuple):
    """A record that a transaction wrote at an offset."""

    transaction: Transaction
    offset: int
    key: str | bytes | None
    value: bytes


@dataclass(eq=False)
class Transaction:
    """A transaction.

    Attributes:
        producer: its transactional id.
        began: when.
        status: open until it is decided.
        unmarked: where it wrote, as long as no marker there says how it was decided.
        writes: all its records.
        offsets: the committed offset of each partition, if it commits.
        metadata: what is stored with each.
    """

    producer: str
    began: int
    status: str = "open"
    unmarked: dict[Place, None] = field(default_factory=dict)
    writes: list[tuple[Place, Write]] = field(default_factory=list)
    offsets: dict[int, int] = field(default_factory=dict)
    metadata: dict[int, int] = field(default_factory=dict)


@dataclass
class _Producer:
    epoch: int = 0
    transaction: Transaction | None = None


class Cluster:
    """Everything that is stored outside the processes.

    A transaction is decided in one step and then marked in every partition that it wrote to, one
    after another (`mark`). A reader sees a partition up to the first record of a transaction that
    is not marked there.

    Args:
        clicks: the click log, per partition; a producer appends it step by step.
        controls: the control topic, per partition, appended in the same way.
        rng: draws the assignment of partitions.
        session_ms: the session timeout of the group.
        transaction_ms: the timeout of transactions.
        committed: called with every transaction that commits.

    Attributes:
        now: milliseconds.
        starts: per partition, the first offset that retention has left.
        high: per partition, the number of records that were appended.
        control_high: the same of the control topic.
        stable: per partition, how many of them are not behind an open transaction.
        offsets: the group's committed offsets.
        metadata: what was committed with them.
        log_id: the id of the click log's topic.
        snapshots: the topic of the snapshots.
    """

    def __init__(
        self,
        clicks: Sequence[list[Record]],
        controls: Sequence[Sequence[ControlRecord]],
        rng: random.Random,
        session_ms: int,
        transaction_ms: int,
        committed: Callable[[Transaction], None],
    ) -> None:
        self.now = 0
        self.clicks = clicks
        self.controls = controls
        self.log_id = LOG_ID
        self.snapshots = SNAPSHOTS
        self._empty()
        self.group = Group(len(clicks), rng, session_ms)
        self.markers: list[tuple[Transaction, Place]] = []
        self._resets: dict[int, tuple[int, int]] = {}
        self._damaged: list[tuple[Place, Write, Write]] = []
        self._logs: dict[Place, list[Write]] = defaultdict(list)
        self._written: Counter[Place] = Counter()
        self._producers: dict[str, _Producer] = defaultdict(_Producer)
        self._transaction_ms = transaction_ms
        self._committed = committed

    # The click log.

    def fetch(self, partition: int, position: int, limit: int) -> Sequence[Record]:
        """Records from a position on."""
        log = self.clicks[partition]
        first = bisect_left(log, max(position, self.starts[partition]), key=_offset)
        return log[first : min(first + limit, self.stable[partition])]

    def end(self, partition: int, count: int) -> int:
        """The offset after so many records."""
        return self.clicks[partition][count - 1].offset + 1 if count else 0

    def append(self, partition: int, key: bytes | None, value: bytes) -> None:
        """A process of the service appends a record to the click log."""
        log, at = self.clicks[partition], self.high[partition]
        offset = self.end(partition, at)
        log[at:] = [
            Record(offset, value, log[at - 1].timestamp if at else START, key),
            *(record._replace(offset=record.offset + 1) for record in log[at:]),
        ]
        self.high[partition] += 1

    def read_controls(self, partition: int, position: int) -> Sequence[ControlRecord]:
        """The record of the control topic at a position, if there is one."""
        return self.controls[partition][position : min(position + 1, self.control_high[partition])]

    def delete(self, partition: int, offset: int) -> None:
        """Retention deletes the click log up to an offset."""
        self.starts[partition] = max(self.starts[partition], offset)

    def replace_log(self, clicks: Sequence[list[Record]]) -> None:
        """Delete the topic, and with it the group's offsets, and create it again, empty.

        With another number of partitions, the snapshots have another topic. There is no control
        topic.
        """
        if len(clicks) != len(self.clicks):
            self.snapshots += "'"
        self.log_id += "'"
        self.clicks, self.controls = clicks, [[] for _ in clicks]
        self._resets.clear()
        self._empty()
        self.group.replace(len(clicks))

    def _empty(self) -> None:
        partitions = len(self.clicks)
        self.starts = [0] * partitions
        self.high = [0] * partitions
        self.control_high = [0] * partitions
        self.stable = [0] * partitions
        self.offsets: dict[int, int] = {}
        self.metadata: dict[int, int] = {}

    def home(self, experiment: str) -> int:
        """The partition of an experiment."""
        return home(experiment, len(self.clicks))

    # Transactions.

    def register(self, producer: str) -> int:
        """InitProducerId: fence former producers of this id and end their transaction."""
        state = self._producers[producer]
        transaction = state.transaction
        if transaction is not None:
            if transaction.status == "open":
                state.epoch += 1
                self._decide(transaction, "aborted")
            if transaction.unmarked:
                raise NotReady
            state.transaction = None
        state.epoch += 1
        return state.epoch

    def produce(
        self,
        producer: str,
        epoch: int,
        place: Place,
        records: Iterable[tuple[str | bytes | None, bytes]],
    ) -> int:
        """Append records to a partition, in the producer's transaction; the last one's offset."""
        transaction = self._open(producer, epoch)
        transaction.unmarked[place] = None
        for key, value in records:
            self._written[place] += 1
            write = Write(transaction, self._written[place], key, value)
            self._logs[place].append(write)
            transaction.writes.append((place, write))
        return self._written[place]

    def add_offsets(
        self, producer: str, epoch: int, member: str, generation: int, offsets: dict[int, int],
        metadata: dict[int, int],
    ) -> None:  # fmt: skip
        """TxnOffsetCommit: add the group's offsets to the transaction, as a member of the group."""
        self.group.check(member, generation)
        transaction = self._open(producer, epoch)
        transaction.unmarked[OFFSETS] = None
        transaction.offsets.update(offsets)
        transaction.metadata.update(metadata)

    def finish(self, producer: str, epoch: int, status: str) -> None:
        """EndTxn: decide the producer's transaction."""
        transaction = self._current(producer, epoch).transaction
        if transaction is None or transaction.status not in {"open", status}:
            raise Refused("there is no open transaction")
        if transaction.status == "open":
            self._decide(transaction, status)

    def _current(self, producer: str, epoch: int) -> _Producer:
        state = self._producers[producer]
        if state.epoch != epoch:
            raise Refused(f"the producer has epoch {epoch}, the newest is {state.epoch}")
        return state

    def _open(self, producer: str, epoch: int) -> Transaction:
        state = self._current(producer, epoch)
        before = state.transaction
        if before is not None and before.status == "open":
            return before
        if before is not None and before.unmarked:
            raise NotReady
        state.transaction = Transaction(producer, self.now)
        return state.transaction

    def _decide(self, transaction: Transaction, status: str) -> None:
        transaction.status = status
        self.markers += [(transaction, place) for place in transaction.unmarked]
        if status == "committed":
            self._committed(transaction)

    def mark(self, index: int) -> None:
        """Write one of the markers that are due."""
        transaction, place = self.markers.pop(index)
        del transaction.unmarked[place]
        if place == OFFSETS and transaction.status == "committed":
            self.offsets.update(transaction.offsets)
            self.metadata.update(transaction.metadata)

    def expire(self) -> None:
        """Remove silent members from the group, and abort transactions that are open too long."""
        self.group.expire(self.now)
        for state in self._producers.values():
            transaction = state.transaction
            if (
                transaction is not None
                and transaction.status == "open"
                and self.now - transaction.began > self._transaction_ms
            ):
                state.epoch += 1
                self._decide(transaction, "aborted")

    def abort_any(self, producer: str) -> None:
        """The coordinator aborts and fences a producer, for reasons of its own."""
        state = self._producers[producer]
        if state.transaction is not None and state.transaction.status == "open":
            state.epoch += 1
            self._decide(state.transaction, "aborted")

    @property
    def settled(self) -> bool:
        """Whether no transaction hides anything from readers."""
        states = self._producers.values()
        return all(it.transaction is None or not it.transaction.unmarked for it in states)

    # What read_committed readers see.

    def read(self, place: Place) -> list[Write]:
        """The committed records of a partition, up to the last stable offset."""
        visible = []
        for write in self._logs[place]:
            if place in write.transaction.unmarked:
                break
            if write.transaction.status == "committed":
                visible.append(write)
        return visible

    def snapshot_offset(self, partition: int) -> int:
        """Where the newest committed record of a partition's snapshot was written."""
        return max((write.offset for write in self.read((self.snapshots, partition))), default=-1)

    def snapshot(self, partition: int, topic: str | None = None) -> Snapshot | None:
        """The newest committed entries of a partition's snapshot."""
        place = (topic or self.snapshots, partition)
        entries = {str(write.key): write.value for write in self.read(place)}
        entries = {name: value for name, value in entries.items() if value}  # else a tombstone
        next_offset = entries.pop(NEXT_OFFSET, None)
        return None if next_offset is None else Snapshot(int(next_offset), entries)

    def compact(self, partition: int) -> None:
        """Compact a snapshot: of committed records, the newest of each key stay."""
        place = (self.snapshots, partition)
        visible = self.read(place)
        newest = {write.key: index for index, write in enumerate(visible)}
        kept = [write for index, write in enumerate(visible) if newest[write.key] == index]
        log = self._logs[place]
        first_open = next(
            (at for at, write in enumerate(log) if place in write.transaction.unmarked), len(log)
        )
        self._logs[place] = kept + log[first_open:]

    def damage(self, partition: int, rng: random.Random) -> str:
        """Change a byte of a snapshot entry, delete the entry, or bring an older one back."""
        place = (self.snapshots, partition)
        writes = [write for write in self.read(place) if write.key != NEXT_OFFSET and write.value]
        if not writes:
            return "nothing to damage"
        older = rng.choice(writes)
        newest = next(write for write in reversed(writes) if write.key == older.key)
        former, latest = (it.transaction.offsets.get(partition) for it in (older, newest))
        # An older entry of the same offset may make a former snapshot complete, which nothing
        # shows.
        other = older.value if former != latest else b""
        value = rng.choice((other, b"", _garbled(newest.value, rng)))
        bad = newest._replace(value=value)
        log = self._logs[place]
        log[next(at for at, write in enumerate(log) if write is newest)] = bad
        self._damaged.append((place, bad, newest))
        return f"damages {newest.key!r} of partition {partition}"

    def reset_offset(self, partition: int, by: int) -> None:
        """Set a committed offset as an administrator, which drops its metadata."""
        former = self.offsets[partition], self.metadata[partition]
        self.offsets[partition], self.metadata[partition] = former[0] + by, NO_METADATA
        self._resets[partition] = former

    @property
    def has_resets(self) -> bool:
        """Whether an administrator has set an offset."""
        return bool(self._resets)

    def repair(self) -> None:
        """Restore damaged entries, and the offsets that an administrator has set."""
        for partition, former in self._resets.items():
            if self.metadata.get(partition) == NO_METADATA:
                self.offsets[partition], self.metadata[partition] = former
        self._resets.clear()
        while self._damaged:
            place, bad, good = self._damaged.pop()
            self._logs[place] = [good if write is bad else write for write in self._logs[place]]

    def committed(self, partition: int) -> tuple[int, int] | None:
        """The committed offset and its metadata, once nothing can change it (require_stable)."""
        for state in self._producers.values():
            transaction = state.transaction
            if (
                transaction is not None
                and partition in transaction.offsets
                and OFFSETS in transaction.unmarked
            ):
                raise NotReady
        if partition not in self.offsets:
            return None
        return self.offsets[partition], self.metadata[partition]


def _garbled(value: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(value))
    return value[:at] + bytes([rng.randrange(256)]) + value[at + 1 :]


def _offset(record: Record) -> int:
    return record.offset

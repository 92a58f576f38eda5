"""An in-memory broker whose click log contains the failures of its consumers.

broker = Broker([record, record, CRASH, record, FENCE, record])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import count

from streamduel.config import Config
from streamduel.connector import (
    Failpoint,
    Message,
    PartitionCommit,
    Poll,
    Snapshot,
    no_failpoint,
)
from streamduel.errors import Fenced
from streamduel.stream.observer import Observer
from streamduel.stream.runner import Runner
from streamduel.testing.records import Record

START = 1_790_000_000_000
"""Broker timestamp of the first record, in milliseconds; each further record is 1 ms later."""


class Fault(Enum):
    """A failure at a position of the click log; it happens once, when a source gets there."""

    CRASH = "the process dies"
    REBALANCE = "the partition is revoked and assigned again"
    FENCE = "the next commit is refused"
    UNREACHABLE = "the log cannot be reached for one poll"
    END_OF_POLL = "a poll returns what it has"
    DUPLICATE = "the producer retries: the record before is in the log once more"


CRASH, REBALANCE, FENCE, UNREACHABLE, END_OF_POLL, DUPLICATE = Fault


class Crash(BaseException):
    """The process died: no `except Exception` may clean up."""


@dataclass
class Broker:
    """A click log of one partition, and everything that is stored outside the process.

    Attributes:
        log: values, whole records, and faults between them.
        snapshots: the newest snapshot of each partition.
        assignments: the assignments topic.
        dead_letters: the dead-letter topic.
        commits: how many commits succeeded.
        log_id: what `Source.log_id` returns.
        owner: the source that gained the partition last.
    """

    log: Sequence[bytes | Record | Fault]
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    assignments: list[Message] = field(default_factory=list)
    dead_letters: list[Message] = field(default_factory=list)
    commits: int = 0
    log_id: str | None = None
    owner: MemorySource | None = field(default=None, repr=False, compare=False)
    fence_next: bool = field(default=False, repr=False)
    happened: set[int] = field(default_factory=set, repr=False)

    def records(self) -> list[Record]:
        """The records of the log, duplicates included."""
        records: list[Record] = []
        for item in self.log:
            offset = len(records)
            if isinstance(item, Record):
                records.append(item)
            elif isinstance(item, bytes):
                records.append(Record(offset, item, START + offset))
            elif item is DUPLICATE and records:
                records.append(records[-1]._replace(offset=offset))
        return records

    def faults(self) -> list[tuple[int, int, Fault]]:
        """The faults: offset of the record that follows, position in `log`, fault."""
        faults: list[tuple[int, int, Fault]] = []
        offset = 0
        for position, item in enumerate(self.log):
            if isinstance(item, Fault) and item is not DUPLICATE:
                faults.append((offset, position, item))
            elif item is not DUPLICATE or offset:
                offset += 1
        return faults

    def source(self) -> MemorySource:
        """A source of the click log, as one process opens it."""
        return MemorySource(self)

    def outlet(self) -> MemoryOutlet:
        """An outlet, as one process opens it; it is an archive, too."""
        return MemoryOutlet(self)


class MemorySource:
    """A `Source` that delivers the click log up to the next fault."""

    topic = "clicks"
    partitions = 1

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._records = broker.records()
        self._faults = broker.faults()
        self._position: int | None = None
        self._ownership: Poll | None = Poll(gained=[0])
        self.connected = True
        self.closed = False

    def home(self, experiment: str) -> int:  # noqa: ARG002
        """Partition 0, for every experiment."""
        return 0

    def log_id(self, partition: int) -> str | None:  # noqa: ARG002
        """The id of the broker's click log."""
        return self._broker.log_id

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:  # noqa: ARG002
        """The records up to the next fault, or the fault."""
        if hold:
            return Poll()
        if self._ownership is not None:
            ownership, self._ownership = self._ownership, None
            self._broker.owner = self
            return ownership
        self.connected = True
        if self._position is None:
            return Poll()
        end = len(self._records)
        for offset, position, fault in self._faults:
            if position not in self._broker.happened and offset >= self._position:
                if offset == self._position:
                    self._broker.happened.add(position)
                    return self._fail(fault)
                end = offset
                break
        records = self._records[self._position : end]
        self._position = end
        return Poll(records={0: records} if records else {})

    def _fail(self, fault: Fault) -> Poll:
        match fault:
            case Fault.CRASH:
                raise Crash
            case Fault.REBALANCE:
                self._position = None
                return Poll(lost=[0], gained=[0])
            case Fault.FENCE:
                self._broker.fence_next = True
            case Fault.UNREACHABLE:
                self.connected = False
        return Poll()

    def seek(self, partition: int, offset: int | None) -> int:  # noqa: ARG002
        """Deliver from this offset on, up to the present end."""
        self._records, self._faults = self._broker.records(), self._broker.faults()
        self._position = offset or 0
        return self._position

    def caught_up(self, partition: int) -> bool:  # noqa: ARG002
        """Whether all records were delivered and all faults have happened."""
        pending = any(position not in self._broker.happened for _, position, _ in self._faults)
        return self._position == len(self._records) and not pending

    def lags(self, partitions: Sequence[int]) -> dict[int, int]:
        """The records that are not delivered yet."""
        return dict.fromkeys(partitions, len(self._records) - (self._position or 0))

    def stable_offset_lags(self, partitions: Sequence[int]) -> dict[int, int]:  # noqa: ARG002
        """Nothing: there are no transactions of other producers."""
        return {}

    def reannounce(self) -> None:
        """Report the partition as lost and gained."""
        self._position = None
        self._ownership = Poll(lost=[0], gained=[0])

    def close(self) -> None:
        """Close the source."""
        self.closed = True


class MemoryOutlet:
    """An `Outlet` and an `Archive`: an unfinished commit is lost with the process.

    Args:
        broker: the broker.
        source: the process's source: commits are refused once another one has gained the partition.
            Without it, no other source matters.
    """

    compacted = False

    def __init__(self, broker: Broker, source: MemorySource | None = None) -> None:
        self._broker = broker
        self._source = source
        self._open: list[PartitionCommit] | None = None

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        """Hold outputs and entries back until `finish`."""
        assert self._open is None, "one commit at a time"
        self._open = list(commits)

    def finish(self, commits: Sequence[PartitionCommit]) -> None:
        """Store all of it, or raise `Fenced` after a `FENCE`, and if another source owns it."""
        assert self._open == list(commits)
        self._open = None
        replaced = self._source not in (None, self._broker.owner)
        if replaced or self._broker.fence_next:
            self._broker.fence_next = False
            raise Fenced("partition 0 belongs to another process now.")
        for commit in commits:
            former = self.load(commit.partition)
            entries = {**(former.entries if former else {}), **commit.entries}
            self._broker.snapshots[commit.partition] = Snapshot(commit.next_offset, entries)
            self._broker.assignments += commit.assignments
            self._broker.dead_letters += commit.dead_letters
        self._broker.commits += 1

    def partitions(self) -> Sequence[int]:
        """The partitions with a snapshot."""
        return sorted(self._broker.snapshots)

    def load(self, partition: int) -> Snapshot | None:
        """The snapshot of the last finished commit."""
        return self._broker.snapshots.get(partition)

    def published(self) -> Iterator[Message]:
        """The assignments of all finished commits."""
        yield from list(self._broker.assignments)

    def close(self) -> None:
        """Drop the open commit."""
        self._open = None


def run(
    config: Config,
    broker: Broker,
    *,
    observers: Sequence[Observer] = (),
    failpoint: Failpoint = no_failpoint,
) -> int:
    """Run the service to the end of the broker's log, and restart it after every crash.

    The runner's clock advances by one second each time it is read, so nothing depends on how fast
    the machine is.

    Args:
        config: its experiments; what it says of source, sink and snapshots is not used.
        broker: the click log, with its faults, and what is stored.
        observers: the observers of every run.
        failpoint: called between the steps of each commit; raise `Crash` in it to die there.

    Returns:
        The number of runs, one more than there were crashes.
    """
    for runs in count(1):
        clock = partial(next, count())
        runner = Runner(config, broker.source(), broker.outlet(), clock, observers, failpoint)
        try:
            runner.run(lambda: False, until_end=True)
        except Crash:
            continue
        return runs
    raise AssertionError

"""A connector in memory whose log holds the accidents: the crash is an element of the input.

    broker = Broker([record, record, CRASH, record, FENCE, record])

Nothing sleeps, and the clock is moved by hand: each test of a recovery is a few lines long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from streamduel.connector import LogRecord, Message, Outlet, PartitionCommit, Poll
from streamduel.errors import Fenced
from tests.logs import Record


class Accident(Enum):
    """What happens when the source comes to it; it takes no offset."""

    CRASH = "the process dies"
    REBALANCE = "the partition is taken away and handed back"
    FENCE = "the next commit is refused"
    AWAY = "the log cannot be reached for one poll"
    PAUSE = "a poll ends here"


CRASH, REBALANCE, FENCE, AWAY, PAUSE = Accident


class Crash(BaseException):
    """The process is gone: no handler may tidy up."""


@dataclass
class Broker:
    """The outside world: it survives the crashes."""

    log: Sequence[bytes | Record | Accident]
    entries: dict[int, dict[str, bytes]] = field(default_factory=dict)
    assignments: list[Message] = field(default_factory=list)
    dead_letters: list[Message] = field(default_factory=list)
    commits: int = 0
    fence_next: bool = False
    struck: set[int] = field(default_factory=set)

    def records(self) -> list[Record]:
        """The log without its accidents."""
        plain = [item for item in self.log if not isinstance(item, Accident)]
        return [
            item if isinstance(item, Record) else Record(offset, item, 1_790_000_000_000 + offset)
            for offset, item in enumerate(plain)
        ]


class MemorySource:
    """Delivers the log up to the next accident, which strikes once."""

    topic = "clicks"
    partitions = 1

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._records = broker.records()
        self._accidents = self._placed()
        self._position: int | None = None
        self._events: list[str] = ["gained"]
        self.connected = True
        self.closed = False

    def _placed(self) -> list[tuple[int, int, Accident]]:
        """Each accident with the offset before which it strikes."""
        placed, offset = [], 0
        for index, item in enumerate(self._broker.log):
            if isinstance(item, Accident):
                placed.append((offset, index, item))
            else:
                offset += 1
        return placed

    def home(self, experiment: str) -> int:
        return 0

    def poll(self, timeout: float) -> Poll:
        if self._events:
            lost = [0] if "lost" in self._events else []
            gained = [0] if "gained" in self._events else []
            self._events = []
            return Poll(lost=lost, gained=gained)
        self.connected = True
        if self._position is None:
            return Poll()
        end = len(self._records)
        for offset, index, accident in self._accidents:
            if index not in self._broker.struck and offset >= self._position:
                if offset == self._position:
                    self._broker.struck.add(index)
                    return self._strike(accident)
                end = offset
                break
        records = self._records[self._position : end]
        self._position = end
        return Poll(records={0: records} if records else {})

    def _strike(self, accident: Accident) -> Poll:
        match accident:
            case Accident.CRASH:
                raise Crash
            case Accident.REBALANCE:
                self._position = None
                return Poll(lost=[0], gained=[0])
            case Accident.FENCE:
                self._broker.fence_next = True
            case Accident.AWAY:
                self.connected = False
        return Poll()

    def seek(self, partition: int, offset: int | None) -> int:
        self._position = offset or 0
        return self._position

    def caught_up(self, partition: int) -> bool:
        pending = any(index not in self._broker.struck for _, index, _ in self._accidents)
        return self._position == len(self._records) and not pending

    def lags(self, partitions: Sequence[int]) -> dict[int, int]:
        return dict.fromkeys(partitions, len(self._records) - (self._position or 0))

    def reannounce(self) -> None:
        self._position = None
        self._events = ["lost", "gained"]

    def close(self) -> None:
        self.closed = True


class MemoryOutlet:
    """Sink and snapshot store: what `finish` has not blessed is gone with the process."""

    compacted = False

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._open: list[PartitionCommit] | None = None

    def begin(self) -> None:
        assert self._open is None, "one commit at a time"
        self._open = []

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        assert self._open == []
        self._open = list(commits)

    def save(self, commits: Sequence[PartitionCommit]) -> None:
        assert self._open == list(commits)

    def finish(self, commits: Sequence[PartitionCommit]) -> None:
        assert self._open == list(commits)
        self._open = None
        if self._broker.fence_next:
            self._broker.fence_next = False
            raise Fenced("partition 0 belongs to another process now.")
        for commit in commits:
            self._broker.entries.setdefault(commit.partition, {}).update(commit.entries)
            self._broker.assignments += commit.assignments
            self._broker.dead_letters += commit.dead_letters
        self._broker.commits += 1

    def partitions(self) -> Sequence[int]:
        return sorted(self._broker.entries)

    def load(self, partition: int) -> dict[str, bytes]:
        return dict(self._broker.entries.get(partition, {}))

    def published(self) -> Iterator[Message]:
        yield from list(self._broker.assignments)

    def close(self) -> None:
        self._open = None


def outlet(broker: Broker) -> Outlet:
    """A sink and a snapshot store, as one process opens them."""
    both = MemoryOutlet(broker)
    return Outlet(both, both)


def delivered(records: Sequence[LogRecord]) -> list[tuple[int, bytes | None]]:
    """What matters of delivered records."""
    return [(record.offset, record.value) for record in records]

"""The source and the outlet of a simulated process: what the Kafka connector does, on the model.

Every request to the cluster may be the last thing that the process does, may fail, may be answered
too late or never, and may be overtaken by any request of another process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from streamduel.connector import PartitionCommit, Poll, Snapshot
from streamduel.errors import ConnectorError, Fenced
from streamduel.testing.simulation.cluster import (
    ASSIGNMENTS,
    DEAD_LETTERS,
    LOG_ID,
    NEXT_OFFSET,
    SNAPSHOTS,
    Cluster,
    NotReady,
    Place,
)
from streamduel.testing.simulation.group import Displaced, Refused, UnknownMember

if TYPE_CHECKING:
    from streamduel.testing.records import Record

Answer = TypeVar("Answer")

FETCHED = 50
"""The most records of a partition that a poll returns."""

RETRY_SECONDS = 0.005
"""Between two attempts to load a snapshot."""


class Unreachable(Exception):  # noqa: N818 - as the network puts it
    """No answer came; the request may have been executed, or may be executed later."""


class Network(Protocol):
    """The connection of one process to the cluster."""

    name: str
    cluster: Cluster

    def sleep(self, seconds: float) -> None:
        """Let other processes act for a time."""

    def request(self, step: str, request: Callable[[], Answer]) -> Answer:
        """Let other processes act, and execute a request.

        Raises:
            Unreachable: there is no answer.
            Refused: the cluster refuses it.
            NotReady: the cluster cannot answer yet.
        """


class SimulatedSource:
    """A `Source` of the model's click log, as a static member of its group."""

    topic = "clicks"

    def __init__(self, network: Network, home: Callable[[str], int]) -> None:
        self._network = network
        self._cluster = network.cluster
        self.partitions = len(self._cluster.clicks)
        self.home = home
        self.connected = True
        self.membership: tuple[str, int] | None = None
        """Member id and generation that own the partitions; commits must carry them."""
        self._member: str | None = None
        self._assigned: frozenset[int] = frozenset()
        self._positions: dict[int, int] = {}
        self._targets: dict[int, int] = {}
        self._again = False

    def owns(self, partition: int) -> bool:
        """Whether this process owns a partition, and has called `seek` for it."""
        return partition in self._positions

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:
        """Fetch, then ask for the ownership: records of a partition that is lost are dropped."""
        again, self._again = self._again, False
        self.connected = True
        fetched: dict[int, Sequence[Record]] = {}
        try:
            fetched = {} if hold else self._network.request("fetch", self._fetch)
        except Unreachable:
            self.connected = False
        changed = self._coordinate()
        if again or changed:
            lost, self._assigned = sorted(self._assigned), self._owned()
            self._positions.clear()
            return Poll(lost, sorted(self._assigned))
        for partition, records in fetched.items():
            self._positions[partition] = records[-1].offset + 1
        if not fetched:
            self._network.sleep(timeout)
        return Poll(records=fetched)

    def _fetch(self) -> dict[int, Sequence[Record]]:
        fetched = {
            partition: self._cluster.fetch(partition, position, FETCHED)
            for partition, position in self._positions.items()
        }
        return {partition: records for partition, records in fetched.items() if records}

    def _coordinate(self) -> bool:
        """Join the group or send a heartbeat; True when the ownership has changed."""
        group, network = self._cluster.group, self._network
        try:
            if self._member is None:
                self._member = network.request(
                    "join", lambda: group.join(network.name, self._cluster.now)
                )
            member = self._member
            self._generation, self._granted = network.request(
                "heartbeat", lambda: group.heartbeat(member, self._cluster.now)
            )
        except Unreachable:
            self.connected = False
            return False
        except Displaced as why:
            raise ConnectorError(f"the name '{network.name}' is taken: {why}.") from why
        except UnknownMember:
            self._member, self._granted = None, frozenset()
            changed, self.membership = self.membership is not None, None
            return changed
        membership = (member, self._generation)
        changed, self.membership = membership != self.membership, membership
        return changed

    def _owned(self) -> frozenset[int]:
        return self._granted if self.membership else frozenset()

    def seek(self, partition: int, offset: int | None) -> int:
        """Deliver a partition from this offset on, or from the beginning that retention left."""
        begin, end = _repeated(
            self._network, "bounds", lambda: (self._cluster.starts[partition], self._end(partition))
        )
        start = begin if offset is None else max(begin, offset)
        if start > end:
            raise ConnectorError(f"partition {partition} ends at {end}, before offset {start}.")
        self._positions[partition], self._targets[partition] = start, end
        return start

    def _end(self, partition: int) -> int:
        return self._cluster.end(partition, self._cluster.stable[partition])

    def log_id(self, partition: int) -> str | None:  # noqa: ARG002
        """The topic's id."""
        return LOG_ID

    def caught_up(self, partition: int) -> bool:
        """Whether the end at the time of `seek` was reached."""
        return self._positions[partition] >= self._targets[partition]

    def lags(self, partitions: Sequence[int]) -> dict[int, int]:
        """The distance to the high watermark."""
        cluster = self._cluster
        return {
            each: max(0, cluster.end(each, cluster.high[each]) - self._positions[each])
            for each in partitions
            if each in self._positions
        }

    def stable_offset_lags(self, partitions: Sequence[int]) -> dict[int, int]:
        """The distance of the last stable offset to the high watermark."""
        cluster = self._cluster
        return {
            each: cluster.end(each, cluster.high[each]) - self._end(each) for each in partitions
        }

    def reannounce(self) -> None:
        """Report the owned partitions as lost and gained."""
        self._again = True

    def close(self) -> None:
        """A static member keeps its partitions until its session times out."""


class SimulatedOutlet:
    """An `Outlet`: one transaction per commit, and a new producer after every error."""

    def __init__(self, network: Network, source: SimulatedSource) -> None:
        self._network = network
        self._cluster = network.cluster
        self._source = source
        self._epoch: int | None = None
        self._registering = False

    def load(self, partition: int) -> Snapshot | None:
        """The snapshot that belongs to the committed offset; waits until there is one."""
        network, cluster = self._network, self._cluster
        while True:
            try:
                self._register()
                committed = network.request("committed", lambda: cluster.committed(partition))
                found = network.request("snapshot", lambda: cluster.snapshot(partition))
            except (Unreachable, NotReady):
                pass
            else:
                if committed is None or (found and found.next_offset == committed):
                    return found
            network.sleep(RETRY_SECONDS)

    def _register(self) -> None:
        """Register a producer if there is none; several loads may ask for it at a time."""
        while self._registering:
            self._network.sleep(RETRY_SECONDS)
        if self._epoch is not None:
            return
        self._registering = True
        try:
            name = self._network.name
            self._epoch = _repeated(
                self._network, "register", lambda: self._cluster.register(name), tries=5
            )
        finally:
            self._registering = False

    def write(self, commits: Sequence[PartitionCommit]) -> None:
        """Send outputs and entries in a transaction."""
        try:
            self._register()
            self._produce(ASSIGNMENTS, _messages(commit.assignments for commit in commits))
            self._produce(DEAD_LETTERS, _messages(commit.dead_letters for commit in commits))
            for commit in commits:
                entries = {**commit.entries, NEXT_OFFSET: str(commit.next_offset).encode()}
                self._produce((SNAPSHOTS, commit.partition), list(entries.items()))
        except (Unreachable, Refused, NotReady) as error:
            raise self._failed(error) from error

    def _produce(self, place: Place, records: list[tuple[Any, bytes]]) -> None:
        if not records:
            return
        name, epoch = self._network.name, self._epoch
        assert epoch is not None
        _repeated(
            self._network,
            f"produce {place[0]}",
            lambda: self._cluster.produce(name, epoch, place, records),
            unreachable_is_final=True,
        )

    def finish(self, commits: Sequence[PartitionCommit]) -> None:
        """Add the offsets, as the member that owns the partitions, and commit."""
        cluster, name, epoch = self._cluster, self._network.name, self._epoch
        membership = self._source.membership
        if epoch is None:
            raise Fenced("the transaction was aborted")
        if membership is None or not all(self._source.owns(each.partition) for each in commits):
            raise self._failed(Refused("this process does not own the partitions"))
        offsets = {commit.partition: commit.next_offset for commit in commits}
        try:
            self._network.request(
                "add offsets", lambda: cluster.add_offsets(name, epoch, *membership, offsets)
            )
            self._network.request("commit", lambda: cluster.finish(name, epoch, "committed"))
        except (Unreachable, Refused, NotReady) as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> Fenced:
        """Discard the producer, and abort its transaction if the cluster can be reached."""
        epoch, self._epoch = self._epoch, None
        if epoch is not None and isinstance(error, Refused):
            name = self._network.name
            with suppress(Unreachable, Refused, NotReady):
                self._network.request("abort", lambda: self._cluster.finish(name, epoch, "aborted"))
        return Fenced(f"{type(error).__name__}: {error}")

    def close(self) -> None:
        """The broker aborts what is open after the transaction timeout."""


def _messages(outputs: Any) -> list[tuple[bytes | None, bytes]]:
    return [(message.key, message.value) for messages in outputs for message in messages]


def _repeated(
    network: Network,
    step: str,
    request: Callable[[], Answer],
    *,
    tries: int = 1_000_000,
    unreachable_is_final: bool = False,
) -> Answer:
    """Repeat a request until it is answered, at most so often."""
    while True:
        tries -= 1
        try:
            return network.request(step, request)
        except NotReady:
            if not tries:
                raise
        except Unreachable:
            if unreachable_is_final or not tries:
                raise

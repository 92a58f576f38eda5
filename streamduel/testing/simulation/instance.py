"""The source and the outlet of a simulated process: what the Kafka connector does, on the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from streamduel.connector import PartitionCommit, Poll, Snapshot
from streamduel.errors import ConnectorError, Fenced
from streamduel.testing.simulation.cluster import (
    ASSIGNMENTS,
    DEAD_LETTERS,
    NEXT_OFFSET,
    NO_METADATA,
    NotReady,
    Place,
)
from streamduel.testing.simulation.controls import SimulatedControls
from streamduel.testing.simulation.group import Displaced, Refused, UnknownMember
from streamduel.testing.simulation.network import Network, Unreachable

if TYPE_CHECKING:
    from streamduel.testing.records import Record

Answer = TypeVar("Answer")

FETCHED = 50
"""The most records of a partition that a poll returns."""

RETRY_SECONDS = 0.005
"""Between two attempts to load a snapshot."""


class SimulatedSource:
    """A `Source` of the model's click log, as a static member of its group.

    Args:
        network: the connection of its process.
        controlled: whether there is a control topic.
    """

    topic = "clicks"

    def __init__(self, network: Network, *, controlled: bool = False) -> None:
        self._controls = SimulatedControls(network) if controlled else None
        self._network = network
        self._cluster = network.cluster
        self.partitions = len(self._cluster.clicks)
        self.home = self._cluster.home
        self.connected = True
        self.membership: tuple[str, int] | None = None
        """Member id and generation that own the partitions; commits must carry them."""
        self._member: str | None = None
        self._granted: frozenset[int] = frozenset()  # by the group
        self._assigned: frozenset[int] = frozenset()  # as announced by `poll`
        self._positions: dict[int, int] = {}
        self._targets: dict[int, int] = {}
        self._again = False

    def owns(self, partition: int) -> bool:
        """Whether this process owns a partition, and has called `seek` for it."""
        return partition in self._positions

    def granted(self, partition: int) -> bool:
        """Whether the group has assigned a partition to this process."""
        return partition in self._assigned

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
            lost, self._assigned = sorted(self._assigned), self._granted
            self._positions.clear()
            if self._controls is not None:
                self._controls.keep(())
            return Poll(lost, sorted(self._assigned))
        for partition, records in fetched.items():
            self._positions[partition] = records[-1].offset + 1
        if not fetched:
            self._network.sleep(timeout)
        if self._controls is None:
            return Poll(records=fetched)
        self._controls.look()
        return Poll(records=self._controls.merge(fetched, self._positions.__setitem__))

    def seek_control(
        self,
        partition: int,
        offset: int,
        counts: Callable[[int], bool],  # noqa: ARG002
    ) -> str | None:
        """Deliver the control records of a partition from this offset on: each marker counts."""
        assert self._controls is not None, "only with a control topic"
        self._controls.seek(partition, offset)
        return None

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
            generation, self._granted = network.request(
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
        membership = (member, generation)
        changed, self.membership = membership != self.membership, membership
        return changed

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
        return self._cluster.log_id

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
        self._written: dict[int, int] = {}

    def load(self, partition: int) -> Snapshot | None:
        """The snapshot that belongs to the committed offset; waits until there is one."""
        network, cluster = self._network, self._cluster
        while True:
            try:
                self._register()
                committed = network.request("committed", lambda: cluster.committed(partition))
                found, written = network.request(
                    "snapshot",
                    lambda: (cluster.snapshot(partition), cluster.snapshot_offset(partition)),
                )
            except (Unreachable, NotReady):
                pass
            else:
                if committed is None:
                    return found
                offset, metadata = committed
                if found and found.next_offset == offset and metadata in {NO_METADATA, written}:
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
                place = (self._cluster.snapshots, commit.partition)
                self._written[commit.partition] = self._produce(place, list(entries.items()))
        except (Unreachable, Refused, NotReady) as error:
            raise self._failed(error) from error

    def _produce(self, place: Place, records: list[tuple[Any, bytes]]) -> int:
        if not records:
            return -1
        name, epoch = self._network.name, self._epoch
        assert epoch is not None
        return _repeated(
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
        written = {commit.partition: self._written[commit.partition] for commit in commits}
        try:
            self._network.request(
                "add offsets",
                lambda: cluster.add_offsets(name, epoch, *membership, offsets, written),
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

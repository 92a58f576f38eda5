"""The oracle: all that is committed is compared with an undisturbed run over the same log."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec import structs

from streamduel.connector import ControlMarker, Message, PartitionCommit
from streamduel.records import DeadLetter
from streamduel.stream import snapshot, snapshot_reading
from streamduel.stream.repairs import Repair, Repairs
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask
from streamduel.testing.records import Record
from streamduel.testing.simulation import audit
from streamduel.testing.simulation.cluster import (
    ASSIGNMENTS,
    DEAD_LETTERS,
    LOG_ID,
    Cluster,
    Place,
    Transaction,
)
from streamduel.testing.simulation.controls import resolved
from streamduel.testing.simulation.operator import OPERATOR
from streamduel.testing.simulation.replacement import moved
from streamduel.testing.simulation.workload import Workload, home


class Violation(AssertionError):  # noqa: N818 - of what the service promises
    """Something was lost, doubled or changed, compared with an undisturbed run."""


class _Repaired(msgspec.Struct):
    """The part of a partition's snapshot entry that an operator changes."""

    repairs: list[Repair] = []


@dataclass
class _Log:
    """A click log that was folded, or is being folded.

    Attributes:
        clicks: its records, per partition.
        id: of its topic.
        repairs: what an operator did there, per partition; first how the state came there.
        offsets: up to where its partitions are committed.
        served: those that the service has committed, not only an operator.
    """

    clicks: Sequence[list[Record]]
    id: str
    repairs: dict[int, list[Repair]] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    served: set[int] = field(default_factory=set)

    def home(self, experiment: str) -> int:
        return home(experiment, len(self.clicks))

    def shape(self) -> ClickLog:
        return ClickLog("clicks", len(self.clicks), self.home, lambda _: self.id)


class History:
    """What has been committed so far, and what an undisturbed run commits.

    With a control topic the service itself appends to the click log, and an operator may repair a
    partition or continue in another click log: what an undisturbed run commits is then known in
    the end.

    Args:
        workload: the configuration and the click log.

    Attributes:
        is_reconfigured: whether some processes had another configuration: what an undisturbed run
            commits then depends on where experiments left and joined, and a replay tells.
    """

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self.is_reconfigured = False
        self._logs = [_Log(workload.clicks, LOG_ID)]
        self._seen: Counter[tuple[str, int]] = Counter()
        self._expected: dict[tuple[str, int], list[bytes]] = {}
        self._is_known = not workload.controlled
        if self._is_known:
            commits, _ = self._undisturbed(dict.fromkeys(range(len(workload.clicks))))
            for commit in commits:
                self._expected[ASSIGNMENTS[0], commit.partition] = _values(commit.assignments)
                self._expected[DEAD_LETTERS[0], commit.partition] = _values(commit.dead_letters)

    def _undisturbed(
        self, ends: Mapping[int, int | None]
    ) -> tuple[list[PartitionCommit], dict[int, dict[str, bytes]]]:
        """Fold the click logs in one run each, the last one up to these offsets.

        Returns:
            The commits, and the snapshots in the end.
        """
        commits: list[PartitionCommit] = []
        stored: dict[int, dict[str, bytes]] = {}
        for log in self._logs:
            shape = log.shape()
            stored = self._moved(stored, log, shape)
            served = {at: log.offsets[at] for at in sorted(log.served)}
            for partition, end in (ends if log is self._logs[-1] else served).items():
                task = PartitionTask(self._workload.config, shape, partition, stored.get(partition))
                repairs = log.repairs.get(partition, ())
                task.repairs = Repairs([structs.replace(repair, done=False) for repair in repairs])
                task.begin(0)
                task.fold(
                    [it for it in self._records(log, partition) if end is None or it.offset < end]
                )
                commits.append(task.take_commit())
                stored.setdefault(partition, {}).update(commits[-1].entries)
        return commits, stored

    def _records(self, log: _Log, partition: int) -> Sequence[Record | ControlMarker]:
        if not self._workload.controlled:
            return log.clicks[partition]
        return resolved(log.clicks[partition], self._workload.controls[partition])

    def _moved(
        self, stored: dict[int, dict[str, bytes]], log: _Log, shape: ClickLog
    ) -> dict[int, dict[str, bytes]]:
        """The snapshots with which a click log begins."""
        if not stored:
            return {}
        first = next(iter(log.repairs.values()))[0]
        saved = {at: snapshot_reading.read(entries, at) for at, entries in stored.items()}
        begun = {} if first.action == "repartition" else stored
        for commit in moved(saved, shape, first.action, first.note):
            begun[commit.partition] = {**begun.get(commit.partition, {}), **commit.entries}
        return begun

    def is_complete(self, cluster: Cluster) -> bool:
        """Whether everything that was written is processed."""
        for partition, log in enumerate(cluster.clicks):
            controls = cluster.controls[partition]
            records = Repairs(self._logs[-1].repairs.get(partition, ())).without_skipped(
                resolved(log, controls)
            )
            markers = (it for it in records if isinstance(it, ControlMarker))
            last = records[-1].offset if records else -1
            if (
                cluster.high[partition] < len(log)
                or cluster.control_high[partition] < len(controls)
                or sum(len(marker.controls) for marker in markers) < len(controls)
                or cluster.offsets.get(partition) != last + 1
            ):
                return False
        return self._all_started(cluster)

    def _all_started(self, cluster: Cluster) -> bool:
        """Whether each experiment has been started; a partition may have no record to fold."""
        found = [cluster.snapshot(partition) for partition in range(len(cluster.clicks))]
        names = {name for each in found if each is not None for name in each.entries}
        return all(
            snapshot.EXPERIMENT_PREFIX + it in names for it in self._workload.config.experiments
        )

    def committed(self, transaction: Transaction, cluster: Cluster) -> None:
        """A transaction commits: it must continue the outputs exactly.

        Raises:
            Violation: it does not.
        """
        if cluster.log_id != self._logs[-1].id:
            self._is_known = False
            self._logs.append(_Log(cluster.clicks, cluster.log_id))
        present = self._logs[-1]
        for partition, offset in transaction.offsets.items():
            before = present.offsets.get(partition, 0)
            if offset < before:
                raise Violation(
                    f"offset {offset} of partition {partition} was committed after {before}."
                )
            present.offsets[partition] = offset
            if transaction.producer != OPERATOR:
                present.served.add(partition)
        for (topic, number), write in transaction.writes:
            if transaction.producer == OPERATOR and write.key == snapshot.PARTITION_ENTRY:
                self._is_known = False
                present.repairs[number] = msgspec.json.decode(write.value, type=_Repaired).repairs
            if topic == ASSIGNMENTS[0]:
                self._compare(topic, present.home(_name(write.key)), write.value)
            elif topic == DEAD_LETTERS[0]:
                self._compare(topic, _partition(write.value), write.value)

    def _compare(self, topic: str, partition: int, value: bytes) -> None:
        if not self._is_known or self.is_reconfigured:
            return  # it is compared in the end
        number = self._seen[topic, partition]
        expected = self._expected[topic, partition]
        if number >= len(expected):
            raise Violation(f"{topic} of partition {partition}: {value!r} is one too many.")
        if value != expected[number]:
            raise Violation(
                f"{topic} of partition {partition}: number {number} differs:\n"
                f"  committed: {value.decode()}\n  expected:  {expected[number].decode()}"
            )
        self._seen[topic, partition] = number + 1

    def check_end(self, cluster: Cluster) -> None:
        """Everything was processed: outputs and snapshots must be complete, byte for byte.

        Raises:
            Violation: they are not.
        """
        if self.is_reconfigured:
            if problem := audit.difference(self._workload.config, cluster):
                raise Violation(problem)
            return
        commits, snapshots = self._undisturbed(dict(sorted(cluster.offsets.items())))
        for topic, made in (
            (ASSIGNMENTS, [it for commit in commits for it in commit.assignments]),
            (DEAD_LETTERS, [it for commit in commits for it in commit.dead_letters]),
        ):
            expected = _grouped(topic, _values(made))
            found = _grouped(topic, [write.value for write in cluster.read(topic)])
            for group in expected.keys() | found.keys():
                if found.get(group) != expected.get(group):
                    raise Violation(
                        f"{topic[0]} of {group}: readers see {len(found.get(group, ()))} records, "
                        f"not the expected {len(expected.get(group, ()))} in their order."
                    )
        for partition, entries in snapshots.items():
            self._check_snapshot(cluster, partition, entries)

    def _check_snapshot(
        self, cluster: Cluster, partition: int, entries: Mapping[str, bytes]
    ) -> None:
        found = cluster.snapshot(partition)
        kept = {} if found is None else found.entries
        for name in sorted(entries.keys() | kept.keys()):
            if kept.get(name) != entries.get(name):
                raise Violation(
                    f"the snapshot of partition {partition} differs in '{name}':\n"
                    f"  committed: {_shown(kept.get(name))}\n"
                    f"  expected:  {_shown(entries.get(name))}"
                )


def _name(key: str | bytes | None) -> str:
    assert isinstance(key, bytes)
    return key.decode()


def _partition(letter: bytes) -> int:
    return msgspec.json.decode(letter, type=DeadLetter).partition


def _values(messages: Iterable[Message]) -> list[bytes]:
    return [message.value for message in messages]


class _Place(msgspec.Struct):
    """Where an assignment or a dead letter comes from."""

    experiment: str | None = None
    partition: int | None = None


def _grouped(topic: Place, values: Iterable[bytes]) -> dict[str, list[bytes]]:
    """Assignments by experiment, dead letters by partition: what has an order."""
    grouped: dict[str, list[bytes]] = defaultdict(list)
    for value in values:
        found = msgspec.json.decode(value, type=_Place)
        group = found.experiment if topic == ASSIGNMENTS else found.partition
        grouped[str(group)].append(value)
    return grouped


def _shown(entry: bytes | None) -> str:
    return "nothing" if entry is None else entry.decode()

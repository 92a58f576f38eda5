"""The oracle: all that is committed is compared with an undisturbed run over the same log."""

from __future__ import annotations

import msgspec

from streamduel.records import DeadLetter
from streamduel.stream.routing import ClickLog
from streamduel.stream.task import PartitionTask
from streamduel.testing.simulation.cluster import (
    ASSIGNMENTS,
    DEAD_LETTERS,
    LOG_ID,
    Cluster,
    Transaction,
)
from streamduel.testing.simulation.workload import Workload


class Violation(AssertionError):  # noqa: N818 - of what the service promises
    """Something was lost, doubled or changed, compared with an undisturbed run."""


class History:
    """What has been committed so far, and what an undisturbed run commits.

    Args:
        workload: the configuration and the click log.
    """

    def __init__(self, workload: Workload) -> None:
        log = ClickLog("clicks", len(workload.clicks), workload.home, lambda _partition: LOG_ID)
        self._home = workload.home
        self._offsets: dict[int, int] = {}
        self._seen: dict[tuple[str, int], int] = {}
        self._expected: dict[tuple[str, int], list[bytes]] = {}
        self._entries: dict[int, dict[str, bytes]] = {}
        self.ends: dict[int, int] = {}
        for partition, records in enumerate(workload.clicks):
            task = PartitionTask(workload.config, log, partition)
            task.begin(0)
            task.fold(records)
            commit = task.take_commit()
            self._entries[partition] = dict(commit.entries)
            self.ends[partition] = commit.next_offset
            for topic, outputs in (
                (ASSIGNMENTS[0], commit.assignments),
                (DEAD_LETTERS[0], commit.dead_letters),
            ):
                self._expected[topic, partition] = [message.value for message in outputs]

    def committed(self, transaction: Transaction) -> None:
        """A transaction commits: it must continue the outputs exactly.

        Raises:
            Violation: it does not.
        """
        for partition, offset in transaction.offsets.items():
            before = self._offsets.get(partition, 0)
            if offset < before:
                raise Violation(
                    f"offset {offset} of partition {partition} was committed after {before}."
                )
            self._offsets[partition] = offset
        for (topic, _), write in transaction.writes:
            if topic == ASSIGNMENTS[0]:
                self._compare(topic, self._home(_name(write.key)), write.value)
            elif topic == DEAD_LETTERS[0]:
                self._compare(topic, _partition(write.value), write.value)

    def _compare(self, topic: str, partition: int, value: bytes) -> None:
        number = self._seen.get((topic, partition), 0)
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
        read: dict[tuple[str, int], list[bytes]] = {key: [] for key in self._expected}
        for write in cluster.read(ASSIGNMENTS):
            read[ASSIGNMENTS[0], self._home(_name(write.key))].append(write.value)
        for write in cluster.read(DEAD_LETTERS):
            read[DEAD_LETTERS[0], _partition(write.value)].append(write.value)
        for (topic, partition), expected in self._expected.items():
            found = read[topic, partition]
            if found != expected:
                raise Violation(
                    f"{topic} of partition {partition}: readers see {len(found)} records, not the "
                    f"expected {len(expected)} in their order."
                )
        for partition, entries in self._entries.items():
            snapshot = cluster.snapshot(partition)
            kept = {} if snapshot is None else snapshot.entries
            for name in entries.keys() | kept.keys():
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


def _shown(entry: bytes | None) -> str:
    return "nothing" if entry is None else entry.decode()

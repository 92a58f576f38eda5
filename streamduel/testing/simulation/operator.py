"""An operator, who repairs a partition as `streamduel repair` does: with the service stopped."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from streamduel.connector import PartitionCommit, Snapshot
from streamduel.errors import ConfigurationError
from streamduel.stream import repair_commits
from streamduel.stream.commit import commit
from streamduel.testing.broker import START
from streamduel.testing.simulation.instance import SimulatedOutlet, SimulatedSource
from streamduel.testing.simulation.process import Process

if TYPE_CHECKING:
    from streamduel.testing.simulation.cluster import Cluster
    from streamduel.testing.simulation.replacement import Replacement
    from streamduel.testing.simulation.schedule import Schedule

OPERATOR: Final = "operator"
"""Its name in the group and in the transactions."""

POLL_SECONDS: Final = 0.01

Plan = Callable[[Snapshot], PartitionCommit]


def skip(partition: int, ahead: int, note: str) -> Plan:
    """Skip a record that is so many offsets ahead."""

    def plan(found: Snapshot) -> PartitionCommit:
        return repair_commits.skip(found, partition, found.next_offset + ahead, note)

    return plan


def set_time(partition: int, after_start: int, note: str) -> Plan:
    """Set stream time to so long after the first record."""
    return lambda found: repair_commits.set_time(found, partition, START + after_start, note)


class Repair:
    """A repair that an operator has begun, until it is committed.

    Args:
        partition: the partition.
        rng: draws what is done.
        number: distinguishes it from other repairs.
    """

    def __init__(self, partition: int, rng: random.Random, number: int) -> None:
        self.partition = partition
        note = f"repair {number}"
        self.is_skip = rng.random() < 0.5
        amount = rng.randint(0, 6) if self.is_skip else rng.choice((0, 100, 1000, 5000))
        self.plan = (skip if self.is_skip else set_time)(partition, amount, note)
        self.done = False

    def begin(self, cluster: Cluster) -> bool:  # noqa: ARG002
        """Whether an operator may begin."""
        return True

    def run(self, _: Operator, source: SimulatedSource, outlet: SimulatedOutlet) -> None:
        """Repair the partition, unless a former attempt has done it."""
        partition = self.partition
        while not source.granted(partition):
            source.poll(POLL_SECONDS)
        found = outlet.load(partition)
        if found is None:
            self.done = True
            return
        try:
            made = self.plan(found)
        except ConfigurationError:  # skipped already, by an attempt whose answer was lost
            self.done = True
            return
        source.seek(partition, made.next_offset)
        commit(outlet, [made])
        self.done = True


class Operator(Process):
    """Waits for partitions, and repairs them in one commit; it may be killed like any process."""

    def __init__(self, schedule: Schedule, wanted: Repair | Replacement) -> None:
        self._wanted = wanted
        super().__init__(schedule, OPERATOR, schedule.workload.config)

    def _run(self, source: SimulatedSource, outlet: SimulatedOutlet) -> None:
        self._wanted.run(self, source, outlet)

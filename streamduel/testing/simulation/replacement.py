"""A click log that is replaced, and an operator who continues there as `streamduel repair` does."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING

from streamduel.connector import PartitionCommit, Snapshot
from streamduel.stream import repair_commits
from streamduel.stream.commit import commit
from streamduel.stream.repairs import Action
from streamduel.stream.routing import ClickLog
from streamduel.stream.snapshot_reading import Saved
from streamduel.testing.simulation.cluster import Cluster, NotReady
from streamduel.testing.simulation.network import Unreachable
from streamduel.testing.simulation.operator import POLL_SECONDS

if TYPE_CHECKING:
    from streamduel.testing.simulation.instance import SimulatedOutlet, SimulatedSource
    from streamduel.testing.simulation.operator import Operator
    from streamduel.testing.simulation.workload import Workload


def moved(
    saved: Mapping[int, Saved], log: ClickLog, action: Action, note: str
) -> list[PartitionCommit]:
    """The commits that continue the state of some partitions at the start of a click log."""
    partitions = range(log.partitions) if action == "repartition" else saved
    return repair_commits.Move(saved, log, dict.fromkeys(partitions, 0), action, note).commits()


class Replacement:
    """The topic of the click log is deleted and created again, or with other partitions.

    Args:
        workload: draws the records of the new topic.
        rng: for it.
        number: distinguishes it from other repairs.
    """

    def __init__(self, workload: Workload, rng: random.Random, number: int) -> None:
        self.clicks = workload.next_log(rng)
        self.done = False
        self._note = f"repair {number}"
        self._former: tuple[str, int] | None = None

    def begin(self, cluster: Cluster) -> bool:
        """Replace the topic, once nothing of it is in doubt; False until then."""
        if self._former is None and cluster.settled:
            self._former = cluster.snapshots, len(cluster.clicks)
            cluster.replace_log(self.clicks)
        return self._former is not None

    def run(self, operator: Operator, source: SimulatedSource, outlet: SimulatedOutlet) -> None:
        """Move the state, unless a former attempt has done it."""
        partitions = range(len(self.clicks))
        while not all(map(source.granted, partitions)):
            source.poll(POLL_SECONDS)
        saved = {at: repair_commits.read(found, at) for at, found in self._saved(operator).items()}
        if saved and not any(self._is_moved(outlet.load(at), source, at) for at in partitions):
            made = moved(saved, ClickLog.of(source), self._action, self._note)
            for each in made:
                source.seek(each.partition, each.next_offset)
            commit(outlet, made)
        self.done = True

    def _is_moved(self, found: Snapshot | None, source: SimulatedSource, partition: int) -> bool:
        """Whether an attempt whose answer was lost has moved the state."""
        if found is None:
            return False
        return repair_commits.read(found, partition).partition.log_id == source.log_id(partition)

    @property
    def _action(self) -> Action:
        assert self._former is not None, "it has begun"
        return "new_log" if self._former[1] == len(self.clicks) else "repartition"

    def _saved(self, operator: Operator) -> dict[int, Snapshot]:
        assert self._former is not None, "it has begun"
        topic, partitions = self._former
        found = {}
        for partition in range(partitions):
            saved = self._read(operator, partition, topic)
            if saved is not None:
                found[partition] = saved
        return found

    def _read(self, operator: Operator, partition: int, topic: str) -> Snapshot | None:
        while True:
            try:
                return operator.request(
                    "archive", lambda: operator.cluster.snapshot(partition, topic)
                )
            except (Unreachable, NotReady):
                operator.sleep(POLL_SECONDS)

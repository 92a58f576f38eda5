"""A replay of everything that a simulated cluster has, as `streamduel replay` does it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamduel.config import Config
from streamduel.connector import Message, Poll, Snapshot
from streamduel.stream.replay import replay
from streamduel.testing.simulation.cluster import ASSIGNMENTS, Cluster


def difference(config: Config, cluster: Cluster) -> str | None:
    """The first difference between what was published and a replay, as a sentence."""
    verdict = replay(config, _ClickLog(cluster), _Archive(cluster))
    if verdict.difference is None and verdict.unchecked:
        return f"the replay has not checked {verdict.unchecked}."
    return verdict.difference


class _ClickLog:
    """A `Source` of the whole click log, also of what retention has deleted."""

    topic = "clicks"

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._left = dict(enumerate(cluster.clicks))
        self._gained = False
        self.partitions = len(cluster.clicks)
        self.connected = True
        self.home = cluster.home

    def log_id(self, partition: int) -> str | None:  # noqa: ARG002
        return self._cluster.log_id

    def poll(self, timeout: float, *, hold: bool = False) -> Poll:  # noqa: ARG002
        if not self._gained:
            self._gained = True
            return Poll(gained=list(self._left))
        records, self._left = self._left, {}
        return Poll(records={partition: log for partition, log in records.items() if log})

    def seek(self, partition: int, offset: int | None) -> int:
        log = self._cluster.clicks[partition]
        self._left[partition] = [record for record in log if record.offset >= (offset or 0)]
        return offset or 0

    def caught_up(self, partition: int) -> bool:
        return partition not in self._left

    def lags(self, partitions: Sequence[int]) -> dict[int, int]:
        return {partition: len(self._left.get(partition, ())) for partition in partitions}

    def stable_offset_lags(self, partitions: Sequence[int]) -> dict[int, int]:  # noqa: ARG002
        return {}

    def reannounce(self) -> None:
        self._gained = False

    def close(self) -> None:
        self._left = {}


class _Archive:
    """An `Archive` of what is committed."""

    compacted = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def partitions(self) -> Sequence[int]:
        return range(len(self._cluster.clicks))

    def load(self, partition: int) -> Snapshot | None:
        return self._cluster.snapshot(partition)

    def published(self) -> Iterator[Message]:
        for write in self._cluster.read(ASSIGNMENTS):
            assert isinstance(write.key, bytes)
            yield Message(write.key, write.value)

    def close(self) -> None:
        """Nothing is open."""

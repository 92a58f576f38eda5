"""Partitions: the home of an experiment, and the ownership of partitions by this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Any, NamedTuple, Protocol

from kafka import TopicPartition
from kafka.partitioner.default import murmur2

from streamduel_kafka.client import Consumer


def home_partition(experiment: str, partitions: int) -> int:
    """The partition that Kafka's default partitioner, in Java too, picks for this key.

    >>> home_partition("search", 6)
    2
    """
    return int(murmur2(experiment.encode()) & 0x7FFFFFFF) % partitions


class Assigned(NamedTuple):
    """The partitions that this process owns from now on.

    Attributes:
        partitions: all of them, not only new ones.
        group: the membership that owns them (the client's own object), which commits
            must carry; None if there is none, so that nothing can be committed.
    """

    partitions: frozenset[int]
    group: Any


NOTHING = Assigned(frozenset(), None)


class Ownership(Protocol):
    """Decides which partitions this process owns."""

    def latest(self) -> Assigned | None:
        """The present ownership if it changed since the last call, else None."""


class GroupOwnership:
    """Records the decisions of the consumer group.

    The client calls it during `Consumer.poll`, kafka-python in a thread of its own; `latest` is
    called after it.

    Why a commit of a member that lost its partitions is refused: a commit carries the generation
    in which the partitions were assigned, recorded in the very call that assigns them. Partitions
    change owners only with a new generation of the group, and the protocol is the eager one:
    before a member joins a new generation, all its partitions are revoked here, so that nothing
    of an old generation is carried into a new one. A member that does not know yet (it hangs, or
    its network is down) still has the old generation, which the broker refuses. A member that was
    removed from the group resets its own generation to -1, which the broker does not check:
    therefore a recorded generation, not the present one.
    """

    def __init__(self) -> None:
        self._events: deque[Assigned] = deque()

    def revoked(self) -> None:
        """Before a new generation: all partitions are given up (eager protocol)."""
        self._events.append(NOTHING)

    def assigned(self, partitions: Collection[TopicPartition], group: Any) -> None:
        """A new generation has assigned these partitions."""
        self._events.append(Assigned(frozenset(each.partition for each in partitions), group))

    def latest(self) -> Assigned | None:
        """The ownership after all decisions since the last call; None if there were none."""
        newest = None
        while self._events:
            newest = self._events.popleft()
        return newest


class WholeLog:
    """Ownership of all partitions, from the first call on, without a group."""

    def __init__(self, consumer: Consumer, topic: str, partitions: int) -> None:
        consumer.assign_held([TopicPartition(topic, number) for number in range(partitions)])
        self._assigned: Assigned | None = Assigned(frozenset(range(partitions)), None)

    def latest(self) -> Assigned | None:
        """All partitions, once."""
        assigned, self._assigned = self._assigned, None
        return assigned

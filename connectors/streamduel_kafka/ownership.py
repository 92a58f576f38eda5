"""Which partitions are ours, and by which right: as told by the group, or all of a log."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Any, NamedTuple

from kafka import TopicPartition
from kafka.consumer.subscription_state import ConsumerRebalanceListener


class Handover(NamedTuple):
    """The partitions that are ours from now on.

    Attributes:
        partitions: all of them, not only the new ones.
        group: the membership under which we got them (kafka-python's ConsumerGroupMetadata), to
            commit with; None if there is none, so that nothing can be committed.
    """

    partitions: frozenset[int]
    group: Any


NOTHING = Handover(frozenset(), None)


class GroupOwnership(ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python is untyped
    """Writes down what the group decides.

    kafka-python calls it in its own thread, while `KafkaConsumer.poll` waits in ours (the join of
    a group is driven from there alone); `latest` is called after that. What it does to the
    consumer is a change of its memory, never a request, which would wait for that same thread.

    Why a commit of a member that lost its partitions is refused: a commit carries the generation
    that was current when the partitions were handed over, and that is recorded in the very call
    that hands them over. Partitions change hands only with a new generation of the group, and the
    protocol is the eager one: before a member joins a new generation it is called here with all
    its partitions, so that nothing of an old generation is ever carried into a new one. A member
    that has not heard of it yet (it hangs, it is cut off) still holds the old generation, which
    the broker refuses. A member that fell out of the group resets its own generation to -1, with
    which the broker would check nothing: hence a recorded one, not the present one.
    """

    def __init__(self, consumer: Any, topic: str) -> None:
        self._consumer = consumer
        self._topic = topic
        self._events: deque[Handover] = deque()

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:  # noqa: ARG002
        """Before a new generation: all partitions are given back (eager protocol)."""
        self._events.append(NOTHING)

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:  # noqa: ARG002
        """The group went on without us."""
        self._events.append(NOTHING)

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        """In a new generation: these are ours."""
        hold(self._consumer, assigned)
        partitions = frozenset(each.partition for each in assigned)
        self._events.append(Handover(partitions, self._consumer.group_metadata()))

    def latest(self) -> Handover | None:
        """What holds after everything that was decided since the last call; None if nothing was."""
        newest = None
        while self._events:
            newest = self._events.popleft()
        return newest


class WholeLog:
    """All partitions, from the first call on."""

    def __init__(self, consumer: Any, topic: str, partitions: int) -> None:
        assigned = [TopicPartition(topic, partition) for partition in range(partitions)]
        consumer.assign(assigned)
        hold(consumer, assigned)
        self._handover: Handover | None = Handover(frozenset(range(partitions)), None)

    def latest(self) -> Handover | None:
        """All partitions, once."""
        handover, self._handover = self._handover, None
        return handover


def hold(consumer: Any, assigned: Collection[TopicPartition]) -> None:
    """Let these partitions deliver nothing until `Source.seek`.

    A position is given too, any one: without it kafka-python would ask for the group's committed
    offset, and wait for it where a transaction of the owner before is still open; and it would
    keep the position of a partition that we have owned before, and go on there.
    """
    consumer.pause(*assigned)
    for each in assigned:
        consumer.seek(each, 0)

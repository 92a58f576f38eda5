"""The partitions of a consumer of confluent-kafka, and its positions in them."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Final, Protocol, TypeVar

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Place
from kafka import TopicPartition

SEEK_SECONDS: Final = 2.0
"""For a partition that was assigned just now to become one that can be positioned."""

PAUSE_SECONDS: Final = 0.01
"""The time between two attempts to position it."""


class _Placed(Protocol):
    @property
    def offset(self) -> int: ...


R = TypeVar("R", bound=_Placed)


class Positions:
    """Knows the position of each partition itself.

    librdkafka's own position is unknown before the first record, and does not move past the markers
    of transactions; a paused partition returns to it, even after `seek`.

    A partition is assigned when it delivers for the first time, from a known offset: for "the end"
    librdkafka asks the broker, and a late answer would move the position past records that were not
    delivered.

    Args:
        consumer: the consumer that owns the partitions.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._next: dict[TopicPartition, int] = {}
        self._placed: set[TopicPartition] = set()  # those that librdkafka knows
        self.delivering: set[TopicPartition] = set()

    @property
    def assigned(self) -> Collection[TopicPartition]:
        """All partitions."""
        return tuple(self._next)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Deliver these partitions from these offsets on."""
        self._unpause()
        self._next = dict(positions)
        self._placed, self.delivering = set(positions), set(positions)
        self._assign()

    def hold_all(self, partitions: Collection[TopicPartition]) -> None:
        """Add these partitions, and deliver nothing from them."""
        self._unpause()
        self._next = dict.fromkeys(partitions, 0)
        self._placed, self.delivering = set(), set()
        self._assign()

    def _assign(self) -> None:
        """Assign again all partitions that have delivered or do so now."""
        self._consumer.assign(
            [Place(at.topic, at.partition, self._next[at]) for at in self._placed]
        )
        held = [Place(*at) for at in self._placed - self.delivering]
        if held:
            self._consumer.pause(held)

    def _unpause(self) -> None:
        """End the pauses: librdkafka keeps those of partitions that it gives up and gets again."""
        held = [Place(*at) for at in self._placed - self.delivering]
        if held:
            self._consumer.resume(held)

    def drop(self) -> None:
        """Forget all partitions; librdkafka gives them up itself."""
        self._unpause()
        self._next, self._placed, self.delivering = {}, set(), set()

    def hold(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver nothing of these partitions until `resume`."""
        held = self.delivering.intersection(partitions)
        self.delivering -= held
        paused = [Place(*at) for at in held & self._placed]
        if paused:
            self._consumer.pause(paused)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Deliver these partitions from their positions on."""
        due = {at for at in partitions if at in self._next} - self.delivering
        self.delivering |= due
        for at in due & self._placed:
            self._place(at)
            self._consumer.resume([Place(*at)])
        self.restart()

    def stop(self, at: TopicPartition) -> None:
        """Note that librdkafka has stopped fetching: the partition does not hold its position."""
        self._placed.discard(at)

    def restart(self) -> None:
        """Fetch from those partitions that deliver, and that librdkafka does not fetch from."""
        if not self.delivering <= self._placed:
            self._placed |= self.delivering
            self._assign()

    def seek(self, at: TopicPartition, offset: int) -> None:
        """Change a position."""
        if at not in self._next:
            return
        self._next[at] = offset
        if at in self.delivering & self._placed:
            self._place(at)

    def _place(self, at: TopicPartition) -> None:
        """Make librdkafka fetch from the position on; records fetched before are dropped."""
        deadline = time.monotonic() + SEEK_SECONDS
        while True:
            try:
                self._consumer.seek(Place(at.topic, at.partition, self._next[at]))
            except KafkaException:  # a new partition is not ready yet
                if time.monotonic() > deadline:
                    self._assign()
                    return
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def of(self, at: TopicPartition) -> int:
        """The position of a partition."""
        return self._next.get(at, 0)

    def reach(self, at: TopicPartition, offset: int) -> None:
        """Note that there is nothing before this offset."""
        if at in self.delivering and offset > self._next[at]:
            self._next[at] = offset

    def passed(self, at: TopicPartition, records: list[R]) -> list[R]:
        """Note the delivery of records; returns those that are due."""
        if at not in self.delivering:
            return []
        if records[0].offset < self._next[at]:  # fetched before the position changed
            records = [each for each in records if each.offset >= self._next[at]]
        if records:
            self._next[at] = records[-1].offset + 1
        return records

    def close(self) -> None:
        """Give up the reference to the consumer: librdkafka destroys it with the last one."""
        del self._consumer

"""What a job has published so far, as a `read_committed` reader sees it."""

from __future__ import annotations

from typing import Protocol, Self

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from benchmarks.peers.job import PARTITIONS, Job

POLL_MS = 20
"""Between two looks at the results, a twentieth of the shortest time that is measured."""


class Feed(Protocol):
    """The visible output of a job."""

    def look(self) -> list[bytes]:
        """What is new; waits a moment if nothing is."""

    def has_more(self) -> bool:
        """Whether something is visible that `look` has not returned."""

    def committed(self) -> dict[int, int]:
        """The committed offset of each partition of the input."""


class KafkaFeed:
    """The topic of results of a job, and the offsets of its group."""

    def __init__(self, job: Job) -> None:
        self._group = job.group
        self._partitions = [TopicPartition(job.results, number) for number in range(PARTITIONS)]
        self._admin = KafkaAdminClient(bootstrap_servers=job.servers)
        self._consumer = KafkaConsumer(
            bootstrap_servers=job.servers,
            isolation_level="read_committed",
            enable_auto_commit=False,
            fetch_max_wait_ms=POLL_MS,
            metrics_enabled=False,
        )
        self._consumer.assign(self._partitions)
        self._consumer.seek_to_beginning(*self._partitions)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close(autocommit=False)
        self._admin.close()

    def look(self) -> list[bytes]:
        """What is new."""
        found = self._consumer.poll(timeout_ms=POLL_MS)
        return [record.value for records in found.values() for record in records]

    def has_more(self) -> bool:
        """Whether a partition has a committed record that was not read."""
        ends = self._consumer.end_offsets(self._partitions)
        return any(self._consumer.position(each) < end for each, end in ends.items())

    def committed(self) -> dict[int, int]:
        """The offsets of the group; none before the broker knows it."""
        try:
            (found,) = self._admin.list_group_offsets([self._group]).values()
        except KafkaError as error:
            if error.retriable:
                return {}
            raise
        return {each.partition: at.offset for each, at in found.items()}

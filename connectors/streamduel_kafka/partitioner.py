"""In which partition the records of an experiment stand: where Kafka's producers put their key."""

from __future__ import annotations

import functools

from kafka.partitioner.default import murmur2


# Asked for every record of the log, answered for the few experiments there are; bounded, because a
# log may hold any number of names that are no experiment's.
@functools.lru_cache(maxsize=4096)
def home_partition(experiment: str, partitions: int) -> int:
    """The partition that Kafka's default partitioner, Java's too, picks for this key.

    >>> home_partition("search", 6)
    2
    """
    return int(murmur2(experiment.encode()) & 0x7FFFFFFF) % partitions

"""The parts of the configuration that the executors need, without any password."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Final, NamedTuple

import mmh3

from streamduel.config import Config, LimitSettings
from streamduel.config.experiment import ExperimentSettings
from streamduel.config.model import SparkSettings

JOIN_SLICES: Final = 10
"""Slices of impressions in a join window, at most. A click is looked up in the slices around it
when each of them closes, so more slices would cost more than they save in delay."""

SEEN_SPANS: Final = 16
"""Spans into which the dedupe window divides remembered ids: it forgets one span at a time."""

EMPTY: Final = "{}"
"""The segments of a record that belongs to none, as JSON."""


class Lane(NamedTuple):
    """Records of one kind, divided into slices of time.

    Attributes:
        kind: `duel` (and interleaving), `impression`, `click`, or `distinct`: clicks of a slice
            that is over, without duplicates.
        window_ms: the join window; 0 for duels.
        slice_ms: the length of a slice.

    >>> Lane.parse(str(Lane("click", 600_000, 60_000)))
    Lane(kind='click', window_ms=600000, slice_ms=60000)
    """

    kind: str
    window_ms: int
    slice_ms: int

    def __str__(self) -> str:
        """Its name in Spark's state and in the ids of records."""
        return f"{self.kind}-{self.window_ms}-{self.slice_ms}"

    @classmethod
    def parse(cls, name: str) -> Lane:
        """The lane of a name."""
        kind, window_ms, slice_ms = name.split("-")
        return cls(kind, int(window_ms), int(slice_ms))

    def slice_of(self, ts: int) -> int:
        """The beginning of the slice of a time."""
        return ts - ts % self.slice_ms

    def due(self, start: int) -> int:
        """The watermark at which a slice is over: no record that it needs can still arrive."""
        end = start + self.slice_ms
        if self.kind == "impression":  # all slices of clicks that it may need are over
            return self.slice_of(end + self.window_ms - 1) + self.slice_ms
        if self.kind == "distinct":  # all slices of impressions that may need it are over
            return end + 2 * (self.window_ms + self.slice_ms)
        return end


class Plan(NamedTuple):
    """The experiments, the limits, and how records are divided.

    Attributes:
        experiments: their settings, by name.
        limits: of a record.
        spark: the settings of the job.
        dedupe_ms: how long an id is remembered, at least.
        dead_letters: the topic of the records that cannot be used.
    """

    experiments: Mapping[str, ExperimentSettings]
    limits: LimitSettings
    spark: SparkSettings
    dedupe_ms: int
    dead_letters: str

    @classmethod
    def of(cls, config: Config, spark: SparkSettings, dead_letters: str) -> Plan:
        """The plan of a configuration."""
        return cls(config.experiments, config.limits, spark, config.dedupe.window_ms, dead_letters)

    @property
    def delay_ms(self) -> int:
        """How far the watermark is behind the newest record: Spark drops what is exactly at it."""
        return self.spark.lateness_ms + 1

    def lane(self, kind: str, experiment: str) -> Lane:
        """The lane of an experiment's records of one kind."""
        slice_ms = self.spark.slice_ms
        if kind == "duel":
            return Lane(kind, 0, slice_ms)
        window_ms = self.experiments[experiment].join_window(self.dedupe_ms)
        return Lane(kind, window_ms, max(slice_ms, window_ms // JOIN_SLICES))


def seed_of(experiment: str) -> int:
    """The seed of an experiment's keys: an id is unique within its experiment only."""
    return zlib.crc32(experiment.encode())


def key_of(id_: str, seed: int) -> int:
    """The 64-bit key of an id: of a billion ids, two are taken for one with probability 0.03."""
    key: int = mmh3.hash64(id_, seed)[0]
    return key


def buckets(partitions: int) -> list[int]:
    """For each Spark partition a number that Spark hashes into it, so that each has one bucket.

    >>> buckets(4)
    [12, 6, 2, 0]
    """
    found: dict[int, int] = {}
    number = 0
    while len(found) < partitions:
        place = mmh3.hash(number.to_bytes(4, "little"), 42) % partitions
        found.setdefault(place, number)
        number += 1
    return [found[place] for place in range(partitions)]
